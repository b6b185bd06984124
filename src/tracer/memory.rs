//! Feeds the ledgers of memory: records of the memory ring and the ends of processes, in order.

mod map;

use super::Scope;
use super::devices::DevicePlane;
use super::ends::{self, End, Ends};
use super::late::LatePlane;
use super::sites::{self, SitePlane};
use super::stubs::StubPlane;
use super::work::WorkPlane;
use crate::catalog::Catalog;
use crate::device::Reconciled;
use crate::device::telemetry::Sampler;
use crate::discover;
use crate::engine::{Arrivals, Engine, Records, Stream};
use crate::model::launches::Launches;
use crate::model::memory::{Call, Ledgers, Origin, ProcessReport, Report, SiteReport, Tally, merge_equal_sites};
use crate::owner::start_ticks;
use crate::wire::{self, KernelEvent, MemoryCall, Notice};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

const MOST_BORN: usize = 1 << 15;

/// Feeds the ledgers of memory.
pub(super) struct MemoryPlane {
    calls: Records,
    ledgers: Ledgers,
    /// Living processes that did nothing with a GPU before they were watched, and when they were born, CLOCK_MONOTONIC ns.
    born: HashMap<u32, u64>,
    /// Those that ran code of a library before it was probed.
    early: HashSet<u32>,
    /// When there are so many, those are looked for whose end was not told.
    most_born: usize,
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
    started_at: u64,
    started_ticks: u64,
    /// Who was not there when we came is a child of those who were.
    descendants: bool,
    pub(super) malformed: u64,
}

/// A process that ended at `at` is not among the living any more, unless its number is another's by now: whether it is
/// not. Whether `/proc` still has it says nothing: it does until its parent has asked for its status.
fn forget_birth(born: &mut HashMap<u32, u64>, pid: u32, at: u64) -> bool {
    let is_gone = born.get(&pid).is_none_or(|born_at| *born_at <= at);
    if is_gone {
        born.remove(&pid);
    }
    is_gone
}

