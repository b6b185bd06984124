//! What changed between two recordings.

mod markdown;
mod tables;
mod text;
mod told;

pub use markdown::markdown;
pub use text::page;

use super::{Function, Idle, Report, sum, words};
use crate::model::activity::Why;
use crate::model::finding::Finding;
use crate::section::{Chapter, Section};
use crate::sink::findings::finding_json;
use crate::text::quantity::harmless;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use told::{caused, executed};

/// What is less than this part of what it was, or of the wall time, has not changed.
const NOTICED: f64 = 0.01;

const IDLE: &str = "GPU idle at least";
/// Left out where CUPTI has told nothing.
const OF_DEVICES: [&str; 3] = ["GPU busy, as executed", "GPU idle, as executed", "GPU time of kernels"];
/// Left out where there are none.
const OF_GRAPHS: [&str; 2] = ["graph launches", "kernels run"];

/// What changed between two recordings.
#[derive(Debug, Clone)]
pub struct Diff<'a> {
    pub before: &'a Report,
    pub after: &'a Report,
    /// Most changed first.
    pub measures: Vec<Measure>,
    /// Most time gained or lost first.
    pub functions: Vec<FunctionChange>,
    /// Of the second recording alone, most expensive first.
    pub appeared: Vec<&'a Finding>,
    /// Of the first alone.
    pub gone: Vec<&'a Finding>,
    /// Of both: before, after.
    pub stayed: Vec<(&'a Finding, &'a Finding)>,
}

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
    /// Of the wall time, where it is time.
    pub before_share: Option<f64>,
    pub after_share: Option<f64>,
    /// `regression` looks at it.
    pub judged: bool,
}

/// One function before and after.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionChange {
    pub layer: String,
    pub name: String,
    pub before_calls: u64,
    pub after_calls: u64,
    pub before_ns: u64,
    pub after_ns: u64,
    pub before_errors: u64,
    pub after_errors: u64,
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
    fn weight(&self) -> f64 {
        match (self.before.unwrap_or(0), self.after.unwrap_or(0)) {
            (before, after) if before == after => 0.0,
            (0, _) | (_, 0) => f64::INFINITY,
            (before, after) => (after as f64 / before as f64).ln().abs(),
        }
    }
}

impl FunctionChange {
    /// Time gained (less than 0) or lost, ns.
    #[must_use]
    pub(crate) fn more_ns(&self) -> i64 {
        (self.after_ns as i64).saturating_sub(self.before_ns as i64)
    }

    /// Of the mean time of a call.
    #[must_use]
    pub(crate) fn mean_change(&self) -> Option<f64> {
        let mean = |ns: u64, calls: u64| ns as f64 / calls as f64;
        ratio(
            mean(self.before_ns, self.before_calls),
            mean(self.after_ns, self.after_calls),
        )
    }
}

fn ratio(before: f64, after: f64) -> Option<f64> {
    (before > 0.0 && after.is_finite()).then(|| after / before - 1.0)
}

/// Compares.
#[must_use]
pub fn diff<'a>(before: &'a Report, after: &'a Report) -> Diff<'a> {
    let mut measures = measures(before, after);
    measures.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    let mut gone: Vec<&Finding> = before.findings.iter().collect();
    let mut appeared: Vec<&Finding> = after.findings.iter().collect();
    let mut stayed = paired(&mut gone, &mut appeared, |a, b| words::place(a) == words::place(b));
    // stacks were taken of one of them alone: it may well be the same line
    let one_is_placeless = |a: &Finding, b: &Finding| words::place(a).is_none() || words::place(b).is_none();
    stayed.extend(paired(&mut gone, &mut appeared, one_is_placeless));
    stayed.sort_by_key(|(_, after)| (!after.grave, std::cmp::Reverse(after.cost_ns)));
    Diff {
        functions: functions(before, after),
        before,
        after,
        measures,
        appeared,
        gone,
        stayed,
    }
}

/// Takes findings of one rule out of both that are `same`.
fn paired<'a>(
    before: &mut Vec<&'a Finding>,
    after: &mut Vec<&'a Finding>,
    same: impl Fn(&Finding, &Finding) -> bool,
) -> Vec<(&'a Finding, &'a Finding)> {
    let mut pairs = Vec::new();
    after.retain(|finding| {
        let old = before
            .iter()
            .position(|old| old.rule == finding.rule && same(old, finding));
        old.is_none_or(|old| {
            pairs.push((before.remove(old), *finding));
            false
        })
    });
    pairs
}

