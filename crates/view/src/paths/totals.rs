//! What the totals of a run have beyond its rows: calls and activities may have none.

use super::frames::{Frames, NO_PATH, NO_ROW, Process};
use super::growing::{Growing, aside};
use super::tree::Sum;
use crate::model::snapshot::executed::Device;
use crate::model::snapshot::{Snapshot, View, Work};

/// Time of each process on each device.
pub(super) fn executed(exact: Option<&Snapshot>) -> Vec<(Process, Sum)> {
    let gpu = exact.and_then(|exact| exact.gpu.as_ref());
    let devices = gpu.iter().flat_map(|gpu| &gpu.devices);
    devices
        .map(|device| ((device.pid, Some(device.device)), of_device(device)))
        .collect()
}

fn of_device(device: &Device) -> Sum {
    let mut sum = Sum {
        ns: device.kernel_ns.saturating_add(device.memset_ns),
        count: device.kernels.saturating_add(device.memsets),
    };
    for copies in &device.copies {
        sum.add(Sum {
            ns: copies.total_ns,
            count: copies.count,
        });
    }
    sum
}

/// Time that each process waited, as the driver's calls say.
pub(super) fn waited(exact: Option<&Snapshot>) -> Vec<(Process, Sum)> {
    let work = exact.iter().flat_map(|exact| &exact.work);
    work.map(|work| ((work.pid, None), of_work(work))).collect()
}

fn of_work(work: &Work) -> Sum {
    let waits = work.waits.iter().map(|wait| (wait.total_ns, wait.count));
    let copies = work.copies.iter().filter(|copies| copies.blocking);
    let mut sum = Sum::default();
    for (ns, count) in waits.chain(copies.map(|copies| (copies.call_ns, copies.count))) {
        sum.add(Sum { ns, count });
    }
    sum
}

/// Time in waits of the runtime.
pub(super) fn synced(exact: Option<&Snapshot>) -> Sum {
    let functions = exact.iter().flat_map(|exact| &exact.functions);
    let mut sum = Sum::default();
    for function in functions.filter(|function| function.layer == "runtime" && function.category == "sync") {
        sum.add(Sum {
            ns: function.total_ns.unwrap_or(0),
            count: function.calls,
        });
    }
    sum
}

/// Whose waits are shown: the driver's are all there are, but where the runtime saw more. `rows`: how many each has.
pub(super) fn view(exact: Option<&Snapshot>, rows: [u64; 2]) -> View {
    let by_rows = View::fuller(rows[0], rows[1]);
    let Some(exact) = exact else { return by_rows };
    let driver = exact.work.iter().flat_map(|work| &work.waits);
    let driver = driver.fold(0, |sum: u64, wait| sum.saturating_add(wait.count));
    View::fuller(driver, exact.calls_of("sync", View::Runtime))
}

/// Adds what is missing of each process.
pub(super) fn complete(mut grown: Growing, exact: &[(Process, Sum)], frames: &mut Frames) -> Growing {
    let known = grown.nodes();
    for (process, exact) in exact {
        let Some(at) = grown.step(Growing::ROOT, frames.process(*process)).node() else {
            continue;
        };
        let known = known.get(at).map(|node| node.total).unwrap_or_default();
        let missing = missing(*exact, known);
        if missing.ns > 0 {
            let at = aside(&mut grown, frames, *process, NO_PATH);
            let end = grown.step(at, NO_ROW);
            grown.add(end, missing);
        }
    }
    grown
}

/// The same where totals do not tell processes apart.
pub(super) fn complete_all(mut grown: Growing, exact: Sum, known: Sum) -> Growing {
    let missing = missing(exact, known);
    if missing.ns > 0 {
        let at = grown.step(Growing::ROOT, NO_PATH);
        let end = grown.step(at, NO_ROW);
        grown.add(end, missing);
    }
    grown
}

fn missing(exact: Sum, known: Sum) -> Sum {
    Sum {
        ns: exact.ns.saturating_sub(known.ns),
        count: exact.count.saturating_sub(known.count),
    }
}
