//! One process: what each of its memory calls changes. [`allocation`] is about memory itself, [`graph`] about what
//! graphs will do, [`owner`] about contexts, pools and streams.

mod allocation;
mod graph;
mod owner;

use super::account::Ending;
use super::graphs::Graphs;
use super::group::GroupKey;
use super::ledger::{Ledger, Live};
use super::owners::Owners;
use super::physical::Physical;
use super::segments::Segments;
use crate::catalog::{Family, Part, Verb};
use crate::model::memory::Call;

/// How we came to know a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Watched from its first call.
    Start,
    /// It ran before: what it had allocated is not known.
    Late,
}

/// One process: what each of its memory calls changes.
#[derive(Debug)]
pub struct Process {
    pub comm: String,
    pub origin: Origin,
    pub first_at: u64,
    pub ledger: Ledger,
    pub owners: Owners,
    pub physical: Physical,
    graphs: Graphs,
    /// Kept from the first tensor on.
    pub segments: Option<Segments>,
    /// Bytes of tensors that were handed out outside of what is known to be allocated.
    pub strays: u64,
}

impl Process {
    /// A process of which nothing is known yet.
    pub(crate) fn new(origin: Origin, at: u64) -> Process {
        Process {
            comm: String::new(),
            origin,
            first_at: at,
            ledger: Ledger::default(),
            owners: Owners::default(),
            physical: Physical::default(),
            graphs: Graphs::default(),
            segments: None,
            strays: 0,
        }
    }

    /// Everything that is live, keyed or not.
    pub(crate) fn all_live(&self) -> impl Iterator<Item = (GroupKey, &Live)> {
        let keyed = self.ledger.all_live().map(|(key, live)| (*key, live));
        let physical = self.physical.live().map(|live| (self.ledger.group_key(live), live));
        keyed.chain(physical)
    }

    /// The same, each with where it lies; mappings of physical memory are left out, which is held by its blocks.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (Option<u64>, GroupKey, &Live)> {
        let keyed = self
            .ledger
            .placed()
            .map(|(address, key, live)| (Some(address), *key, live));
        let physical = self.physical.placed().into_iter();
        keyed.chain(physical.map(|(address, live)| (address, self.ledger.group_key(live), live)))
    }

    /// Does what `call` did.
    pub fn apply(&mut self, call: &Call<'_>) {
        self.ledger.by = call.raw.row;
        match call.verb {
            _ if call.too_late => {}
            Verb::Alloc => self.allocate(call),
            Verb::Free => self.free(call),
            Verb::Map if !call.succeeded => self.refused_allocation(call, Family::Mapped),
            Verb::Unmap if !call.succeeded => self.refused_free(Family::Mapped, call.key()),
            _ if !call.succeeded => {}
            Verb::Map => self.map(call),
            Verb::Unmap => {
                let gone = self.physical.unmap(call.key(), call.number(Part::Size));
                self.close_gone(gone);
            }
            Verb::Retain => {
                self.physical.retain(call.key(), call.number(Part::Address));
                self.ledger.forget_freed(Family::Physical, call.key());
            }
            Verb::PoolCreate | Verb::PoolDestroy | Verb::PoolRead => self.pool(call),
            Verb::GraphAlloc | Verb::GraphFree => self.plan_graph(call),
            Verb::GraphLaunch => self.launch_graph(call),
            Verb::GraphInstantiate => self
                .graphs
                .instantiate(call.number(Part::Graph), call.key(), call.raw.returned),
            Verb::GraphCreate => self.graphs.create(call.key(), call.raw.returned),
            Verb::GraphDestroy => self.graphs.destroy(call.key(), call.raw.entered),
            Verb::ExecDestroy => self.graphs.destroy_exec(call.key(), call.raw.entered),
            Verb::CaptureBegin => self.graphs.begin_capture(call.number(Part::Stream)),
            Verb::CaptureEnd => {
                self.graphs
                    .end_capture(call.number(Part::Stream), call.number(Part::Graph), call.raw.returned)
            }
            _ => self.own(call),
        }
    }

    /// Gives up waiting for frees of what was handed out again before `horizon`.
    pub fn settle(&mut self, horizon: u64) {
        self.ledger.settle_displaced(horizon);
        self.graphs.settle(horizon);
        for live in self.physical.settle_displaced(horizon) {
            self.ledger.close(&live, Ending::PointerReused);
            self.ledger.anomalies.reused_pointers += 1;
        }
    }
}
