//! Failures on demand: `GPUSIM_FAIL="cudaMalloc:3,cuLaunchKernel:*=719"`.
//!
//! Each rule is `NAME:WHEN[=CODE]`, where WHEN is the number of the call that fails, counted
//! from 1, `N+` for that call and all later ones, or `*` for every call. Without a code,
//! allocations fail with 2 (out of memory) and everything else with 999 (unknown).

use std::sync::atomic::{AtomicU64, Ordering};

struct Rule {
    name: String,
    first: u64,
    last: u64,
    code: u32,
    seen: AtomicU64,
}

/// The rules of this process, in the order they were given.
pub struct Plan(Vec<Rule>);

impl Plan {
    /// The plan in `GPUSIM_FAIL`; what cannot be understood is reported and left out.
    pub fn from_env() -> Self {
        let text = std::env::var("GPUSIM_FAIL").unwrap_or_default();
        let mut rules = Vec::new();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            match parse(part) {
                Some(rule) => rules.push(rule),
                None => eprintln!("gpusim: cannot understand GPUSIM_FAIL rule '{part}'"),
            }
        }
        Plan(rules)
    }

    /// Whether some rule names one of these functions.
    pub fn concerns(&self, names: &[&std::ffi::CStr]) -> bool {
        let named = |rule: &Rule| names.iter().any(|n| n.to_bytes() == rule.name.as_bytes());
        self.0.iter().any(named)
    }

    /// The error this call of `name` must fail with, or 0.
    pub fn next(&self, name: &[u8]) -> u32 {
        let mut code = 0;
        for rule in self.0.iter().filter(|rule| rule.name.as_bytes() == name) {
            let call = rule.seen.fetch_add(1, Ordering::Relaxed) + 1;
            if code == 0 && (rule.first..=rule.last).contains(&call) {
                code = rule.code;
            }
        }
        code
    }
}

fn parse(text: &str) -> Option<Rule> {
    let (name, when) = text.split_once(':')?;
    let (when, code) = match when.split_once('=') {
        Some((when, code)) => (when, code.trim().parse().ok()?),
        None if allocates(name) => (when, 2),
        None => (when, 999),
    };
    let (first, last) = match when.trim() {
        "*" => (1, u64::MAX),
        other => match other.strip_suffix('+') {
            Some(first) => (first.parse().ok()?, u64::MAX),
            None => (other.parse().ok()?, other.parse().ok()?),
        },
    };
    Some(Rule {
        name: name.trim().to_owned(),
        first,
        last,
        code,
        seen: AtomicU64::new(0),
    })
}

fn allocates(name: &str) -> bool {
    ["Malloc", "MemAlloc", "HostAlloc", "MemCreate"]
        .iter()
        .any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::{Plan, parse};

    #[test]
    fn third_call_fails_and_no_other() {
        let plan = Plan(vec![parse("cudaMalloc:3").unwrap()]);
        let codes: Vec<u32> = (0..5).map(|_| plan.next(b"cudaMalloc")).collect();
        assert_eq!(codes, [0, 0, 2, 0, 0]);
        assert_eq!(plan.next(b"cudaFree"), 0);
    }

    #[test]
    fn ranges_and_codes() {
        let plan = Plan(vec![parse("cuLaunchKernel:2+=719").unwrap()]);
        let codes: Vec<u32> = (0..3).map(|_| plan.next(b"cuLaunchKernel")).collect();
        assert_eq!(codes, [0, 719, 719]);
        assert!(parse("nonsense").is_none());
    }
}
