//! Code is loaded or made in the middle of the work: modules, graphs, kernels launched for the first time.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::End;
use crate::findings::part::Part;
use crate::findings::seen::Seen;
use crate::findings::table::hash;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::record::Kind;
use crate::text::quantity::{count, duration, plural};

/// Shorter ones are look-ups.
const SLOW_NS: u64 = 1_000_000;
/// A program is warm once it has launched for as long, and as often, without loading any code.
const QUIET_NS: u64 = 1_000_000_000;
const QUIET_LAUNCHES: u64 = 100;
const PERCENT: u64 = 1;
/// Bits by which kernels are remembered; two that share one are taken for the same.
const BITS: usize = 1 << 16;

#[derive(Debug, Default)]
struct Warm {
    /// When code was loaded last, or work began, and the launches by then.
    since: Option<(i64, u64)>,
    warm: bool,
    launches: u64,
}

/// Code is loaded or made in the middle of the work.
#[derive(Debug)]
pub(crate) struct LateJit {
    cases: Cases<Warm>,
    known: Vec<u64>,
}

impl Default for LateJit {
    fn default() -> LateJit {
        LateJit {
            cases: Cases::default(),
            known: vec![0; BITS / 64],
        }
    }
}

impl Warm {
    /// Code is loaded; whether that is late.
    fn load(&mut self, seen: &Seen<'_>) -> bool {
        let (at, launches) = (seen.event.at, seen.process.launches);
        let (since, before) = *self.since.get_or_insert((at, launches));
        let quiet_ns = u64::try_from(at.saturating_sub(since)).unwrap_or(0);
        self.warm |= quiet_ns >= QUIET_NS && launches - before.min(launches) >= QUIET_LAUNCHES;
        self.since = Some((seen.event.end(), launches));
        self.warm
    }
}

impl LateJit {
    /// Whether a process launches a kernel for the first time, by its name.
    fn is_new(&mut self, seen: &Seen<'_>) -> bool {
        let Some(kernel) = seen.event.kernel else {
            return false;
        };
        let bit = hash(kernel).wrapping_mul(u64::from(seen.event.pid) | 1) as usize % BITS;
        let word = &mut self.known[bit / 64];
        let mask = 1 << (bit % 64);
        std::mem::replace(word, *word | mask) & mask == 0
    }
}

impl Rule for LateJit {
    fn name(&self) -> &'static str {
        "late-jit"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match kind {
            Kind::Call if matches!(class, Class::Module | Class::Graph | Class::Launch) => Wants::Work,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let is_launch = seen.part == Part::Launch;
        let is_first = is_launch && self.is_new(seen);
        let loads = seen.ns() >= SLOW_NS && (seen.part == Part::Code || is_first) && !seen.event.failed;
        let starts = is_launch && seen.process.launches == 0;
        if !loads && !starts {
            return;
        }
        let Some((evidence, warm)) = self.cases.of(seen) else {
            return;
        };
        if warm.load(seen) && loads {
            warm.launches += u64::from(is_launch);
            evidence.add(seen, seen.ns());
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, warm) = self.cases.costliest()?;
        if evidence.count == 0 || !end.is_share(evidence.ns, PERCENT) {
            return None;
        }
        Some(Finding {
            title: format!(
                "Code is loaded in the middle of the work, {}",
                plural(evidence.count, "time")
            ),
            what: format!(
                "in the middle of the work code was loaded or made {}, {} of them by the first launch of a kernel: \
                 {} in all",
                plural(evidence.count, "time"),
                count(warm.launches),
                duration(evidence.ns)
            ),
            cure:
                "load it before the work begins: CUDA_MODULE_LOADING=EAGER, a warm-up with every shape, and caches of \
                   what is compiled (CUDA_CACHE_PATH, TORCHINDUCTOR_CACHE_DIR) that outlive the run"
                    .to_owned(),
            thresholds: format!(
                "calls of {} or more that load code, after {} of at least {QUIET_LAUNCHES} launches without one, \
                 {PERCENT} % of the time",
                duration(SLOW_NS),
                duration(QUIET_NS)
            ),
            weakened: end.weakness(&[Class::Module, Class::Graph, Class::Launch]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS};

    fn load(fixture: &mut Fixture) {
        fixture.call(Class::Module, 30 * MS, |_| {});
    }

    #[test]
    fn code_that_is_loaded_after_a_second_of_work_is_late() {
        let mut fixture = Fixture::of(LateJit::default());
        load(&mut fixture);
        fixture.healthy(110);
        load(&mut fixture);
        load(&mut fixture);
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.cost_ns), (2, 60 * MS));
    }

    #[test]
    fn a_kernel_whose_first_launch_takes_long_is_late_too() {
        let mut fixture = Fixture::of(LateJit::default());
        fixture.healthy(110);
        for _ in 0..2 {
            fixture.call(Class::Launch, 40 * MS, |event| event.kernel = Some("gemm"));
        }
        assert_eq!((fixture.finding().count, fixture.finding().cost_ns), (1, 40 * MS));
    }

    #[test]
    fn code_that_is_loaded_as_the_work_begins_is_none() {
        let mut fixture = Fixture::of(LateJit::default());
        for _ in 0..10 {
            fixture.healthy(50);
            load(&mut fixture);
        }
        assert_eq!(fixture.findings(), []);
    }
}
