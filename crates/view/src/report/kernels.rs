//! Launches by kernel.

use super::Map;
use super::functions::View;
use super::histogram::Histogram;
use super::texts::Texts;
use crate::model::snapshot::{self, Shape, Snapshot};
use crate::record::Record;
use serde::Serialize;

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
    /// Of the launches, those that only went into a graph; `None`: rows alone do not say.
    pub captured: Option<u64>,
    /// Runs by launches of graphs, beside the launches; the same.
    pub in_graphs: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    launches: u64,
    failed: u64,
    total_ns: u64,
    max_ns: u64,
    times: Histogram,
}

/// Launches by kernel.
#[derive(Debug, Clone, Default)]
pub(super) struct Kernels {
    names: Texts,
    of: [Map<u32, Tally>; 2],
    pub(super) launches: [u64; 2],
}

impl Kernels {
    pub(super) fn take(&mut self, event: &Record<'_>, view: View) {
        let Some(index) = index(view) else { return };
        let name = self.names.number(event.kernel.unwrap_or(event.name));
        let tally = self.of[index].entry(name).or_default();
        let (of_all, sum) = match event.failed {
            true => (0, &mut tally.failed),
            false => (event.count, &mut tally.launches),
        };
        *sum = sum.saturating_add(event.count);
        if let Some(ns) = event.ns {
            tally.total_ns = tally.total_ns.saturating_add(ns);
            tally.max_ns = tally.max_ns.max(ns);
            tally.times.add(ns);
        }
        self.launches[index] = self.launches[index].saturating_add(of_all);
    }

    /// Most runs first.
    pub(super) fn list(&self, exact: Option<&Snapshot>) -> Vec<Kernel> {
        let mut kernels: Vec<Kernel> = match exact.filter(|exact| !exact.kernels.is_empty()) {
            Some(exact) => exact.kernels.iter().map(Kernel::reported).collect(),
            None => self.of[fuller(&self.launches)]
                .iter()
                .map(|(name, tally)| self.kernel(*name, tally))
                .collect(),
        };
        kernels.sort_by(|a, b| b.runs().cmp(&a.runs()).then_with(|| a.name.cmp(&b.name)));
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
            captured: None,
            in_graphs: None,
        }
    }
}

impl Kernel {
    /// As a summary has it.
    fn reported(said: &snapshot::Kernel) -> Kernel {
        let reason = || said.reason.as_ref().map(|reason| format!("? ({reason})"));
        Kernel {
            name: said.name.clone().or_else(reason).unwrap_or_else(|| "?".to_owned()),
            launches: said.launches,
            failed: said.failed,
            total_ns: said.total_ns,
            p50_ns: said.p50_ns,
            p99_ns: said.p99_ns,
            max_ns: said.max_ns,
            shape: said.shapes.first().map(shape),
            captured: Some(said.captured),
            in_graphs: Some(said.in_graphs),
        }
    }

    /// How often it was put to work: launched, but for what only went into a graph, and by graphs.
    #[must_use]
    pub(crate) fn runs(&self) -> u64 {
        let launched = self.launches.saturating_sub(self.captured.unwrap_or(0));
        launched.saturating_add(self.in_graphs.unwrap_or(0))
    }
}

/// `<<<(128,2), 256, 48.0 KiB>>>`.
fn shape(shape: &Shape) -> String {
    let words = |sizes: &[u32; 3]| match *sizes {
        [one, 1, 1] => one.to_string(),
        [one, two, 1] => format!("({one},{two})"),
        [one, two, three] => format!("({one},{two},{three})"),
    };
    let shared = match shape.shared_bytes {
        0 => String::new(),
        bytes => format!(", {}", crate::text::quantity::bytes(bytes)),
    };
    format!("<<<{}, {}{shared}>>>", words(&shape.grid), words(&shape.block))
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

/// The driver's view, but where the runtime saw more.
pub(super) fn fuller(counts: &[u64; 2]) -> usize {
    match snapshot::View::fuller(counts[0], counts[1]) {
        snapshot::View::Driver => 0,
        snapshot::View::Runtime => 1,
    }
}
