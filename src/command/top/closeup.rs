//! What the tracer knows of one process alone, as the screen has it. Pure.

use crate::model::memory::{Allocation, AllocationMap, SiteReport};
use crate::top::model::{Allocations, Closeup, Count, Function, InProgress, Single};
use crate::tracer;
use std::collections::HashMap;

/// `before`: calls by function, so many seconds ago.
pub(super) fn told(pid: u32, seen: tracer::Closeup, before: Option<&HashMap<String, u64>>, seconds: f64) -> Closeup {
    let in_progress = seen.in_progress.into_iter().map(|call| InProgress {
        tid: call.tid,
        thread: call.comm,
        functions: call.functions,
        seconds: call.ns as f64 / 1e9,
    });
    let speed = |name: &str, calls: u64| {
        let old = before?.get(name).copied().unwrap_or(0);
        (seconds > 0.0).then(|| calls.saturating_sub(old) as f64 / seconds)
    };
    let functions = seen.functions.into_iter().map(|one| Function {
        calls: Count {
            total: one.calls as f64,
            per_second: speed(&one.name, one.calls),
        },
        layer: one.layer,
        name: one.name,
        errors: one.errors,
        seconds: one.total_ns.map(|ns| ns as f64 / 1e9),
    });
    Closeup {
        pid,
        functions: functions.collect(),
        in_progress: in_progress.collect(),
        in_progress_unseen: seen.unseen,
        allocations: by_place(seen.sites, &seen.places),
        single_left_out: seen.map.as_ref().map_or(0, |map| map.left_out),
        single: seen.map.map(|map| single(map, &seen.places)),
    }
}

/// Several stacks may lead to one line.
fn by_place(sites: Vec<SiteReport>, places: &HashMap<u64, String>) -> Vec<Allocations> {
    let mut all: Vec<Allocations> = Vec::new();
    for new in sites.into_iter().filter_map(|site| held(site, places)) {
        let is_it = |known: &&mut Allocations| {
            let named = known.place.is_some() && known.place == new.place && known.function == new.function;
            named && known.family == new.family && known.device == new.device
        };
        match all.iter_mut().find(is_it) {
            Some(known) => {
                known.bytes = known.bytes.saturating_add(new.bytes);
                known.count += new.count;
                known.oldest_seconds = known.oldest_seconds.max(new.oldest_seconds);
                known.newest_seconds = known.newest_seconds.min(new.newest_seconds);
            }
            None => all.push(new),
        }
    }
    all.sort_by_key(|held| std::cmp::Reverse(held.bytes));
    all
}

fn single(map: AllocationMap, places: &HashMap<u64, String>) -> Vec<Single> {
    let one = |allocation: Allocation| Single {
        address: allocation.address.map(|address| format!("{address:#x}")),
        bytes: allocation.bytes,
        age_seconds: allocation.age_ns as f64 / 1e9,
        place: places.get(&allocation.site).cloned(),
        function: allocation.function,
        family: allocation.family.name().to_owned(),
        device: (allocation.device >= 0).then_some(allocation.device),
    };
    map.shown.into_iter().map(one).collect()
}

/// `None`: nothing of it is held.
fn held(site: SiteReport, places: &HashMap<u64, String>) -> Option<Allocations> {
    (site.account.held_bytes > 0).then(|| Allocations {
        place: places.get(&site.site).cloned(),
        function: site.function,
        family: site.family.name().to_owned(),
        device: (site.device >= 0).then_some(site.device),
        bytes: site.account.held_bytes,
        count: site.account.outstanding,
        oldest_seconds: site.oldest_ns as f64 / 1e9,
        newest_seconds: site.newest_ns as f64 / 1e9,
    })
}
