//! What two engines do not count alike.

use super::super::Report;
use crate::catalog::Class;
use crate::text::quantity::plural;
use std::collections::BTreeMap;

/// What does not compare where recordings are of different engines; `None`: they are of the same, or do not say.
pub(super) fn note(before: &Report, after: &Report) -> Option<String> {
    let engine = |report: &Report| Some(report.totals.engine.as_ref()?.name.clone());
    let (old, new) = (engine(before)?, engine(after)?);
    (old != new).then(|| {
        format!(
            "recorded by different engines ({old}, then {new}), whose calls cost differently{}",
            alone(before, after)
        )
    })
}

/// Questions that one of them alone has counted.
fn alone(before: &Report, after: &Report) -> String {
    let asked = |report: &Report| -> BTreeMap<String, u64> {
        let functions = report.layers.iter().flat_map(|layer| &layer.functions);
        let asked = functions.filter(|function| function.category == Class::Query.name() && function.calls > 0);
        asked.map(|function| (function.name.clone(), function.calls)).collect()
    };
    let (old, new) = (asked(before), asked(after));
    let only = |these: &BTreeMap<String, u64>, those: &BTreeMap<String, u64>| -> (usize, u64) {
        let alone = these.iter().filter(|(name, _)| !those.contains_key(*name));
        alone.fold((0, 0), |(functions, calls), (_, more)| {
            (functions + 1, calls.saturating_add(*more))
        })
    };
    let (before, after) = (only(&old, &new), only(&new, &old));
    let (functions, calls) = (before.0 + after.0, before.1.saturating_add(after.1));
    match functions {
        0 => String::new(),
        _ => format!(
            "; {} of {} that only ask are counted in one of them alone (the kernel's engine takes these with --getters)",
            plural(calls, "call"),
            plural(functions as u64, "function")
        ),
    }
}
