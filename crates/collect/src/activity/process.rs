//! The memory of one process, and what is taken out of it. What the process writes is copied first and bounded.

use super::shared::{
    ACTIVITY_COPY, ACTIVITY_DEVICE, ACTIVITY_GRAPH, ACTIVITY_KERNEL, ACTIVITY_MAGIC, ACTIVITY_MEMSET, ACTIVITY_ON,
    ACTIVITY_OVERHEAD, ACTIVITY_STREAM, ACTIVITY_WINDOW, ActivityHead, ActivityMessage, ActivityName, ActivityRecord,
    MOST_NAME_BYTES, MOST_NAMES, MOST_RECORDS, MOST_TEXT_BYTES, SHARED_BYTES, SHARED_NAMES, SHARED_RING, SHARED_TAKEN,
    SHARED_TEXTS,
};
use crate::clock::monotonic_ns;
use crate::discover;
use crate::inside::memory::SharedMemory;
use crate::inside::socket::Caller;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const WRITTEN: u64 = offset_of!(ActivityHead, written) as u64;

/// Where records come from.
#[derive(Debug, Default)]
pub struct Source {
    pub pid: u32,
    names: HashMap<u32, Arc<[u8]>>,
}

impl Source {
    /// The name of a record, as bytes; whether it goes on.
    #[must_use]
    pub fn name(&self, record: &ActivityRecord) -> Option<(&[u8], bool)> {
        let name = self.names.get(&record.name)?;
        Some((name, name.len() == MOST_NAME_BYTES as usize))
    }
}

/// What of activities is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// `None`: they are recorded all the time.
    pub windows: Option<Windows>,
    /// Graphs are told of as a whole, not by node.
    pub graphs: bool,
}

/// Activities are recorded for `length_ns` of each `period_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    pub length_ns: u64,
    pub period_ns: u64,
}

/// What is known of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub pid: u32,
    /// Of its main thread, when it came.
    pub comm: String,
    /// As the library has written it.
    pub head: ActivityHead,
    /// Path of its CUPTI; empty: none was found.
    pub library: String,
    /// Path of another CUPTI that was mapped later; empty: none was.
    pub other: String,
    /// Records that made no sense.
    pub malformed: u64,
    /// When it was looked at last while it ran, `CLOCK_MONOTONIC` ns; 0: never.
    pub looked_ns: u64,
    /// It has ended without handing over the last of what it had.
    pub broken_off: bool,
    /// Neither has it ended, nor closed its connection, as programs do that execute another one.
    pub is_connected: bool,
}

/// The memory of one process.
pub(super) struct Process {
    source: Source,
    comm: String,
    /// `None`: it is over, and everything was taken.
    link: Option<Link>,
    head: ActivityHead,
    taken: u64,
    malformed: u64,
    looked_ns: u64,
}

struct Link {
    memory: SharedMemory,
    /// Ends with the process, or when it closes it.
    connection: Option<OwnedFd>,
}

impl Process {
    /// Gives a process its memory.
    ///
    /// # Errors
    /// There is none, or it waits no longer.
    pub(super) fn meet(caller: Caller, wish: Wish) -> Result<Process> {
        let mut process = Process::make(caller.pid, wish)?;
        let answer = ActivityMessage {
            magic: ACTIVITY_MAGIC,
            ..ActivityMessage::default()
        };
        if let Some(link) = &mut process.link {
            let given = caller.give(&answer, link.memory.file());
            link.connection = Some(given.context("it waits no longer")?);
        }
        Ok(process)
    }

    pub(super) fn make(pid: u32, wish: Wish) -> Result<Process> {
        let memory = SharedMemory::make(SHARED_BYTES)?;
        memory.set(0, &ACTIVITY_MAGIC);
        memory.set(offset_of!(ActivityHead, graphs) as u64, &u32::from(wish.graphs));
        if let Some(windows) = wish.windows {
            memory.set(offset_of!(ActivityHead, window) as u64, &windows.length_ns);
            memory.set(offset_of!(ActivityHead, period) as u64, &windows.period_ns);
        }
        Ok(Process {
            head: memory.get(0),
            source: Source {
                pid,
                names: HashMap::new(),
            },
            comm: discover::comm(pid, pid).unwrap_or_default(),
            link: Some(Link {
                memory,
                connection: None,
            }),
            taken: 0,
            malformed: 0,
            looked_ns: 0,
        })
    }

