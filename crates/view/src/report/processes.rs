//! Who made calls: processes and their threads.

use super::Map;
use crate::record::Record;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Threads that are told apart; calls of others count for their process alone.
const THREADS: usize = 4096;
/// Processes that are told apart.
const PROCESSES: usize = 4096;
/// Threads told of one process.
const REPORTED: usize = 16;

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Process {
    pub pid: u32,
    pub comm: String,
    pub calls: u64,
    /// Of one layer, that in which more failed: a call of the runtime fails because one of the driver did.
    pub failed: u64,
    pub first_ns: i64,
    pub last_ns: i64,
    /// When it exited.
    pub exit_ns: Option<i64>,
    /// Most time in calls first; so many of `thread_count`.
    pub threads: Vec<Thread>,
    pub thread_count: usize,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Thread {
    pub tid: u32,
    pub comm: String,
    pub calls: u64,
    /// In outermost calls.
    pub in_calls_ns: u64,
    /// On a CPU, and ready but waiting for one, between the first and the last measure; `None`: it was not measured.
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) runnable_ns: Option<u64>,
}

/// Failed calls of a process: of the driver's layer, and of all others.
type Failed = [u64; 2];

#[derive(Debug, Clone, Default)]
struct Tally {
    thread: Thread,
    pid: u32,
    /// The first of cumulative measures: on a CPU, runnable.
    base: [Option<u64>; 2],
}

/// Who made calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Processes {
    processes: BTreeMap<u32, (Process, Failed)>,
    threads: Map<(u32, u32), Tally>,
}

impl Processes {
    /// A call.
    pub(super) fn take(&mut self, event: &Record<'_>) {
        let Some((process, failed)) = self.process(event.pid) else {
            return;
        };
        if process.calls == 0 {
            (process.first_ns, process.last_ns) = (event.at, event.at);
        }
        process.calls = process.calls.saturating_add(event.count);
        failed[usize::from(event.layer != "driver")] += u64::from(event.failed);
        process.first_ns = process.first_ns.min(event.at);
        process.last_ns = process.last_ns.max(event.end());
        if (process.comm.is_empty() || event.tid == event.pid) && process.comm != event.comm {
            event.comm.clone_into(&mut process.comm);
        }
        let Some(tally) = self.thread(event.pid, event.tid) else {
            return;
        };
        tally.thread.calls = tally.thread.calls.saturating_add(event.count);
        if event.depth == 0 {
            tally.thread.in_calls_ns = tally.thread.in_calls_ns.saturating_add(event.ns.unwrap_or(0));
        }
        if tally.thread.comm != event.comm {
            event.comm.clone_into(&mut tally.thread.comm);
        }
    }

    /// A process was forked, executed a program, or exited.
    pub(super) fn lives(&mut self, event: &Record<'_>) {
        // of a process without calls nobody wants to know
        if let (Some((process, _)), "exit") = (self.processes.get_mut(&event.pid), event.name) {
            process.exit_ns = Some(event.at);
        }
    }

    /// A cumulative measure of a thread.
    pub(super) fn measure(&mut self, event: &Record<'_>, which: usize) {
        let Some(value) = event.bytes else { return };
        if let Some(tally) = self.thread(event.pid, event.tid) {
            let base = *tally.base[which].get_or_insert(value);
            let grown = Some(value.saturating_sub(base));
            match which {
                0 => tally.thread.cpu_ns = grown,
                _ => tally.thread.runnable_ns = grown,
            }
        }
    }

    fn process(&mut self, pid: u32) -> Option<&mut (Process, Failed)> {
        if self.processes.len() >= PROCESSES && !self.processes.contains_key(&pid) {
            return None;
        }
        let new = || Process {
            pid,
            ..Process::default()
        };
        Some(self.processes.entry(pid).or_insert_with(|| (new(), Failed::default())))
    }

    fn thread(&mut self, pid: u32, tid: u32) -> Option<&mut Tally> {
        if self.threads.len() >= THREADS && !self.threads.contains_key(&(pid, tid)) {
            return None;
        }
        Some(self.threads.entry((pid, tid)).or_insert_with(|| Tally {
            pid,
            thread: Thread {
                tid,
                ..Thread::default()
            },
            ..Tally::default()
        }))
    }

    /// Most calls first.
    pub(super) fn list(&self) -> Vec<Process> {
        let mut threads: HashMap<u32, Vec<Thread>> = HashMap::new();
        for tally in self.threads.values() {
            threads.entry(tally.pid).or_default().push(tally.thread.clone());
        }
        let with_failed = |(process, [driver, others]): &(Process, Failed)| Process {
            failed: *driver.max(others),
            ..process.clone()
        };
        let mut processes: Vec<Process> = self.processes.values().map(with_failed).collect();
        for process in &mut processes {
            process.threads = threads.remove(&process.pid).unwrap_or_default();
            process.thread_count = process.threads.len();
            let weight = |thread: &Thread| (thread.in_calls_ns, thread.calls);
            let order = |a: &Thread, b: &Thread| weight(b).cmp(&weight(a)).then(a.tid.cmp(&b.tid));
            process.threads.sort_by(order);
            process.threads.truncate(REPORTED);
        }
        processes.sort_by(|a, b| b.calls.cmp(&a.calls).then(a.pid.cmp(&b.pid)));
        processes
    }
}
