//! Figures as one object, for a program.

use super::figures::{Figures, Group, Idle};
use super::nodes::Node;
use super::question::Span;
use super::write::notes;
use serde_json::{Map, Value, json as object};
use std::collections::BTreeMap;

/// All of it, in seconds; names as they are.
#[must_use]
pub fn json(figures: &Figures, span: &Span) -> String {
    let groups = |of: &[Group]| of.iter().map(group).collect::<Vec<_>>();
    let report = object!({
        "since_seconds": span.seconds(), "until": span.until_seconds, "user": span.user,
        "resolution_seconds": span.step_seconds(),
        "gpu_seconds": figures.gpu_seconds(), "gpu_bound_seconds": figures.bound_seconds(), "gpu_busy_seconds": figures.busy_seconds(),
        "used_seconds": figures.used_seconds(),
        "idle_gpu_seconds": idle(figures.idle()), "idle_by_reason": reasons(&figures.reasons),
        "idle_gpu_seconds_of_others": figures.rest_seconds,
        "users": groups(&figures.users), "jobs": groups(&figures.jobs), "programs": groups(&figures.programs),
        "nodes": figures.nodes.iter().map(node).collect::<Vec<_>>(),
        "versions": counts(&figures.versions), "drivers": counts(&figures.drivers),
        "notes": notes(figures, span),
    });
    format!("{}\n", crate::text::quantity::harmless(&report.to_string()))
}

fn idle(idle: Idle) -> Value {
    object!({"at_least": idle.bound, "inferred": idle.inferred})
}

fn reasons(reasons: &BTreeMap<String, Idle>) -> Map<String, Value> {
    reasons.iter().map(|(reason, of)| (reason.clone(), idle(*of))).collect()
}

fn group(group: &Group) -> Value {
    let known = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    object!({
        "user": known(&group.who.user), "job": known(&group.who.job), "program": known(&group.who.program),
        "idle_gpu_seconds": idle(group.idle()), "idle_by_reason": reasons(&group.reasons),
        "used_seconds": group.used_seconds(), "idle_at_least_seconds": group.idle_seconds,
        "hidden_wait_seconds": group.hidden_wait_seconds, "pageable_bytes": group.pageable_bytes,
    })
}

fn node(node: &Node) -> Value {
    object!({
        "node": node.name, "answered_share": node.share, "gpu_seconds": node.gpu_seconds, "gpu_bound_seconds": node.bound_seconds,
        "gpu_busy_seconds": node.busy_seconds, "lost_records": node.lost_records, "gaps": node.gaps,
    })
}

fn counts(counts: &[(String, u64)]) -> Vec<Value> {
    counts
        .iter()
        .map(|(name, number)| object!({"name": name, "number": number}))
        .collect()
}
