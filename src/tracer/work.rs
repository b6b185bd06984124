//! Feeds the model of work: records of its ring, memory calls and the ends of processes, by time.

use super::facts::PendingFacts;
use super::in_order::InOrder;
use super::memory::MemoryPlane;
use crate::catalog::Catalog;
use crate::discover;
use crate::engine::{self, Engine, Records};
use crate::model::fleet::{Sums, Used};
use crate::model::launches::Launches;
use crate::model::memory::{self, Ledgers, Origin};
use crate::model::work::{Call, Gap, ProcessReport, StreamName, Work};
use crate::probe::address_space;
use crate::wire::{self, MemoryCall, Notice, WorkCall};
use anyhow::Result;

/// A record may come this much later than its call has returned, when its thread is interrupted in between.
const LATE_NS: u64 = 5_000_000;

enum Item {
    Work(WorkCall),
    Memory(MemoryCall),
    End { pid: u32, comm: String },
}

impl Item {
    fn pid(&self) -> u32 {
        match self {
            Item::Work(call) => call.tgid,
            Item::Memory(call) => call.tgid,
            Item::End { pid, .. } => *pid,
        }
    }

    /// When that began which came at `at`, CLOCK_MONOTONIC ns.
    fn begun(&self, at: u64) -> u64 {
        match self {
            Item::Work(call) => call.entered,
            Item::Memory(call) => call.entered,
            Item::End { .. } => at,
        }
    }
}

/// A process that had no call under way which puts something into a stream.
pub(super) struct Quiet {
    pid: u32,
    /// CLOCK_MONOTONIC ns.
    at: u64,
    /// Records of it, so far.
    lost: u64,
}

/// Feeds the model of work.
pub(super) struct WorkPlane {
    wanted: bool,
    calls: Records,
    model: Work,
    held: InOrder<Item>,
    lost: u64,
    pub(super) malformed: u64,
    pub(super) facts: PendingFacts,
    /// Idle times of processes that have ended.
    gaps: Vec<(u32, Gap)>,
}

impl WorkPlane {
    /// A process has made calls that were not seen.
    pub(super) fn doubt(&mut self, pid: u32) {
        if self.model.knows(pid) {
            self.model.doubt(pid);
            self.seed(pid);
        }
    }

