//! Numbers of two recordings side by side.

use super::super::{Idle, Report, sum};
use super::told::{caused, executed};
use super::{NOTICED, ratio};
use crate::model::activity::Why;
use serde::Serialize;
use std::collections::BTreeMap;

const IDLE: &str = "GPU idle at least";
/// Left out where CUPTI has told nothing.
const OF_DEVICES: [&str; 3] = ["GPU busy, as executed", "GPU idle, as executed", "GPU time of kernels"];
/// Left out where there are none.
const OF_GRAPHS: [&str; 2] = ["graph launches", "kernels run"];

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Ns,
    Bytes,
    Count,
}

/// One number before and after.
#[derive(Debug, Clone, Serialize)]
pub struct Measure {
    pub name: &'static str,
    pub unit: Unit,
    /// `None`: the recording does not say.
    pub before: Option<u64>,
    pub after: Option<u64>,
    /// By launch, where it grows with work.
    pub before_per_launch: Option<f64>,
    pub after_per_launch: Option<f64>,
    /// Of the wall time that totals are of, where it is time.
    pub before_share: Option<f64>,
    pub after_share: Option<f64>,
    /// `regression` looks at it.
    pub judged: bool,
}

impl Measure {
    /// As a part of what it was; `None`: there is nothing to compare with.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        ratio(self.before? as f64, self.after? as f64)
    }

    /// The same by launch.
    #[must_use]
    pub(crate) fn change_per_launch(&self) -> Option<f64> {
        ratio(self.before_per_launch?, self.after_per_launch?)
    }

    /// Whether it is worth a line of its own.
    #[must_use]
    pub(crate) fn has_changed(&self) -> bool {
        let is_noticed = |change: Option<f64>| change.is_some_and(|change| change.abs() >= NOTICED);
        let appeared = self.change().is_none() && self.before != self.after;
        appeared || is_noticed(self.change()) || is_noticed(self.change_per_launch())
    }

    /// How much it changed, whichever way; what came out of nothing first.
    pub(super) fn weight(&self) -> f64 {
        match (self.before.unwrap_or(0), self.after.unwrap_or(0)) {
            (before, after) if before == after => 0.0,
            (0, _) | (_, 0) => f64::INFINITY,
            (before, after) => (after as f64 / before as f64).ln().abs(),
        }
    }
}

