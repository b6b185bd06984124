//! Feeds the ledgers of memory: records of the memory ring and the ends of processes, in order.
//!
//! Owns that order. Who was there before us is `births`' business, what reports say `report`'s.

mod births;
mod map;
mod report;

use super::Scope;
use super::devices::DevicePlane;
use super::ends::{self, End, Ends};
use super::late::LatePlane;
use super::sites::SitePlane;
use super::stubs::StubPlane;
use crate::catalog::Catalog;
use crate::device::Reconciled;
use crate::device::telemetry::Sampler;
use crate::discover;
use crate::engine::{Arrivals, Engine, Records, Stream};
use crate::model::launches::Launches;
use crate::model::memory::{Call, Ledgers, Origin, ProcessReport, Tally};
use crate::wire::{self, KernelEvent, MemoryCall, Notice};
use anyhow::Result;
use births::Births;
use std::collections::HashSet;
use std::sync::Arc;

/// Is told of a call that the ledgers have, and of the bytes that it has given back.
pub(super) type Applied<'a> = dyn FnMut(&Call<'_>, &Ledgers, Option<u64>) + 'a;

/// Feeds the ledgers of memory.
pub(super) struct MemoryPlane {
    calls: Records,
    ledgers: Ledgers,
    births: Births,
    /// Who was in no process list any more when we last looked.
    gone: HashSet<u32>,
    /// Those that the ledgers do not know yet.
    ends: Ends,
    pub(super) sites: SitePlane,
    pub(super) stubs: StubPlane,
    pub(super) late: LatePlane,
    /// `None`: the driver is not asked.
    devices: Option<DevicePlane>,
    lost: u64,
    pub(super) malformed: u64,
}