    /// Opens the ring.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub(super) fn open(engine: &dyn Engine, wanted: bool) -> Result<WorkPlane> {
        Ok(WorkPlane {
            wanted,
            calls: Records::open(engine, engine::Stream::Work)?,
            model: Work::default(),
            held: InOrder::default(),
            lost: 0,
            malformed: 0,
            facts: PendingFacts::default(),
            gaps: Vec::new(),
        })
    }

    pub(super) fn bell(&self) -> i32 {
        self.calls.bell()
    }

    /// Takes in what is in the ring. To be done before memory calls are: what a copy's addresses stood for is then
    /// among these.
    pub(super) fn take_in(&mut self, memory: &mut MemoryPlane) {
        let inbox = std::rc::Rc::clone(self.calls.drain());
        for record in inbox.borrow().records() {
            let Some(call) = WorkCall::parse(record) else {
                self.malformed += 1;
                continue;
            };
            memory.sites.note(call.tid, call.entered, call.site);
            // its process may be gone before this is applied
            self.introduce(call.tgid, call.entered, memory);
            self.held.push(call.returned, Item::Work(call));
        }
        inbox.borrow_mut().clear();
    }

    /// Idle processes that have put nothing into a stream which has not returned. To be asked before what they told is
    /// taken in: then that is all there was.
    pub(super) fn look_for_quiet(&self, engine: &dyn Engine) -> Vec<Quiet> {
        let look = |pid: u32| {
            let at = crate::clock::monotonic_ns();
            let flow = engine.flow(pid).filter(|flow| flow.open == 0)?;
            Some(Quiet {
                pid,
                at,
                lost: flow.lost,
            })
        };
        self.model.idle().filter_map(look).collect()
    }

    /// They had nothing to do until then, or until what they told of and is not applied yet.
    pub(super) fn settle_quiet(&mut self, quiet: &[Quiet]) {
        for Quiet { pid, at, lost } in quiet {
            let known = self.held.iter().filter(|(_, item)| item.pid() == *pid);
            let until = known.map(|(at, item)| item.begun(*at)).min().unwrap_or(u64::MAX);
            self.model.quiet_until(*pid, until.min(*at), *lost);
        }
    }

    /// When devices were surely idle, as far as that was not taken before and ended before `horizon`.
    pub(super) fn take_gaps(&mut self, horizon: u64) -> Vec<(u32, Gap)> {
        let mut gaps = std::mem::take(&mut self.gaps);
        gaps.extend(self.model.take_gaps(horizon));
        gaps
    }

    /// Idle and busy time of the devices of a living process until `now`, CLOCK_MONOTONIC ns.
    pub(super) fn used(&self, pid: u32, now: u64) -> Option<Used> {
        let mut sums = Sums::default();
        self.model.so_far(pid, now)?.add_to(&mut sums);
        Some(sums.used)
    }

    /// A memory call has come in: the ledgers have it, and it gave back so many bytes.
    pub(super) fn remember(&mut self, call: &memory::Call<'_>, ledgers: &Ledgers, freed: Option<u64>) {
        if self.wanted {
            self.held.push(call.raw.returned, Item::Memory(*call.raw));
        }
        if self.facts.wanted() {
            let held = ledgers.held_on_devices(call.raw.tgid);
            self.facts.note_memory(call, held, freed);
        }
    }

    /// A process has ended, or has become another program.
    pub(super) fn ended(&mut self, notice: &Notice) {
        let (pid, comm) = (notice.tgid, wire::text_of(&notice.comm));
        self.held.push(notice.at, Item::End { pid, comm });
    }

    /// Applies what happened before `now`, CLOCK_MONOTONIC ns, and cannot come any more.
    pub(super) fn follow(&mut self, engine: &dyn Engine, catalog: &Catalog, memory: &MemoryPlane, now: u64) {
        let horizon = if now == u64::MAX {
            now
        } else {
            now.saturating_sub(LATE_NS)
        };
        while let Some((at, item)) = self.held.next_before(horizon) {
            match item {
                Item::Work(raw) => self.apply(&raw, catalog, memory),
                Item::Memory(raw) => {
                    if let Some(call) = memory::Call::decode(&raw, catalog) {
                        self.introduce(raw.tgid, raw.entered, memory);
                        self.model.remember(&call);
                    }
                }
                Item::End { pid, comm } => self.end(engine, pid, at, &comm),
            }
        }
    }

    fn apply(&mut self, raw: &WorkCall, catalog: &Catalog, memory: &MemoryPlane) {
        self.introduce(raw.tgid, raw.entered, memory);
        match Call::decode(raw, catalog) {
            Some(call) => {
                let copied = self.model.apply(&call);
                self.facts.note_work(raw, copied);
            }
            None => self.malformed += 1,
        }
    }

    /// A process makes calls now.
    pub(super) fn meet(&mut self, pid: u32, memory: &MemoryPlane) {
        self.introduce(pid, crate::clock::monotonic_ns(), memory);
    }

    /// Whether what is put into streams, and waits for it, is left unseen from now on.
    pub(super) fn set_blind(&mut self, blind: bool) {
        self.model.set_blind(blind, crate::clock::monotonic_ns());
    }

    fn introduce(&mut self, pid: u32, at: u64, memory: &MemoryPlane) {
        if !self.model.knows(pid) {
            let origin = memory.origin(pid);
            self.model.introduce(pid, origin, at);
            self.name(pid);
            if origin == Origin::Late {
                self.seed(pid);
            }
        }
    }

    /// What a process that ran before it was watched had allocated then.
    fn seed(&mut self, pid: u32) {
        // gone, or not to be looked at: then nothing of it is known
        for (start, end, kind) in address_space::device_ranges(pid).unwrap_or_default() {
            self.model.seed(pid, start, end, kind);
        }
    }

    fn name(&mut self, pid: u32) {
        if let Some(comm) = discover::comm(pid, pid) {
            self.model.name(pid, &comm);
        }
    }

    fn end(&mut self, engine: &dyn Engine, pid: u32, at: u64, comm: &str) {
        if !self.model.is_end_of(pid, at) {
            return;
        }
        if !comm.is_empty() {
            self.model.name(pid, comm);
        }
        self.count_lanes(engine.take_lanes(pid));
        self.note_losses(engine);
        if self.facts.all_wanted() {
            let gaps = self.model.take_last_gaps(pid);
            self.gaps.extend(gaps.into_iter().map(|gap| (pid, gap)));
        }
        self.model.end(pid, at);
        engine.forget_work_loss(pid);
    }

    fn count_lanes(&mut self, lanes: Result<Vec<(wire::LaneKey, wire::Lane)>>) {
        for (key, lane) in lanes.unwrap_or_default() {
            let name = StreamName::named(key.stream, key.context, key.tid);
            self.model.count(key.tgid, name, lane.submitted);
        }
    }

    fn note_losses(&mut self, engine: &dyn Engine) {
        let lost = engine.counters().work_lost;
        if lost == self.lost {
            return;
        }
        self.lost = lost;
        for (pid, loss) in engine.work_losses().unwrap_or_default() {
            self.model.set_loss(pid, loss);
        }
    }

    /// Whether a process has not ended yet, as far as its records have been taken in.
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.model.knows(pid)
    }

    /// Tells which kernels graphs ran. `all`: of processes that live, too; then nothing comes after it.
    pub(super) fn tell_graphs(&mut self, launches: &mut Launches, all: bool) {
        let ended = self.model.take_graph_kernels();
        ended.iter().for_each(|kernel| launches.add_graph_kernel(kernel));
        if all {
            self.model
                .graph_kernels()
                .for_each(|kernel| launches.add_graph_kernel(&kernel));
        }
    }

    /// The same of all, which will be told again.
    pub(super) fn show_graphs(&self, launches: &mut Launches) {
        let ended = self.model.ended_graph_kernels();
        ended.iter().for_each(|kernel| launches.add_graph_kernel(kernel));
        self.model
            .graph_kernels()
            .for_each(|kernel| launches.add_graph_kernel(&kernel));
    }

    /// Processes that have ended since this was last asked.
    pub(super) fn take_ended(&mut self) -> Vec<ProcessReport> {
        self.model.take_ended()
    }

    /// Processes that live.
    pub(super) fn alive(&self) -> impl Iterator<Item = u32> {
        self.model.alive()
    }

    /// What a living process has done until `now`, CLOCK_MONOTONIC ns. `None`: it is not known.
    pub(super) fn so_far(&self, pid: u32, now: u64) -> Option<ProcessReport> {
        self.model.so_far(pid, now)
    }

    /// A process has ended, and nobody told.
    pub(super) fn lost_sight(&mut self, pid: u32) {
        let comm = String::new();
        self.held.push(crate::clock::monotonic_ns(), Item::End { pid, comm });
    }

    /// Processes may call themselves otherwise than before.
    pub(super) fn name_all(&mut self) {
        for pid in self.model.alive().collect::<Vec<u32>>() {
            self.name(pid);
        }
    }

    /// What records have told up to `now`, CLOCK_MONOTONIC ns: what the kernel alone has counted of streams is missing.
    pub(super) fn report_of_records(&mut self, engine: &dyn Engine, now: u64) -> Vec<ProcessReport> {
        self.note_losses(engine);
        self.model.report(now)
    }

    /// Everything that is known at `now`, CLOCK_MONOTONIC ns.
    pub(super) fn report(&mut self, engine: &dyn Engine, now: u64) -> Vec<ProcessReport> {
        self.note_losses(engine);
        self.count_lanes(engine.lanes());
        self.model.report(now)
    }
}