impl MemoryPlane {
    /// Opens the ring.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub(super) fn open(engine: &dyn Engine, scope: &Scope) -> Result<MemoryPlane> {
        Ok(MemoryPlane {
            descendants: matches!(scope, Scope::Processes(_)),
            calls: Records::open(engine, Stream::Memory)?,
            ledgers: Ledgers::default(),
            born: HashMap::new(),
            early: HashSet::new(),
            most_born: MOST_BORN,
            gone: HashSet::new(),
            ends: Ends::default(),
            sites: SitePlane::default(),
            stubs: StubPlane::default(),
            late: LatePlane::default(),
            devices: None,
            lost: 0,
            started_at: crate::clock::monotonic_ns(),
            started_ticks: boot_ticks(),
            malformed: 0,
        })
    }

    pub(super) fn bell(&self) -> i32 {
        self.calls.bell()
    }

    /// Calls count from now on: what is there by now was there before us.
    pub(super) fn begin(&mut self) {
        self.started_at = crate::clock::monotonic_ns();
        self.started_ticks = boot_ticks();
    }

    /// Whether calls counted at `at`.
    pub(super) fn has_begun(&self, at: u64) -> bool {
        at >= self.started_at
    }

    /// A process held nothing at `at`.
    pub(super) fn born(&mut self, pid: u32, at: u64) {
        if self.has_begun(at) {
            self.born.insert(pid, at);
            self.early.remove(&pid);
        } else {
            self.meet(pid);
        }
    }

    /// A process has made calls that were not seen.
    pub(super) fn doubt(&mut self, pid: u32) {
        self.early.insert(pid);
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
        if self.has_begun(notice.at) {
            self.born.insert(notice.tgid, notice.at);
            self.early.remove(&notice.tgid);
        }
    }

    pub(super) fn exited(&mut self, notice: &Notice) {
        self.ends.add(notice);
    }

    /// A process that uses a GPU was there before us.
    pub(super) fn meet(&mut self, pid: u32) {
        self.ledgers.introduce(pid, Origin::Late, crate::clock::monotonic_ns());
        self.name(pid);
    }

    /// Applies what has come in. Notices are taken in first: what a process did before its end is in the ring then.
    pub(super) fn follow(
        &mut self,
        engine: &dyn Engine,
        catalog: &Catalog,
        launches: &mut Launches,
        work: &mut WorkPlane,
        arrivals: &dyn Arrivals,
    ) {
        self.take_in(engine, catalog, launches, work, arrivals);
        let answered = self.devices.as_mut().is_some_and(|devices| devices.ask(&self.ledgers));
        if answered {
            // the answer took a while: it is compared with what is held now
            self.take_in(engine, catalog, launches, work, arrivals);
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
        work: &mut WorkPlane,
        arrivals: &dyn Arrivals,
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
                    work.remember(&raw);
                    let freed = self.apply(&call);
                    if work.facts.wanted() {
                        work.facts
                            .note_memory(&call, self.ledgers.held_on_devices(raw.tgid), freed);
                    }
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
        if let Some(origin) = self.ledgers.origin(pid) {
            return origin;
        }
        let young = || start_ticks(Path::new("/proc"), pid).is_some_and(|ticks| ticks > self.started_ticks);
        if self.early.contains(&pid) {
            Origin::Late
        } else if self.descendants || self.born.contains_key(&pid) || young() {
            Origin::Start
        } else {
            Origin::Late
        }
    }

    fn end(&mut self, engine: &dyn Engine, end: &End) {
        let End { pid, at, .. } = *end;
        // of one that ended before it could be looked at
        if !self.ledgers.is_named(pid) {
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
            if forget_birth(&mut self.born, pid, at) {
                self.early.remove(&pid);
            }
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
        for pid in self.ledgers.alive().collect::<Vec<u32>>() {
            self.name(pid);
        }
        // the notice of an end may be lost; what it did before comes until the next time at the latest
        let gone: HashSet<u32> = self.ledgers.alive().filter(|pid| discover::is_gone(*pid)).collect();
        for pid in gone.intersection(&self.gone) {
            self.ledgers.end(*pid, now);
        }
        self.gone = gone;
        if self.born.len() >= self.most_born {
            self.born.retain(|pid, _| !discover::is_gone(*pid));
            self.most_born = MOST_BORN.max(2 * self.born.len());
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

    /// Everything that is known at `now`, CLOCK_MONOTONIC ns, and the stacks of `sites`, too.
    pub(super) fn report(&mut self, engine: &dyn Engine, catalog: &Catalog, now: u64, sites: &[u64]) -> Report {
        let mut report = self.stackless_report(engine, catalog, now);
        self.sites.name(&mut report, sites);
        merge_equal_sites(&mut report);
        report
    }

    /// What a living process holds, by the function that asked for it; most bytes first.
    pub(super) fn sites_of(&self, pid: u32, catalog: &Catalog, now: u64) -> Vec<SiteReport> {
        let Some(mut process) = self.ledgers.report_of(pid, now) else {
            return Vec::new();
        };
        name_functions(&mut process, catalog);
        process.sites
    }

    /// The same without names of call sites: these take a while.
    pub(super) fn stackless_report(&mut self, engine: &dyn Engine, catalog: &Catalog, now: u64) -> Report {
        self.note_losses(engine);
        let mut processes = self.ledgers.report(now);
        for process in &mut processes {
            if let Some(devices) = &self.devices {
                devices.complete(process);
            }
            name_functions(process, catalog);
        }
        let devices = self.devices.iter().flat_map(DevicePlane::notes).cloned();
        Report {
            at: now,
            started_at: self.started_at,
            processes,
            forgotten: self.ledgers.forgotten,
            notes: sites::notes(engine).into_iter().chain(devices).collect(),
            ..Report::default()
        }
    }
}

fn name_functions(process: &mut ProcessReport, catalog: &Catalog) {
    let name = |row: u32| catalog.rows.get(row as usize).map(|row| row.symbol.clone());
    for site in &mut process.sites {
        site.function = name(site.row).unwrap_or_default();
    }
    process.map.iter_mut().for_each(|map| map::name(map, catalog));
    for freed in &mut process.freed_by {
        freed.function = name(freed.row).unwrap_or_default();
    }
}

/// Clock ticks from boot until now.
fn boot_ticks() -> u64 {
    // SAFETY: asks for a constant of the system
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u128;
    (u128::from(crate::clock::since_boot_ns()) * per_second / 1_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn births_take_room_for_the_living_alone_and_a_number_may_come_again() {
        let mut born = HashMap::new();
        for pid in 0..10_000 {
            born.insert(pid, 100);
            forget_birth(&mut born, pid, 200);
        }
        assert!(born.is_empty());
        born.insert(7, 300);
        forget_birth(&mut born, 7, 200);
        assert_eq!(born.len(), 1, "the end is that of an earlier process");
    }
}
