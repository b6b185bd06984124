//! Feeds the model of the kernel driver's objects: records of its ring, and the ends of processes.
//!
//! Owns their order: a process ends after its last record.

use crate::driver::{Dialect, Record, Step};
use crate::engine::{Engine, Hooks, Records, Stream};
use crate::model::driver::{Caller, FileId, Objects, ProcessReport, Report};
use crate::wire::{self, Inbox, Notice};
use anyhow::Result;
use std::cell::RefCell;

/// Feeds the model of the kernel driver's objects.
pub(super) struct DriverPlane {
    /// `None`: calls are counted in the kernel, and nobody asks who holds what.
    calls: Option<Records>,
    dialect: Dialect,
    objects: Objects,
    /// Processes and when they ended, CLOCK_MONOTONIC ns: to be forgotten before what came later.
    ending: Vec<(u32, u64)>,
    /// What processes held when they ended.
    ended: Vec<ProcessReport>,
    links: Hooks,
    pub(super) malformed: u64,
}

impl DriverPlane {
    /// Opens the ring, unless calls are only counted. `links`: what feeds it.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub(super) fn open(engine: &dyn Engine, dialect: Dialect, links: Hooks, counted: bool) -> Result<DriverPlane> {
        let calls = (!counted).then(|| Records::open(engine, Stream::Driver)).transpose()?;
        Ok(DriverPlane {
            calls,
            dialect,
            objects: Objects::default(),
            ending: Vec::new(),
            ended: Vec::new(),
            links,
            malformed: 0,
        })
    }

    /// The process has ended, or has become another program: the driver closes what it had open.
    pub(super) fn ended(&mut self, notice: &Notice) {
        if self.calls.is_some() {
            self.ending.push((notice.tgid, notice.at));
        }
    }

    /// Takes in what is in the ring; what is to be shown goes to `lines`, too.
    pub(super) fn take_in(&mut self, lines: Option<&RefCell<Inbox>>) {
        let Some(calls) = self.calls.as_mut() else { return };
        let inbox = std::rc::Rc::clone(calls.drain());
        for bytes in inbox.borrow().records() {
            let Some(record) = Record::parse(bytes) else {
                self.malformed += 1;
                continue;
            };
            self.forget(|pid, at| pid == record.header.tgid && at <= record.header.entered);
            self.follow(&record);
            if let Some(lines) = lines.filter(|_| record.header.flags & wire::EVENT_HIDDEN == 0) {
                lines.borrow_mut().push(bytes);
            }
        }
        inbox.borrow_mut().clear();
        self.forget(|_, _| true);
    }

    /// Those that have ended, of which this holds.
    fn forget(&mut self, which: impl Fn(u32, u64) -> bool) {
        for (pid, _) in self.ending.extract_if(.., |(pid, at)| which(*pid, *at)) {
            self.ended.extend(self.objects.exited(pid));
        }
    }

    fn follow(&mut self, record: &Record) {
        let file = FileId(record.file());
        match record.step {
            Step::Ioctl => {
                let caller = Caller {
                    pid: record.header.tgid,
                    file,
                };
                let ioctl = record.decode(self.dialect);
                self.objects.called(caller, &ioctl, record.header.duration);
            }
            Step::Close { last: true } => self.objects.closed(file),
            _ => {}
        }
    }

    /// No further system call is told of.
    pub(super) fn detach(&mut self) {
        self.links.clear();
    }

    /// Who holds what; processes that have ended come first, with what they held then.
    pub(super) fn report(&self) -> Report {
        let mut report = self.objects.report();
        report.processes.splice(0..0, self.ended.iter().cloned());
        report
    }
}