fn measures(before: &Report, after: &Report) -> Vec<Measure> {
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
        one("wall time", Unit::Ns, &|report| Some(report.wall_ns())).judged(),
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
            let number = of(report).filter(|_| unit == Unit::Ns && report.wall_ns() > 0)?;
            Some(number as f64 / report.wall_ns() as f64)
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

fn functions(before: &Report, after: &Report) -> Vec<FunctionChange> {
    let mut changes: BTreeMap<(&str, &str), FunctionChange> = BTreeMap::new();
    for (report, is_after) in [(before, false), (after, true)] {
        for function in report.layers.iter().flat_map(|layer| &layer.functions) {
            let key = (function.layer.as_str(), function.name.as_str());
            let change = changes.entry(key).or_insert_with(|| FunctionChange::of(function));
            let (calls, ns, errors) = match is_after {
                false => (
                    &mut change.before_calls,
                    &mut change.before_ns,
                    &mut change.before_errors,
                ),
                true => (&mut change.after_calls, &mut change.after_ns, &mut change.after_errors),
            };
            *calls = function.calls;
            *ns = function.total_ns.unwrap_or(0);
            *errors = function.errors.unwrap_or(0);
        }
    }
    let wall = before.wall_ns().max(after.wall_ns()) as f64;
    let mut changes: Vec<FunctionChange> = changes.into_values().filter(|change| change.is_noticed(wall)).collect();
    let more_calls = |change: &FunctionChange| change.before_calls.abs_diff(change.after_calls);
    changes.sort_by(|a, b| {
        let time = b.more_ns().unsigned_abs().cmp(&a.more_ns().unsigned_abs());
        time.then(more_calls(b).cmp(&more_calls(a)))
            .then_with(|| a.name.cmp(&b.name))
    });
    changes
}

impl FunctionChange {
    fn of(function: &Function) -> FunctionChange {
        FunctionChange {
            layer: function.layer.clone(),
            name: function.name.clone(),
            before_calls: 0,
            after_calls: 0,
            before_ns: 0,
            after_ns: 0,
            before_errors: 0,
            after_errors: 0,
        }
    }

    fn is_noticed(&self, wall_ns: f64) -> bool {
        let calls = ratio(self.before_calls as f64, self.after_calls as f64);
        self.before_errors != self.after_errors
            || calls.is_none_or(|change| change.abs() >= NOTICED)
            || self.more_ns().unsigned_abs() as f64 >= wall_ns * NOTICED
    }
}

/// The tables of it.
fn chapter(diff: &Diff<'_>) -> Chapter {
    let sections = [tables::measures(diff), tables::functions(diff)];
    Chapter {
        id: "changes",
        name: "Changes",
        title: "What changed".to_owned(),
        sections: sections.into_iter().filter(Section::says).collect(),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: &'static str,
    version: u32,
    before: SideJson<'a>,
    after: SideJson<'a>,
    measures: Vec<MeasureJson<'a>>,
    functions: &'a [FunctionChange],
    findings_appeared: Vec<Value>,
    findings_gone: Vec<Value>,
    findings_stayed: Vec<(Value, Value)>,
}

#[derive(Serialize)]
struct SideJson<'a> {
    file: &'a str,
    wall_ns: u64,
    launches: u64,
    cut: Option<&'a str>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct MeasureJson<'a> {
    #[serde(flatten)]
    measure: &'a Measure,
    change: Option<f64>,
    change_per_launch: Option<f64>,
}

/// One JSON object, as a line: docs/report.md has its schema.
#[must_use]
pub fn to_line(diff: &Diff<'_>) -> String {
    let (old, new) = (&diff.before.run, &diff.after.run);
    let document = Document {
        r#type: "diff",
        version: super::json::VERSION,
        before: side(diff.before),
        after: side(diff.after),
        measures: diff
            .measures
            .iter()
            .map(|measure| MeasureJson {
                measure,
                change: measure.change(),
                change_per_launch: measure.change_per_launch(),
            })
            .collect(),
        functions: &diff.functions,
        findings_appeared: diff.appeared.iter().map(|one| finding_json(one, new)).collect(),
        findings_gone: diff.gone.iter().map(|one| finding_json(one, old)).collect(),
        findings_stayed: diff
            .stayed
            .iter()
            .map(|(before, after)| (finding_json(before, old), finding_json(after, new)))
            .collect(),
    };
    // plain data with keys of text: nothing in it can fail
    harmless(&serde_json::to_string(&document).unwrap_or_default()) + "\n"
}

fn side(report: &Report) -> SideJson<'_> {
    SideJson {
        file: &report.source.name,
        wall_ns: report.wall_ns(),
        launches: report.launches().number,
        cut: report.source.cut.as_deref(),
        notes: &report.notes,
    }
}
