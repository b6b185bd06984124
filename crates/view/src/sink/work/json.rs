//! The reports as objects, by the contract in docs/output.md.

use super::super::micros;
use super::Stacks;
use crate::frame::json::frame_json;
use crate::model::memory::Origin;
use crate::model::work::{
    Certainty, CopyReport, Created, GpuReport, GraphReport, HiddenWait, ProcessReport, SIZE_BUCKETS, StreamReport,
    WaitReport,
};
use serde_json::{Map, Value, json};

/// One object for each process.
pub(crate) fn to_json(processes: &[ProcessReport], stacks: &Stacks) -> Vec<Value> {
    processes.iter().map(|process| of_process(process, stacks)).collect()
}

fn of_process(process: &ProcessReport, stacks: &Stacks) -> Value {
    let waits = process.waits.iter().map(|wait| of_wait(wait, stacks));
    let hidden = process.hidden.iter().map(|wait| of_hidden(wait, stacks));
    json!({
        "pid": process.pid,
        "comm": process.comm,
        "watched": match process.origin {
            Origin::Start => "start",
            Origin::Late => "late",
        },
        "copies": process.copies.iter().map(of_copies).collect::<Vec<_>>(),
        "streams": process.streams.iter().map(of_stream).collect::<Vec<_>>(),
        "created": of_created(&process.created),
        "waits": waits.collect::<Vec<_>>(),
        "hidden": hidden.collect::<Vec<_>>(),
        "gpu": of_gpu(&process.gpu),
        "graphs": of_graphs(&process.graphs),
        "lost": {
            "copies": process.lost.copies,
            "bytes": process.lost.bytes,
            "others": process.lost.others,
        },
    })
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

fn of_copies(copies: &CopyReport) -> Value {
    let speed = copies.bandwidth;
    let sizes = copies.sizes.iter().enumerate().filter(|(_, number)| **number > 0);
    json!({
        "direction": copies.direction.map(|direction| direction.name()),
        "host": copies.host.map(|host| host.name()),
        "blocking": copies.blocking,
        "count": copies.count,
        "bytes": copies.bytes,
        "unsized": copies.unsized_count,
        "call_us": micros(copies.call_ns),
        "sizes": sizes.map(|(bucket, number)| json!([lower_bound(bucket), number])).collect::<Vec<_>>(),
        "bytes_per_second": speed.map(|speed| speed.bytes_per_second()),
        "certainty": speed.map(|speed| speed.certainty.name()),
        "bound": speed.filter(|speed| speed.certainty == Certainty::Bound).map(|_| "at_least"),
    })
}

/// The least size in a bucket; the first holds those of no bytes, too.
fn lower_bound(bucket: usize) -> u64 {
    match bucket.min(SIZE_BUCKETS) {
        0 => 0,
        bucket => 1 << bucket,
    }
}

fn of_stream(stream: &StreamReport) -> Value {
    let copied = stream.copied.iter();
    let copied: Map<String, Value> = copied
        .map(|(direction, bytes)| (direction.name().to_owned(), json!(bytes)))
        .collect();
    json!({
        "stream": hex(stream.stream),
        "context": (stream.context != 0).then(|| hex(stream.context)),
        "thread": stream.tid,
        "priority": stream.priority,
        "nonblocking": stream.nonblocking,
        "submissions": stream.submissions,
        "copied": copied,
        "busy_at_most_us": micros(stream.busy_at_most_ns),
        "depth_at_most": stream.depth_at_most,
        "blocked_us": micros(stream.blocked_ns),
        "alive": stream.alive,
    })
}

fn of_created(created: &Created) -> Value {
    json!({
        "streams": created.streams,
        "streams_destroyed": created.streams_destroyed,
        "events": created.events,
        "events_destroyed": created.events_destroyed,
    })
}

fn of_wait(wait: &WaitReport, stacks: &Stacks) -> Value {
    let object = json!({
        "function": wait.function,
        "stream": wait.stream.map(hex),
        "count": wait.count,
        "total_us": micros(wait.total_ns),
        "max_us": micros(wait.max_ns),
    });
    with_stack(object, wait.site, stacks)
}

fn of_hidden(wait: &HiddenWait, stacks: &Stacks) -> Value {
    let object = json!({
        "kind": wait.kind.name(),
        "count": wait.count,
        "total_us": micros(wait.total_ns),
        "certainty": wait.certainty.name(),
    });
    with_stack(object, wait.site, stacks)
}

fn with_stack(mut object: Value, site: u64, stacks: &Stacks) -> Value {
    if let Some(frames) = stacks.get(&site) {
        object["stack"] = frames.iter().map(frame_json).collect();
    }
    object
}

fn of_gpu(gpu: &GpuReport) -> Value {
    let certainty = match gpu.inferred {
        true => Certainty::Inferred,
        false => Certainty::Bound,
    };
    json!({
        "window_us": micros(gpu.window_ns),
        "busy_at_most_us": micros(gpu.busy_at_most_ns),
        "idle_at_least_us": micros(gpu.idle_at_least_ns),
        "idle_likely_us": micros(gpu.idle_likely_ns),
        "window_start_ns": gpu.from_at,
        "window_end_ns": gpu.until_at,
        "certainty": certainty.name(),
        "idle_gaps": gpu.idle_gaps,
        "longest_idle_us": micros(gpu.longest_idle_ns),
        "elapsed": {
            "count": gpu.elapsed_count,
            "total_us": micros(gpu.elapsed_ns),
            "certainty": Certainty::Measured.name(),
        },
        "back_pressure": {
            "count": gpu.slow_submissions,
            "total_us": micros(gpu.slow_submission_ns),
            "depth_at_most": gpu.slow_depth_at_most,
            "certainty": Certainty::Inferred.name(),
        },
        "notes": gpu.notes,
    })
}

fn of_graphs(graphs: &GraphReport) -> Value {
    json!({
        "launches": graphs.launches,
        "known_launches": graphs.known_launches,
        "kernels": graphs.kernels,
        "copies": graphs.copies,
        "memsets": graphs.memsets,
        "captured": graphs.captured,
    })
}
