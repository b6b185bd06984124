//! One process: what each of its memory calls changes.

use super::account::Ending;
use super::graphs::Graphs;
use super::ledger::{GroupKey, HOST, Ledger, Live, Match, UNKNOWN_DEVICE};
use super::owners::Owners;
use super::physical::{Gone, Physical};
use super::segments::Segments;
use crate::catalog::{Family, Part, Verb};
use crate::model::memory::Call;
use std::collections::HashSet;

const MEM_ALLOC_NODE: u64 = 10;
const MEM_FREE_NODE: u64 = 11;
const POOL_RESERVED_NOW: u64 = 5;

/// How we came to know a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Watched from its first call.
    Start,
    /// It ran before: what it had allocated is not known.
    Late,
}

/// See the module.
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
    pub fn new(origin: Origin, at: u64) -> Process {
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
    pub fn all_live(&self) -> impl Iterator<Item = (GroupKey, &Live)> {
        let keyed = self.ledger.all_live().map(|(key, live)| (*key, live));
        let physical = self.physical.live().map(|live| (self.ledger.group_key(live), live));
        keyed.chain(physical)
    }

    /// Does what `call` did.
    pub fn apply(&mut self, call: &Call<'_>) {
        self.ledger.by = call.raw.row;
        match call.verb {
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

    /// The device that memory of `family` lies on, or [`HOST`].
    fn place_of(&mut self, call: &Call<'_>, family: Family) -> i16 {
        match family {
            Family::Pinned | Family::Registered => HOST,
            Family::Reserved => UNKNOWN_DEVICE,
            _ => self.owners.device_of(call),
        }
    }

    /// A new allocation as `call` describes it.
    fn live(&mut self, call: &Call<'_>, family: Family) -> Live {
        let context = self.owners.context_of(call);
        let device = self.place_of(call, family);
        let group = self.ledger.group(GroupKey {
            site: call.raw.site,
            row: call.raw.row,
            family,
            device,
        });
        let bytes = call.bytes().unwrap_or_else(|| {
            self.ledger.anomalies.unsized_arrays += 1;
            0
        });
        let pool = call
            .part(Part::Pool)
            .map_or(0, |pool| self.owners.pool(pool, UNKNOWN_DEVICE, false).number);
        Live {
            bytes,
            at: call.raw.returned,
            group,
            context: context.number,
            pool,
        }
    }

    fn allocate(&mut self, call: &Call<'_>) {
        if !call.succeeded {
            return self.refused_allocation(call, call.family);
        }
        if call.hides(Part::Key) || call.key() == 0 {
            self.ledger.anomalies.unreadable += 1;
            return;
        }
        if let Some(stream) = call.part(Part::Stream)
            && self.graphs.captured(stream).is_some()
        {
            let live = self.live(call, Family::Graph);
            if let Some(plan) = self.graphs.captured(stream) {
                plan.allocations.push((call.key(), live));
            }
            return;
        }
        if call.family == Family::Ipc && self.owners.open_again(call.key()) {
            return; // the same memory
        }
        let live = self.live(call, call.family);
        self.add(call.family, call.key(), live);
    }

    fn add(&mut self, family: Family, key: u64, live: Live) {
        if family.space() == Family::Physical {
            self.ledger.open(&live);
            self.physical.create(key, live);
            self.ledger.forget_freed(Family::Physical, key);
            return;
        }
        self.ledger.insert(family.space(), key, live);
        match (family.space(), self.segments.as_mut()) {
            (Family::Device, Some(segments)) => segments.add(key, live.bytes),
            (Family::Tensor, _) => self.hand_out(key, live.bytes),
            _ => {}
        }
        if let Some(pool) = self.owners.pool_numbered(live.pool) {
            pool.used_bytes = pool.used_bytes.saturating_add(live.bytes);
            pool.peak_used_bytes = pool.peak_used_bytes.max(pool.used_bytes);
        }
    }

    /// A framework hands out a block.
    fn hand_out(&mut self, address: u64, bytes: u64) {
        let (ledger, physical) = (&self.ledger, &self.physical);
        let segments = self.segments.get_or_insert_with(|| {
            let mut segments = Segments::default();
            let allocated = ledger.space(Family::Device).map(|(key, live)| (key, live.bytes));
            for (start, bytes) in allocated.chain(physical.mapped()) {
                segments.add(start, bytes);
            }
            segments
        });
        if !segments.hand_out(address, bytes) {
            self.strays = self.strays.saturating_add(bytes);
        }
    }

    /// Some of what was allocated is gone.
    fn recount_segments(&mut self) {
        if let Some(segments) = self.segments.as_mut() {
            let (ledger, physical) = (&self.ledger, &self.physical);
            let mapped: HashSet<u64> = physical.mapped().map(|(start, _)| start).collect();
            segments.retain(|start| ledger.get(Family::Device, start).is_some() || mapped.contains(&start));
        }
    }

    fn free(&mut self, call: &Call<'_>) {
        let (space, key) = (call.family.space(), call.key());
        if key == 0 {
            return; // allowed, and does nothing
        }
        if let (true, Some(stream)) = (call.succeeded, call.part(Part::Stream))
            && let Some(plan) = self.graphs.captured(stream)
        {
            return plan.frees.push(key);
        }
        if !call.succeeded {
            return self.refused_free(space, key);
        }
        if space == Family::Physical {
            let gone = self.physical.release(key, call.raw.entered);
            if gone.unknown {
                self.ledger.anomalies.unknown_frees += 1;
            } else if !self.physical.has(key) {
                self.ledger.remember_freed(Family::Physical, key);
            }
            return self.close_gone(gone);
        }
        if space == Family::Ipc && !self.owners.close_last(key) {
            return;
        }
        match self.ledger.free(space, key, call.raw.entered) {
            Match::Live(live) => {
                self.give_to_pool(&live);
                if let (Family::Device, Some(segments)) = (space, self.segments.as_mut()) {
                    segments.remove(key);
                }
            }
            Match::Late => {}
            // a framework may keep what it freed while others still use it
            _ if space == Family::Tensor => {}
            Match::FreedBefore => self.ledger.anomalies.double_frees += 1,
            Match::Unknown => self.ledger.anomalies.unknown_frees += 1,
        }
    }

    fn give_to_pool(&mut self, live: &Live) {
        if let Some(pool) = self.owners.pool_numbered(live.pool) {
            pool.used_bytes = pool.used_bytes.saturating_sub(live.bytes);
        }
    }

    fn refused_allocation(&mut self, call: &Call<'_>, family: Family) {
        let device = self.place_of(call, family);
        self.ledger.note_failure(family, device);
    }

    fn refused_free(&mut self, space: Family, key: u64) {
        if self.ledger.was_freed(space, key) {
            self.ledger.anomalies.double_frees += 1;
        } else {
            self.ledger.anomalies.failed_frees += 1;
        }
    }

    fn close_gone(&mut self, gone: Gone) {
        for live in gone.blocks.iter().chain(&gone.mappings) {
            self.ledger.close(live, Ending::Freed);
        }
        if let Some(segments) = self.segments.as_mut() {
            gone.addresses.iter().for_each(|start| segments.remove(*start));
        }
    }

    fn map(&mut self, call: &Call<'_>) {
        let live = self.live(call, Family::Mapped);
        self.ledger.open(&live);
        self.physical
            .map(call.key(), live.bytes, call.number(Part::Handle), live);
        if let Some(segments) = self.segments.as_mut() {
            segments.add(call.key(), live.bytes);
        }
    }

    fn pool(&mut self, call: &Call<'_>) {
        let key = call.key();
        match call.verb {
            Verb::PoolCreate => {
                self.owners.drop_pool(key);
                let device = self.owners.device_of(call);
                self.owners.pool(key, device, true);
            }
            // what was allocated from it lives on
            Verb::PoolDestroy => self.owners.drop_pool(key),
            _ => {
                if let (POOL_RESERVED_NOW, Some(value)) = (call.number(Part::Attribute), call.part(Part::Value)) {
                    let pool = self.owners.pool(key, UNKNOWN_DEVICE, false);
                    pool.reserved = Some((value, call.raw.returned));
                }
            }
        }
    }

    fn plan_graph(&mut self, call: &Call<'_>) {
        let (graph, at) = (call.number(Part::Graph), call.raw.returned);
        match (call.verb, call.part(Part::Type)) {
            (Verb::GraphFree, _) => self.graphs.plan(graph, at).frees.push(call.key()),
            (_, Some(MEM_FREE_NODE)) => self.graphs.plan(graph, at).frees.push(call.number(Part::Address)),
            (_, None | Some(MEM_ALLOC_NODE)) if call.key() != 0 => {
                let live = self.live(call, Family::Graph);
                self.graphs.plan(graph, at).allocations.push((call.key(), live));
            }
            _ => {}
        }
    }

    fn launch_graph(&mut self, call: &Call<'_>) {
        let Some(plan) = self.graphs.launched(call.key()) else {
            return;
        };
        let plan = plan.clone();
        for (key, live) in &plan.allocations {
            let at = call.raw.returned;
            // freed by itself when it is launched again: its memory stays the same
            let again = |known: &Live| known.group == live.group;
            if !self.ledger.get(Family::Device, *key).is_some_and(again) {
                self.add(Family::Graph, *key, Live { at, ..*live });
            }
        }
        for key in &plan.frees {
            if let Match::Live(live) = self.ledger.free(Family::Device, *key, u64::MAX) {
                self.give_to_pool(&live);
            }
        }
    }

    /// Contexts and streams.
    fn own(&mut self, call: &Call<'_>) {
        let device = i16::try_from(call.number(Part::Device) as i32).unwrap_or(UNKNOWN_DEVICE);
        match call.verb {
            Verb::ContextCreate => drop(self.owners.add_context(call.key(), device, call.raw.returned)),
            Verb::ContextDestroy => self.end_context(call.key(), call.raw.entered, Ending::ContextDestroyed),
            Verb::PrimaryRetain => self.owners.retain_primary(device, call.key()),
            Verb::PrimaryRelease => {
                // what was kept before we came is not known
                let seen = self.origin == Origin::Start;
                if let Some(context) = self.owners.release_primary(device).filter(|_| seen) {
                    self.end_primary(Some(context), device, Ending::ContextDestroyed);
                }
            }
            Verb::PrimaryReset => self.reset(device),
            Verb::DeviceReset => {
                let device = self.owners.context_of(call).device;
                self.reset(device);
            }
            Verb::DeviceUuid => {
                let mut uuid = [0; 16];
                uuid[..8].copy_from_slice(&call.number(Part::Low).to_le_bytes());
                uuid[8..].copy_from_slice(&call.number(Part::High).to_le_bytes());
                self.owners.uuids.insert(call.number(Part::Device) as u32, uuid);
            }
            Verb::StreamCreate => self.owners.add_stream(call.key(), call.raw.context),
            _ => {}
        }
    }

    fn end_context(&mut self, handle: u64, entered: u64, how: Ending) {
        let Some(context) = self.owners.drop_context(handle, entered) else {
            return;
        };
        self.ledger.close_where(how, |key, live| {
            live.context == context.number && bound_to_context(key.family)
        });
        self.recount_segments();
    }

    fn reset(&mut self, device: i16) {
        let context = self.owners.reset_primary(device);
        self.end_primary(context, device, Ending::ContextReset);
    }

    /// With a primary context goes what is bound to no other; where it is not known, all that is on its device.
    fn end_primary(&mut self, context: Option<u64>, device: i16, how: Ending) {
        if let Some(context) = context {
            self.end_context(context, u64::MAX, how);
        }
        self.ledger.close_where(how, |key, _| {
            let bound = context.is_none() && bound_to_context(key.family);
            key.device == device && (bound || matches!(key.family, Family::Async | Family::Graph))
        });
        self.recount_segments();
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

/// Memory of pools and of the virtual-memory API belongs to no context.
fn bound_to_context(family: Family) -> bool {
    matches!(
        family,
        Family::Device
            | Family::Managed
            | Family::Array
            | Family::Mipmapped
            | Family::Pinned
            | Family::Registered
            | Family::Ipc
            | Family::External
            | Family::View
    )
}