/// All that say something.
pub(super) fn measures(before: &Report, after: &Report) -> Vec<Measure> {
    let one = |name, unit, of: &dyn Fn(&Report) -> Option<u64>| Measure::of(name, unit, before, after, of);
    let (same_before, same_after) = same_calls(before, after);
    let per_call = Measure {
        before: same_before,
        after: same_after,
        before_per_launch: None,
        after_per_launch: None,
        before_share: None,
        after_share: None,
        judged: true,
        ..one("time of the same calls", Unit::Ns, &|_| None)
    };
    let mut all = vec![
        one("wall time", Unit::Ns, &|report| Some(report.totals_ns())).judged(),
        per_call,
        one("CUDA calls", Unit::Count, &|report| {
            report.cuda().map(|layer| layer.calls)
        }),
        one("launches", Unit::Count, &|report| Some(report.launches().number)),
        one(OF_GRAPHS[0], Unit::Count, &|report| {
            report.graphs().map(|graphs| graphs.launches)
        }),
        one(OF_GRAPHS[1], Unit::Count, &Report::kernel_runs),
        one("copied", Unit::Bytes, &|report| Some(report.copied_bytes())),
        one("waiting in calls", Unit::Ns, &|report| Some(report.wait_ns())),
        one("waits nobody asked for", Unit::Ns, &|report| {
            report.exact.then(|| report.hidden_ns().0)
        }),
        one(IDLE, Unit::Ns, &|report| {
            (!report.idle.is_empty()).then(|| sum(report.idle.iter().map(|idle| idle.total_ns)))
        }),
        one(OF_DEVICES[0], Unit::Ns, &|report| {
            executed(report, |device| device.busy_ns)
        }),
        one(OF_DEVICES[1], Unit::Ns, &|report| {
            executed(report, |device| device.idle_ns)
        }),
        one(OF_DEVICES[2], Unit::Ns, &|report| {
            executed(report, |device| device.kernel_ns)
        }),
    ];
    all.extend(
        Why::ALL
            .iter()
            .map(|why| one(why.title(), Unit::Ns, &|report| caused(report, *why))),
    );
    all.extend([
        one("memory peak", Unit::Bytes, &|report| report.memory.peak_bytes()).judged(),
        one("allocations", Unit::Count, &|report| Some(report.memory.allocations)),
        one("failed calls", Unit::Count, &|report| Some(report.failed().number)),
    ]);
    // a peak of memory is no work that is shared out
    for measure in all
        .iter_mut()
        .filter(|measure| ["memory peak", "launches"].contains(&measure.name))
    {
        (measure.before_per_launch, measure.after_per_launch) = (None, None);
    }
    let idle = |report: &Report| {
        let of = |of: fn(&Idle) -> u64| sum(report.idle.iter().map(of));
        let window = of(|idle| idle.window_ns);
        (window > 0).then(|| of(|idle| idle.total_ns) as f64 / window as f64)
    };
    for measure in all.iter_mut().filter(|measure| measure.name == IDLE) {
        (measure.before_share, measure.after_share) = (idle(before), idle(after));
    }
    let no_graphs = |report: &Report| report.graphs().unwrap_or_default().launches == 0;
    if no_graphs(before) && no_graphs(after) {
        all.retain(|measure| !OF_GRAPHS.contains(&measure.name));
    }
    let says = |measure: &Measure| measure.before.is_some() || measure.after.is_some();
    all.retain(|measure| says(measure) || !OF_DEVICES.contains(&measure.name));
    let is_cause = |measure: &Measure| Why::ALL.iter().any(|why| why.title() == measure.name);
    all.retain(|measure| measure.before.max(measure.after) > Some(0) || !is_cause(measure));
    all
}

impl Measure {
    fn of(
        name: &'static str,
        unit: Unit,
        before: &Report,
        after: &Report,
        of: &dyn Fn(&Report) -> Option<u64>,
    ) -> Measure {
        let per_launch = |report: &Report| {
            let launches = report.launches().number;
            of(report)
                .filter(|_| launches > 0)
                .map(|number| number as f64 / launches as f64)
        };
        let share = |report: &Report| {
            let number = of(report).filter(|_| unit == Unit::Ns && report.totals_ns() > 0)?;
            Some(number as f64 / report.totals_ns() as f64)
        };
        Measure {
            name,
            unit,
            before: of(before),
            after: of(after),
            before_per_launch: per_launch(before),
            after_per_launch: per_launch(after),
            before_share: share(before),
            after_share: share(after),
            judged: false,
        }
    }

    fn judged(self) -> Measure {
        Measure { judged: true, ..self }
    }
}

/// Time of the second's calls of functions that both called: at the mean time of the first, and as they were. A mix of
/// other functions does not change it.
fn same_calls(before: &Report, after: &Report) -> (Option<u64>, Option<u64>) {
    let (Some(old), Some(new)) = (before.cuda(), after.cuda()) else {
        return (None, None);
    };
    let means: BTreeMap<&str, f64> = old
        .functions
        .iter()
        .filter(|function| function.calls > 0)
        .filter_map(|function| {
            Some((
                function.name.as_str(),
                function.total_ns? as f64 / function.calls as f64,
            ))
        })
        .collect();
    let (mut at_old, mut at_new) = (0.0, 0);
    for function in &new.functions {
        if let (Some(mean), Some(total)) = (means.get(function.name.as_str()), function.total_ns) {
            at_old += mean * function.calls as f64;
            at_new = total.saturating_add(at_new);
        }
    }
    match at_old > 0.0 {
        true => (Some(at_old.round() as u64), Some(at_new)),
        false => (None, None),
    }
}
