//! What is measured beside calls, for those who record: calls that become no lines, who holds how much, idle times,
//! whether threads had a processor, and what NVML says.
//!
//! Owns when these are asked. Numbers of memory and of work are the models'.

use super::Tracer;
use crate::device::telemetry::{Gpu, Sampler, Telemetry};
use crate::model::activity::{Idle, Waited};
use crate::model::beside::{Measure, Measured};
use crate::model::work::Gap;
use crate::wire::RowCounter;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often threads are looked at.
const THREADS_EVERY: Duration = Duration::from_millis(100);
/// Threads that are looked at.
const MOST_THREADS: usize = 512;
/// How long an idle time is kept back: a call that ends it may return, and be told of, as much later.
const GAP_LATE_NS: u64 = 500_000_000;
/// Shorter idle times are not told one by one: facts on findings, rule 6.
const SHORTEST_GAP_NS: u64 = 20_000;

/// Time on a processor, and time that a thread waited for one, in all.
type Scheduled = (u64, u64);

/// What is measured beside calls, for those who record.
pub(super) struct MeasurePlane {
    /// By TID, with TGID.
    threads: BTreeMap<u32, (u32, Scheduled)>,
    /// Rows whose calls become no lines, and how many were told.
    quiet: BTreeMap<u32, u64>,
    /// The only process that called, as far as is known.
    sole: Option<u32>,
    looked: Instant,
    sampler: Option<Arc<Sampler>>,
    sampled: Option<Instant>,
}

impl MeasurePlane {
    fn new() -> MeasurePlane {
        MeasurePlane {
            threads: BTreeMap::new(),
            quiet: BTreeMap::new(),
            sole: None,
            looked: Instant::now(),
            sampler: Sampler::shared(Duration::from_secs(1)).ok(),
            sampled: None,
        }
    }

    /// A thread calls for the first time.
    pub(super) fn meet(&mut self, tgid: u32, tid: u32) {
        if self.threads.len() < MOST_THREADS {
            self.threads.entry(tid).or_insert((tgid, (0, 0)));
        }
    }

    /// What has changed of threads; those that have ended are forgotten.
    fn look(&mut self, now: u64) -> Vec<Measure> {
        let mut measures = Vec::new();
        self.threads.retain(|tid, (tgid, before)| {
            let Some(scheduled) = scheduled(*tgid, *tid) else {
                return false;
            };
            if std::mem::replace(before, scheduled) != scheduled {
                let one = |name, value| measure(now, (*tgid, *tid), name, value);
                measures.push(one("thread.cpu_ns", scheduled.0));
                measures.push(one("thread.runnable_ns", scheduled.1));
            }
            true
        });
        measures
    }

    /// What NVML has said since the last time.
    fn devices(&mut self, now: u64, callers: &HashSet<u32>) -> Vec<Measure> {
        let latest = self.sampler.as_ref().and_then(|sampler| sampler.latest());
        let Some(latest) = latest.filter(|latest| self.sampled != Some(latest.at)) else {
            return Vec::new();
        };
        self.sampled = Some(latest.at);
        let of_devices = latest.gpus.iter().flat_map(|gpu| of_gpu(gpu, now));
        of_devices.chain(of_processes(&latest, now, callers)).collect()
    }
}

fn measure(at: u64, (pid, tid): (u32, u32), name: &str, value: u64) -> Measure {
    let name = name.to_owned();
    Measure {
        at,
        pid,
        tid,
        what: Measured::Value { name, value },
    }
}

fn of_idle(pid: u32, idle: &Idle) -> Measure {
    Measure {
        at: idle.since,
        pid,
        tid: idle.tid,
        what: Measured::Idle {
            ns: idle.until - idle.since,
            devices: idle.devices,
            why: idle.why,
        },
    }
}

fn of_gpu(gpu: &Gpu, now: u64) -> Vec<Measure> {
    let values = [
        ("utilization_percent", gpu.gpu_percent.map(u64::from)),
        ("memory_used_bytes", gpu.memory.map(|memory| memory.used_bytes)),
        ("power_mw", gpu.power_mw.map(u64::from)),
    ];
    let index = gpu.identity.index;
    let known = values
        .into_iter()
        .chain(of_units(gpu))
        .filter_map(|(name, value)| Some((name, value?)));
    known
        .map(|(name, value)| measure(now, (0, 0), &format!("nvml.{index}.{name}"), value))
        .collect()
}

/// How much of a whole device worked, where NVML tells it (GPM). Not of its parts: which of them is whose is not known here.
fn of_units(gpu: &Gpu) -> Vec<(&'static str, Option<u64>)> {
    let Some(whole) = gpu.gpm.iter().find(|reading| reading.gpu_instance.is_none()) else {
        return Vec::new();
    };
    let tensor = whole.pipes.iter().find(|(name, _)| *name == "tensor");
    let rounded = |percent: f64| percent.clamp(0.0, 100.0).round() as u64;
    let values = [
        ("sm_percent", whole.sm_percent),
        ("sm_occupancy_percent", whole.occupancy_percent),
        ("tensor_percent", tensor.map(|(_, percent)| *percent)),
        ("dram_percent", whole.dram_percent),
    ];
    values.map(|(name, value)| (name, value.map(rounded))).to_vec()
}

