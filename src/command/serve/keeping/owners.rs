//! Whose the processes are of which something is kept, and whom an alarm means.

use crate::device::telemetry::Telemetry;
use crate::owner::Owner;
use crate::serve::gather;
use crate::serve::keep::{Program, Whom};
use crate::tracer::Tracer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any row of a process comes after its end.
const LATE: Duration = Duration::from_secs(5);

/// Whose the processes are: after their end nobody else can tell.
pub(super) struct Owners {
    owners: BTreeMap<u32, Arc<Owner>>,
    /// Of these, processes that were forgotten, of which rows may still come.
    departed: Vec<(Instant, u32)>,
    /// That owners have.
    labels: Vec<String>,
}

impl Owners {
    pub(super) fn labelled(labels: Vec<String>) -> Owners {
        Owners {
            owners: BTreeMap::new(),
            departed: Vec::new(),
            labels,
        }
    }

    pub(super) fn of(&self, pid: u32) -> Option<Arc<Owner>> {
        self.owners.get(&pid).cloned()
    }

    /// Learns whose the `processes` are, of which something is kept, and forgets others.
    pub(super) fn follow(&mut self, tracer: &mut Tracer, processes: &BTreeSet<u32>, now: Instant) {
        self.departed.retain(|(at, _)| now.duration_since(*at) < LATE);
        for (pid, owner) in tracer.take_departed() {
            self.departed.push((now, pid));
            self.owners.insert(pid, owner);
        }
        let departed: BTreeSet<u32> = self.departed.iter().map(|(_, pid)| *pid).collect();
        self.owners
            .retain(|pid, _| processes.contains(pid) || departed.contains(pid));
        let Some(directory) = tracer.directory() else { return };
        for pid in processes {
            // one that is forgotten must not be taken for somebody new
            if !self.owners.contains_key(pid)
                && directory.knows(*pid)
                && let Some(owner) = directory.settled(*pid)
            {
                self.owners.insert(*pid, owner);
            }
        }
    }

    /// Of `processes` those whose last moments are wanted, with all that are counted with them.
    pub(super) fn meant(&self, whom: &Whom, processes: &BTreeSet<u32>, telemetry: Option<&Telemetry>) -> BTreeSet<u32> {
        let chosen: BTreeSet<u32> = match whom {
            Whom::Everybody => return processes.clone(),
            Whom::Process(pid) => BTreeSet::from([*pid]),
            Whom::Asked(ask) => {
                let on_gpu = |gpu: &str| on_gpu(gpu, telemetry);
                let is_meant = |pid: &u32| {
                    let owner = self.owners.get(pid).map(AsRef::as_ref);
                    ask.means(&Program { pid: *pid, owner }, &self.labels, &on_gpu)
                };
                processes.iter().copied().filter(is_meant).collect()
            }
        };
        let owners: BTreeSet<&Arc<Owner>> = chosen.iter().filter_map(|pid| self.owners.get(pid)).collect();
        let belongs = |pid: &u32| chosen.contains(pid) || self.owners.get(pid).is_some_and(|of| owners.contains(of));
        processes.iter().copied().filter(belongs).collect()
    }
}

/// Processes that NVML lists on the GPU of that index.
fn on_gpu(index: &str, telemetry: Option<&Telemetry>) -> BTreeSet<u32> {
    let Some(telemetry) = telemetry else {
        return BTreeSet::new();
    };
    let gpus = gather::gpus(telemetry);
    let is_there = |device: &str| gpus.get(device).is_some_and(|gpu| gpu.index == index);
    let there = telemetry.processes.iter().filter(|process| is_there(&process.device));
    there.filter_map(|process| process.pid).collect()
}
