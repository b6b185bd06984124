//! The driver's objects of each process: who holds what, from the ioctls that made and ended it. Pure.
//!
//! ```text
//!  driver::Ioctl ─► Objects ─┬─► Process ─┬─ clients ─► tree of objects ─► resources: memory, counted once however
//!  closed file, exit ────────┘            │                                many handles name it
//!                                         ├─ ranges: addresses under UVM, and what is mapped there
//!                                         └─ maps, OS events, address spaces
//!                            └─► calls by name: count, errors, time
//! ```
//!
//! What the driver says it took is counted, beside what a program asked for elsewhere. An object ends when it, one
//! above it or its client is freed, when the last descriptor of the file that made it is closed, or when its process
//! ends: of the latter two the driver says nothing. A call that failed changes nothing. What was there before the
//! first seen call is unknown and stays so: [`Unseen`] counts what refers to it.
//!
//! A CUDA context is a notion of user space. What it makes in the driver was looked at with one context in a process:
//! a context share, channel groups with channels, and a UVM address space for its GPU, which are the three that are
//! counted; several contexts of one GPU share the address space.

mod calls;
mod client;
mod maps;
mod process;
mod report;
mod resource;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub(crate) use calls::CallTotals;
pub(crate) use process::Process;
pub use process::Unseen;
pub use report::{ProcessReport, Report};
pub use resource::Held;

use crate::driver::{Act, Ioctl};
use calls::Calls;

/// An open file of a device, told from any other for as long as it is open: the same for descriptors that were
/// duplicated or passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// Who made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Process id (TGID).
    pub pid: u32,
    pub file: FileId,
}

/// The objects of every process.
#[derive(Debug, Default)]
pub struct Objects {
    processes: HashMap<u32, Process>,
    /// Clients are of the whole machine: the process that each is counted to.
    owners: HashMap<u32, u32>,
    calls: Calls,
}

impl Objects {
    /// Takes a call that has returned. `duration_ns` is the time from enter to exit.
    pub fn called(&mut self, caller: Caller, ioctl: &Ioctl, duration_ns: u64) {
        self.calls.count(ioctl, duration_ns);
        let process = self.processes.entry(caller.pid).or_default();
        process.totals.count(ioctl.failed(), duration_ns);
        if !ioctl.failed() {
            self.apply(caller, ioctl.act);
        }
    }

    fn apply(&mut self, caller: Caller, act: Act) {
        let shared = self.shared(act);
        let owner = self.owner(caller.pid, act);
        let process = self.processes.entry(owner).or_default();
        process.apply(caller.file, act, shared);
        match act {
            Act::Create { client, object, .. } if client == object => {
                self.owners.insert(client, owner);
            }
            Act::Create { client, .. } | Act::Duplicate { client, .. } => {
                self.owners.entry(client).or_insert(owner);
            }
            Act::Free { client, object } if client == object => {
                self.owners.remove(&client);
            }
            _ => {}
        }
    }

    /// The process that a call's client is counted to: that which made it, even when another process uses it.
    fn owner(&self, pid: u32, act: Act) -> u32 {
        let client = match act {
            Act::Create { client, object, .. } if client == object => None,
            Act::Create { client, .. }
            | Act::Duplicate { client, .. }
            | Act::Free { client, .. }
            | Act::MapCpu { client, .. }
            | Act::UnmapCpu { client, .. }
            | Act::MapGpu { client, .. }
            | Act::UnmapGpu { client, .. }
            | Act::OpenEvent { client, .. }
            | Act::CloseEvent { client, .. } => Some(client),
            _ => None,
        };
        client
            .and_then(|client| self.owners.get(&client))
            .copied()
            .unwrap_or(pid)
    }

    /// What a duplicated handle names.
    fn shared(&self, act: Act) -> Option<resource::Named> {
        let Act::Duplicate { from_client, from, .. } = act else {
            return None;
        };
        let owner = self.owners.get(&from_client)?;
        self.processes.get(owner)?.named(from_client, from)
    }

    /// Takes that the last descriptor of a file was closed: everything that was made through it ends.
    pub fn closed(&mut self, file: FileId) {
        for process in self.processes.values_mut() {
            for client in process.close(file) {
                self.owners.remove(&client);
            }
        }
    }

    /// Takes that a process has ended; returns what it still held at that moment.
    pub fn exited(&mut self, pid: u32) -> Option<ProcessReport> {
        let process = self.processes.remove(&pid)?;
        self.owners.retain(|_, owner| *owner != pid);
        Some(ProcessReport::of(pid, &process))
    }

    /// Everything, as plain data: processes by pid, calls by time, longest first.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut processes: Vec<ProcessReport> = self
            .processes
            .iter()
            .map(|(pid, process)| ProcessReport::of(*pid, process))
            .collect();
        processes.sort_by_key(|process| process.pid);
        Report {
            processes,
            calls: self.calls.rows(),
        }
    }
}
