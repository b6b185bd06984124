//! Launches by kernel.

use super::Map;
use super::functions::View;
use super::histogram::Histogram;
use super::texts::Texts;
use crate::trace::Event;
use serde::Serialize;
use serde_json::Value;

/// Launches of one kernel. Times are those of the launching call: the CPU's, not the GPU's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kernel {
    /// The function that launched, of those without a kernel of their own (graphs).
    pub name: String,
    pub launches: u64,
    pub failed: u64,
    pub total_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// The most frequent shape, as `<<<(128,2), 256, 48.0 KiB>>>`, where the recording knows it.
    pub shape: Option<String>,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    launches: u64,
    failed: u64,
    total_ns: u64,
    max_ns: u64,
    times: Histogram,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Kernels {
    names: Texts,
    of: [Map<u32, Tally>; 2],
    pub(super) launches: [u64; 2],
}

impl Kernels {
    pub(super) fn take(&mut self, event: &Event<'_>, view: View) {
        let Some(index) = index(view) else { return };
        let name = self.names.number(event.kernel.unwrap_or(event.name));
        let tally = self.of[index].entry(name).or_default();
        match event.failed {
            true => tally.failed += event.count,
            false => tally.launches += event.count,
        }
        if let Some(ns) = event.ns {
            tally.total_ns = tally.total_ns.saturating_add(ns);
            tally.max_ns = tally.max_ns.max(ns);
            tally.times.add(ns);
        }
        self.launches[index] += if event.failed { 0 } else { event.count };
    }

    /// Most launches first.
    pub(super) fn list(&self, exact: Option<&Value>) -> Vec<Kernel> {
        let told = exact.and_then(|exact| exact["kernels"].as_array());
        let mut kernels: Vec<Kernel> = match told.filter(|told| !told.is_empty()) {
            Some(told) => told.iter().map(Kernel::told).collect(),
            None => self.of[seen(&self.launches)]
                .iter()
                .map(|(name, tally)| self.kernel(*name, tally))
                .collect(),
        };
        kernels.sort_by(|a, b| b.launches.cmp(&a.launches).then_with(|| a.name.cmp(&b.name)));
        kernels
    }

    fn kernel(&self, name: u32, tally: &Tally) -> Kernel {
        let quantile = |share| tally.times.quantile(share, tally.max_ns);
        Kernel {
            name: self.names.text(name).to_owned(),
            launches: tally.launches,
            failed: tally.failed,
            total_ns: Some(tally.total_ns),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            max_ns: Some(tally.max_ns),
            shape: None,
        }
    }
}

impl Kernel {
    /// As a summary has it.
    fn told(said: &Value) -> Kernel {
        let ns = |key: &str| said[key].as_f64().map(|us| (us * 1e3).round() as u64);
        let number = |key: &str| said[key].as_u64().unwrap_or(0);
        Kernel {
            name: said["kernel"].as_str().unwrap_or("?").to_owned(),
            launches: number("launches"),
            failed: number("failed"),
            total_ns: ns("total_us"),
            p50_ns: ns("p50_us"),
            p99_ns: ns("p99_us"),
            max_ns: ns("max_us"),
            shape: said["shapes"].get(0).map(shape),
        }
    }
}

/// `<<<(128,2), 256, 48.0 KiB>>>`.
fn shape(said: &Value) -> String {
    let sizes = |key: &str| -> Vec<u64> {
        let all = said[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut sizes: Vec<u64> = all.iter().filter_map(Value::as_u64).take(3).collect();
        while sizes.len() > 1 && sizes.last() == Some(&1) {
            sizes.pop();
        }
        sizes
    };
    let words = |sizes: Vec<u64>| match sizes[..] {
        [one] => one.to_string(),
        _ => format!("({})", sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
    };
    let shared = match said["shared_bytes"].as_u64() {
        None | Some(0) => String::new(),
        Some(bytes) => format!(", {}", crate::sink::quantity::bytes(bytes)),
    };
    format!("<<<{}, {}{shared}>>>", words(sizes("grid")), words(sizes("block")))
}

/// Of what is kept for the driver's and for the runtime's view.
pub(super) fn index(view: View) -> Option<usize> {
    match view {
        View::Driver => Some(0),
        View::Runtime => Some(1),
        View::Other => None,
    }
}

/// The driver's view is the complete one; without it, the runtime's.
pub(super) fn seen(counts: &[u64; 2]) -> usize {
    usize::from(counts[0] == 0)
}