/// Which devices the processes use that call.
fn of_processes(latest: &Telemetry, now: u64, callers: &HashSet<u32>) -> Vec<Measure> {
    let mine = latest.processes.iter().filter_map(|process| {
        let pid = process.pid.filter(|pid| callers.contains(pid))?;
        let gpu = latest.gpus.iter().find(|gpu| gpu.identity.uuid == process.device)?;
        let name = format!("nvml.{}.process_memory_bytes", gpu.identity.index);
        Some(measure(now, (pid, 0), &name, process.bytes.unwrap_or(0)))
    });
    mine.collect()
}

/// The kernel's own account of a thread; needs `CONFIG_SCHED_INFO`.
fn scheduled(tgid: u32, tid: u32) -> Option<Scheduled> {
    let text = std::fs::read_to_string(format!("/proc/{tgid}/task/{tid}/schedstat")).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(on)), Some(Ok(waited))) => Some((on, waited)),
        _ => None,
    }
}

impl Tracer {
    /// Has everything measured that there is beside calls.
    pub(super) fn begin_measures(&mut self) {
        if self.measures.is_some() {
            return;
        }
        self.work.facts.begin(true);
        let quiet = (0..self.rows.catalog.rows.len() as u32).filter(|row| !self.rows.streams(*row));
        let mut plane = MeasurePlane::new();
        plane.quiet = quiet.map(|row| (row, 0)).collect();
        self.measures = Some(plane);
    }

    /// Threads and idle times. To be called with each step.
    pub(super) fn measure_threads(&mut self, now: u64) {
        let Some(plane) = self.measures.as_mut() else { return };
        if plane.looked.elapsed() >= THREADS_EVERY {
            plane.looked = Instant::now();
            plane
                .look(now)
                .into_iter()
                .for_each(|measure| self.window.measure(measure));
        }
    }

    /// To be called each second, and with `last` in the end.
    pub(super) fn measure_all(&mut self, now: u64, last: bool) {
        let proven = self.proven_idle(now, last);
        let idle = self.idle_times(now, last, proven);
        if self.measures.is_none() {
            return;
        }
        let long = idle
            .into_iter()
            .filter(|(_, idle)| idle.until - idle.since >= SHORTEST_GAP_NS);
        let mut measures: Vec<Measure> = long.map(|(pid, idle)| of_idle(pid, &idle)).collect();
        measures.extend(self.counts(now));
        measures.extend(self.holdings(now));
        if let Some(plane) = self.measures.as_mut() {
            measures.extend(plane.devices(now, &self.callers));
        }
        measures.into_iter().for_each(|measure| self.window.measure(measure));
    }

    /// Idle times as calls prove them.
    fn proven_idle(&mut self, now: u64, last: bool) -> Vec<(u32, Idle)> {
        if self.measures.is_none() {
            return Vec::new();
        }
        let horizon = if last {
            u64::MAX
        } else {
            now.saturating_sub(GAP_LATE_NS)
        };
        let gaps = self.work.take_gaps(horizon).into_iter();
        let bound = |gap: Gap| Idle {
            since: gap.since,
            until: gap.until,
            tid: gap.tid,
            devices: Waited::Any,
            why: None,
        };
        gaps.map(|(pid, gap)| (pid, bound(gap))).collect()
    }

    /// Calls since the last time that become no lines. The kernel counts these for all processes together.
    fn counts(&mut self, now: u64) -> Vec<Measure> {
        let Some(plane) = self.measures.as_mut() else {
            return Vec::new();
        };
        match (self.callers.len(), self.callers.iter().next()) {
            (1, Some(pid)) => plane.sole = Some(*pid),
            (0, _) => {}
            _ => plane.sole = Some(0),
        }
        let mut counts = Vec::new();
        for (row, told) in &mut plane.quiet {
            let entered = self
                .engine
                .counter(*row)
                .map_or(0, |counter: RowCounter| counter.entered);
            let calls = entered.saturating_sub(std::mem::replace(told, entered.max(*told)));
            let Some(known) = self.rows.catalog.rows.get(*row as usize).filter(|_| calls > 0) else {
                continue;
            };
            let library = self.rows.catalog.library_with(known.library);
            counts.push(Measure {
                at: now,
                pid: plane.sole.unwrap_or(0),
                tid: 0,
                what: Measured::Count {
                    layer: library.map(|library| library.name.clone()).unwrap_or_default(),
                    function: known.symbol.clone(),
                    class: known.class,
                    calls,
                },
            });
        }
        counts
    }

    /// What processes hold, and how long their devices have had nothing to do.
    fn holdings(&self, now: u64) -> Vec<Measure> {
        let mut measures = Vec::new();
        for pid in self.memory.alive() {
            let held = self.memory.held_on_devices(pid).map(|held| ("memory.held", held));
            let used = self.work.used(pid, now).map(|used| {
                [
                    ("gpu.idle_at_least_ns", used.idle_at_least_ns),
                    ("gpu.busy_at_most_ns", used.busy_at_most_ns),
                ]
            });
            let values = held.into_iter().chain(used.into_iter().flatten());
            measures.extend(values.map(|(name, value)| measure(now, (pid, 0), name, value)));
        }
        measures
    }
}