impl MemoryPlane {
    /// Opens the ring.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub(super) fn open(engine: &dyn Engine, scope: &Scope) -> Result<MemoryPlane> {
        Ok(MemoryPlane {
            calls: Records::open(engine, Stream::Memory)?,
            ledgers: Ledgers::default(),
            births: Births::of(scope),
            gone: HashSet::new(),
            ends: Ends::default(),
            sites: SitePlane::default(),
            stubs: StubPlane::default(),
            late: LatePlane::default(),
            devices: None,
            lost: 0,
            malformed: 0,
        })
    }

    pub(super) fn bell(&self) -> i32 {
        self.calls.bell()
    }

    /// Calls count from now on: what is there by now was there before us.
    pub(super) fn begin(&mut self) {
        self.births.begin();
    }

    /// Whether calls counted at `at`.
    pub(super) fn has_begun(&self, at: u64) -> bool {
        self.births.have_begun(at)
    }

    /// A process held nothing at `at`.
    pub(super) fn born(&mut self, pid: u32, at: u64) {
        if !self.births.note(pid, at) {
            self.meet(pid);
        }
    }

    /// A process has made calls that were not seen.
    pub(super) fn doubt(&mut self, pid: u32) {
        self.births.doubt(pid);
        // what is known may be of the program that it was before
        if !self.ends.concern(pid) {
            self.ledgers.doubt(pid);
        }
    }

    /// A process has become another program.
    pub(super) fn executed(&mut self, notice: &Notice) {
        if !self.ends.add(notice) {
            return;
        }
        self.sites.executed(notice.tgid);
        self.births.note(notice.tgid, notice.at);
    }

    pub(super) fn exited(&mut self, notice: &Notice) {
        self.ends.add(notice);
    }

    /// A process that uses a GPU was there before us.
    pub(super) fn meet(&mut self, pid: u32) {
        self.ledgers.introduce(pid, Origin::Late, crate::clock::monotonic_ns());
        self.name(pid);
    }

    /// Applies what has come in, and tells `applied` of each call. Notices are taken in first: what a process did before its end is in the ring then.
    pub(super) fn follow(
        &mut self,
        engine: &dyn Engine,
        catalog: &Catalog,
        launches: &mut Launches,
        arrivals: &dyn Arrivals,
        applied: &mut Applied<'_>,
    ) {
        self.take_in(engine, catalog, launches, arrivals, applied);
        let answered = self.devices.as_mut().is_some_and(|devices| devices.ask(&self.ledgers));
        if answered {
            // the answer took a while: it is compared with what is held now
            self.take_in(engine, catalog, launches, arrivals, applied);
        }
        if let (true, Some(devices)) = (answered, self.devices.as_mut()) {
            devices.compare(&self.ledgers, crate::clock::monotonic_ns());
        }
    }

    fn take_in(
        &mut self,
        engine: &dyn Engine,
        catalog: &Catalog,
        launches: &mut Launches,
        arrivals: &dyn Arrivals,
        applied: &mut Applied<'_>,
    ) {
        let inbox = std::rc::Rc::clone(self.calls.drain());
        for notice in ends::outlived(arrivals, &inbox.borrow()) {
            match notice.kind {
                wire::NOTICE_EXEC => self.executed(&notice),
                _ => self.exited(&notice),
            }
            self.ends.foresee(&notice);
        }
        let mut ends = self.ends.take();
        for record in inbox.borrow().records() {
            if self.sites.keep(record) {
                continue;
            }
            if let Some(kernel) = KernelEvent::parse(record) {
                self.meet_kernel(&kernel, launches);
                continue;
            }
            let Some(raw) = MemoryCall::parse(record) else {
                self.malformed += 1;
                continue;
            };
            while let Some(end) = ends.next_if(|end| end.at < raw.entered) {
                self.end(engine, &end);
            }
            match Call::decode(&raw, catalog) {
                Some(call) => {
                    let freed = self.apply(&call);
                    applied(&call, &self.ledgers, freed);
                }
                None => self.malformed += 1,
            }
        }
        inbox.borrow_mut().clear();
        self.stubs.follow(launches);
        self.late.follow(launches);
        self.sites.name_fresh();
        self.sites.tell_interpreters(engine);
        for end in ends {
            self.end(engine, &end);
        }
    }

    fn meet_kernel(&mut self, kernel: &KernelEvent<'_>, launches: &mut Launches) {
        if kernel.tag == wire::KERNEL_STUB {
            let stub = self.sites.locate(kernel.tgid, kernel.handle);
            self.stubs.ask(kernel.tgid, kernel.id, stub, launches);
        } else if kernel.tag == wire::KERNEL_UNREAD {
            self.late.ask_kernel(kernel, launches);
        } else {
            launches.learn(kernel);
        }
    }

    /// The bytes that the call has given back.
    fn apply(&mut self, call: &Call<'_>) -> Option<u64> {
        let pid = call.raw.tgid;
        if !self.ledgers.knows(pid) {
            let origin = self.origin(pid);
            self.ledgers.introduce(pid, origin, call.raw.entered);
            self.name(pid);
        }
        self.sites.note(call.raw.tid, call.raw.entered, call.raw.site);
        self.ledgers.apply(call)
    }

    fn name(&mut self, pid: u32) {
        if let Some(comm) = discover::comm(pid, pid) {
            self.ledgers.name(pid, &comm);
        }
    }

    /// Whether a process can have used a device before we saw it.
    pub(super) fn origin(&self, pid: u32) -> Origin {
        self.ledgers.origin(pid).unwrap_or_else(|| self.births.origin(pid))
    }

    fn end(&mut self, engine: &dyn Engine, end: &End) {
        let End { pid, at, .. } = *end;
        // of one that ended before it could be looked at
        if !self.ledgers.is_named(pid) && !end.comm.is_empty() {
            self.ledgers.name(pid, &end.comm);
        }
        self.note_losses(engine);
        self.ledgers.end(pid, at);
        engine.forget_memory_loss(pid);
        if let Some(devices) = self.devices.as_mut() {
            devices.forget(pid);
        }
        // an exec leaves the process where it was born
        if end.is_exit {
            self.births.ended(pid, at);
            self.sites.ended(pid);
        }
    }

    /// Tells the ledgers what the kernel could not tell us.
    fn note_losses(&mut self, engine: &dyn Engine) {
        let lost = engine.counters().memory_lost;
        if lost == self.lost {
            return;
        }
        self.lost = lost;
        for (pid, loss) in engine.memory_losses().unwrap_or_default() {
            self.ledgers.set_loss(pid, loss);
        }
    }

    /// To be called each second.
    pub(super) fn settle(&mut self, engine: &dyn Engine, now: u64) {
        self.note_losses(engine);
        self.sites.settle(engine, now);
        self.ledgers.settle(now);
        // the notice of an end may be lost; what it did before comes until the next time at the latest
        let gone: HashSet<u32> = self.ledgers.alive().filter(|pid| discover::is_gone(*pid)).collect();
        let before = std::mem::take(&mut self.gone);
        for pid in gone.intersection(&before) {
            let end = End {
                at: now,
                pid: *pid,
                comm: String::new(),
                is_exit: true,
            };
            self.end(engine, &end);
        }
        self.gone = gone;
        self.births.settle();
    }

    /// Processes may call themselves otherwise than before.
    pub(super) fn name_all(&mut self) {
        for pid in self.ledgers.alive().collect::<Vec<u32>>() {
            self.name(pid);
        }
    }

    /// Processes that have ended since this was last asked.
    pub(super) fn take_ended(&mut self) -> Vec<ProcessReport> {
        self.ledgers.take_ended()
    }

    /// Whether a process is known and lives.
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.ledgers.knows(pid)
    }

    /// Processes that live.
    pub(super) fn alive(&self) -> impl Iterator<Item = u32> {
        self.ledgers.alive()
    }

    /// What a living process holds on all devices.
    pub(super) fn held_on_devices(&self, pid: u32) -> Option<u64> {
        self.ledgers.held_on_devices(pid)
    }

    /// What a living process has done and holds at `now`, CLOCK_MONOTONIC ns.
    pub(super) fn tally(&self, pid: u32, now: u64) -> Option<Tally> {
        self.ledgers.tally(pid, now)
    }

    /// What the driver last said of a process, by device; empty: nothing.
    pub(super) fn reading(&self, pid: u32) -> &[Reconciled] {
        self.devices.as_ref().map_or(&[], |devices| devices.reading(pid))
    }

    /// What the driver said of an ended process is not asked for again.
    pub(super) fn forget_reading(&mut self, pid: u32) {
        if let Some(devices) = self.devices.as_mut() {
            devices.forget_reading(pid);
        }
    }

    /// Has the driver asked what it counts for each process.
    pub(super) fn ask_devices(&mut self) {
        self.devices.get_or_insert_default();
    }

    /// What a sampler was told is compared, instead of asking.
    pub(super) fn devices_from(&mut self, sampler: Arc<Sampler>) {
        self.devices.get_or_insert_default().listen_to(sampler);
    }
}
