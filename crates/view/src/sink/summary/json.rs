//! The summary as JSON, and the totals of a run that goes on.

use super::super::memory::{self, Rates};
use super::super::{activity, aggregate, cost, driver, findings};
use super::super::{kernels, outside, steps, totals, work, xid};
use crate::model::summary::{Function, Summary};
use crate::text::quantity::harmless;
use serde_json::{Value, json};

/// The summary as one JSON object of type `summary`.
pub fn to_json(summary: &Summary) -> Value {
    let functions: Vec<Value> = summary.functions.iter().map(function_json).collect();
    let failures = summary.failures.iter().map(|failure| {
        json!({"name": failure.function, "error": failure.error, "code": failure.code, "count": failure.count})
    });
    let copies = summary.copies.iter().map(|copies| {
        let direction = copies.direction.map_or("by address", |direction| direction.name());
        json!({"layer": copies.layer, "direction": direction, "calls": copies.calls, "bytes": copies.bytes})
    });
    let open = summary.open.iter().map(|call| {
        json!({
            "layer": call.layer, "name": call.function, "pid": call.pid, "tid": call.tid, "comm": call.comm,
            "open_us": call.ns as f64 / 1e3, "ended": call.ended,
            "stack": call.stack.as_ref().map(|stack| stack.iter().map(crate::frame::json::frame_json).collect::<Vec<_>>()),
        })
    });
    let under_way = summary
        .under_way
        .iter()
        .map(|layer| json!({"layer": layer.layer, "at_begin": layer.at_begin, "at_end": layer.at_end}));
    let (findings, no_findings) = findings::to_json(&summary.findings);
    let (steps, no_steps) = steps::to_json(&summary.steps);
    let mut all = json!({
        "type": "summary",
        "seconds": summary.seconds,
        "functions": functions,
        "failures": failures.collect::<Vec<_>>(),
        "kernels": kernels::to_json(&summary.kernels, summary.full_names),
        "aggregates": aggregate::to_json(&summary.aggregates, &summary.memory.stacks),
        "copies": copies.collect::<Vec<_>>(),
        "totals": totals::to_json(&summary.totals),
        "under_way": under_way.collect::<Vec<_>>(),
        "open_calls": open.collect::<Vec<_>>(),
        "outside_cuda": summary.outside.as_ref().map(outside::to_json),
        "lost_events": summary.lost_events,
        "malformed_events": summary.malformed,
        "processes": summary.processes,
        "unseen": summary.unseen,
        "counted_only": summary.counted_only,
        "attached": summary.attached,
        "attach": summary.tier,
        "engine": summary.engine.as_ref().map(|chosen| json!({"name": chosen.engine, "because": chosen.why})),
        "memory": memory::processes(&summary.memory, &Rates::of_all(&summary.memory)),
        "driver_objects": summary.driver.as_ref().map(driver::to_json),
        "work": work::to_json(&summary.work, &summary.memory.stacks),
        "xids": xid::to_json(&summary.xids),
        "more_xids": summary.more_xids,
        "findings": findings,
        "no_findings": no_findings,
        "not_explained": findings::unexplained_json(&summary.findings),
        "steps": steps,
        "no_steps": no_steps,
        "cost": cost::to_json(&summary.cost, summary.seconds),
    });
    if let Some(gpu) = &summary.gpu {
        all["gpu"] = activity::to_json(gpu, &summary.memory.stacks, summary.full_names);
    }
    all
}

/// The same as one line that no terminal obeys.
pub fn to_json_line(summary: &Summary) -> String {
    harmless(&to_json(summary).to_string())
}

/// Of a snapshot, what its run tells at its end alone is null.
pub(super) const AT_THE_END: [&str; 5] = ["cost", "findings", "not_explained", "steps", "no_steps"];

/// Of what devices did, what call stacks are needed for.
const OF_SITES: [&str; 2] = ["by_site", "unattributed_us"];

/// The totals of a run that goes on, as the summary has them: one JSON object of type `snapshot`, as one line. Call stacks are
/// not named for it, and what needs them, or the end, is null or missing: docs/trace-format.md says which.
pub fn to_snapshot_line(so_far: &Summary) -> String {
    let mut totals = to_json(so_far);
    totals["type"] = json!("snapshot");
    for key in AT_THE_END {
        totals[key] = Value::Null;
    }
    if so_far.aggregates.iter().any(aggregate::is_by_stack) {
        totals["aggregates"] = Value::Null;
    }
    if let Some(gpu) = totals["gpu"].as_object_mut() {
        gpu.extend(OF_SITES.map(|key| (key.to_owned(), Value::Null)));
    }
    leave_out(&mut totals["memory"], "sites");
    leave_out(&mut totals["work"], "streams");
    harmless(&totals.to_string())
}

fn leave_out(processes: &mut Value, key: &str) {
    let processes = processes.as_array_mut().into_iter().flatten();
    processes.for_each(|process| process[key] = Value::Null);
}

fn function_json(function: &Function) -> Value {
    let mut value = json!({
        "layer": function.label,
        "name": function.name,
        "category": function.class.category(),
        "calls": function.calls,
        "errors": function.timed.then_some(function.errors),
        "bytes": function.bytes,
        "unfinished": function.unfinished,
        "lost": function.lost,
        "without_args": function.without_args,
    });
    if function.timed {
        value["total_us"] = json!(function.total_ns as f64 / 1e3);
        value["max_us"] = json!(function.max_ns as f64 / 1e3);
        value["p50_us"] = json!(function.p50_ns as f64 / 1e3);
        value["p99_us"] = json!(function.p99_ns as f64 / 1e3);
    }
    if function.standstill_ns > 0 {
        value["standstill_us"] = json!(function.standstill_ns as f64 / 1e3);
    }
    if let Some(share) = function.driver {
        value["driver_calls"] = json!(share.calls);
        value["driver_us"] = json!(share.ns as f64 / 1e3);
    }
    value
}
