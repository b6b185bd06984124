//! Functions of two recordings side by side.

use super::super::{Function, Report};
use super::{NOTICED, ratio};
use serde::Serialize;
use std::collections::BTreeMap;

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

/// Those that have changed, most time gained or lost first.
pub(super) fn functions(before: &Report, after: &Report) -> Vec<FunctionChange> {
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