    pub(super) fn drain(&mut self, take: &mut dyn FnMut(&Source, &ActivityRecord)) {
        let Some(link) = self.link.take() else { return };
        // asked before: what it has written until its end is taken
        let is_over = link.is_over(self.source.pid);
        self.take_records(&link.memory, take);
        self.head = link.memory.get(0);
        if !is_over {
            self.looked_ns = monotonic_ns();
            self.link = Some(link);
        }
    }

    fn take_records(&mut self, memory: &SharedMemory, take: &mut dyn FnMut(&Source, &ActivityRecord)) {
        let written = memory.now(WRITTEN);
        if written.wrapping_sub(self.taken) > u64::from(MOST_RECORDS) {
            self.malformed += 1;
            self.taken = written;
        }
        while self.taken != written {
            let place = self.taken % u64::from(MOST_RECORDS) * size_of::<ActivityRecord>() as u64;
            let record: ActivityRecord = memory.get(SHARED_RING + place);
            self.taken = self.taken.wrapping_add(1);
            if !makes_sense(&record) {
                self.malformed += 1;
                continue;
            }
            self.learn_name(memory, record.name);
            take(&self.source, &record);
        }
        memory.word(SHARED_TAKEN).store(self.taken, Ordering::Release);
    }

    fn learn_name(&mut self, memory: &SharedMemory, number: u32) {
        if number == 0 || number > MOST_NAMES || self.source.names.contains_key(&number) {
            return;
        }
        let place = u64::from(number - 1) * size_of::<ActivityName>() as u64;
        let name: ActivityName = memory.get(SHARED_NAMES + place);
        let end = u64::from(name.at) + u64::from(name.bytes);
        if name.bytes > MOST_NAME_BYTES || end > u64::from(MOST_TEXT_BYTES) {
            self.malformed += 1;
            return;
        }
        let mut bytes = vec![0; name.bytes as usize];
        memory.copy(SHARED_TEXTS + u64::from(name.at), &mut bytes);
        self.source.names.insert(number, bytes.into());
    }

    pub(super) fn report(&self) -> Report {
        Report {
            pid: self.source.pid,
            comm: self.comm.clone(),
            head: self.head,
            library: path_in(&self.head.library),
            other: path_in(&self.head.second),
            malformed: self.malformed,
            looked_ns: self.looked_ns,
            broken_off: self.link.is_none() && self.head.state == ACTIVITY_ON,
            is_connected: self.link.as_ref().is_some_and(|link| !link.is_hung_up()),
        }
    }

    /// As the library would write it.
    pub(super) fn put(&self, offset: u64, bytes: &[u8]) {
        if let Some(link) = &self.link {
            link.memory.put(offset, bytes);
        }
    }
}

/// Up to the first byte that is 0.
fn path_in(bytes: &[u8]) -> String {
    let path = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(path).into_owned()
}

impl Link {
    /// Whether its process is over: its end of the connection is closed, and it is not just that.
    fn is_over(&self, pid: u32) -> bool {
        self.is_hung_up() && discover::has_ended(pid)
    }

    fn is_hung_up(&self) -> bool {
        let Some(connection) = &self.connection else {
            return false;
        };
        let mut polled = libc::pollfd {
            fd: connection.as_raw_fd(),
            events: 0,
            revents: 0,
        };
        // SAFETY: one initialised entry
        unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
    }
}

fn makes_sense(record: &ActivityRecord) -> bool {
    let is_known = matches!(
        record.kind,
        ACTIVITY_KERNEL
            | ACTIVITY_COPY
            | ACTIVITY_MEMSET
            | ACTIVITY_STREAM
            | ACTIVITY_GRAPH
            | ACTIVITY_OVERHEAD
            | ACTIVITY_WINDOW
            | ACTIVITY_DEVICE
    );
    // later than three centuries after the machine's start nothing has happened
    is_known && record.begin <= record.end && record.end <= i64::MAX as u64
}
