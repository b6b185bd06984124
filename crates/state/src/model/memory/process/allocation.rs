//! Memory comes, is mapped, and goes.

use super::Process;
use crate::catalog::{Family, Part};
use crate::model::memory::Call;
use crate::model::memory::account::Ending;
use crate::model::memory::group::GroupKey;
use crate::model::memory::ledger::{HOST, Live, Match, UNKNOWN_DEVICE};
use crate::model::memory::physical::Gone;
use crate::model::memory::segments::Segments;
use std::collections::HashSet;

impl Process {
    /// The device that memory of `family` lies on, or [`HOST`].
    pub(super) fn place_of(&mut self, call: &Call<'_>, family: Family) -> i16 {
        match family {
            Family::Pinned | Family::Registered => HOST,
            Family::Reserved => UNKNOWN_DEVICE,
            _ => self.owners.device_of(call),
        }
    }

    /// A new allocation as `call` describes it.
    pub(super) fn live(&mut self, call: &Call<'_>, family: Family) -> Live {
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

    pub(super) fn allocate(&mut self, call: &Call<'_>) {
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

    pub(super) fn add(&mut self, family: Family, key: u64, live: Live) {
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
    pub(super) fn hand_out(&mut self, address: u64, bytes: u64) {
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
    pub(super) fn recount_segments(&mut self) {
        if let Some(segments) = self.segments.as_mut() {
            let (ledger, physical) = (&self.ledger, &self.physical);
            let mapped: HashSet<u64> = physical.mapped().map(|(start, _)| start).collect();
            segments.retain(|start| ledger.get(Family::Device, start).is_some() || mapped.contains(&start));
        }
    }

    pub(super) fn free(&mut self, call: &Call<'_>) {
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

    pub(super) fn give_to_pool(&mut self, live: &Live) {
        if let Some(pool) = self.owners.pool_numbered(live.pool) {
            pool.used_bytes = pool.used_bytes.saturating_sub(live.bytes);
        }
    }

    pub(super) fn refused_allocation(&mut self, call: &Call<'_>, family: Family) {
        let device = self.place_of(call, family);
        self.ledger.note_failure(family, device);
    }

    pub(super) fn refused_free(&mut self, space: Family, key: u64) {
        if self.ledger.was_freed(space, key) {
            self.ledger.anomalies.double_frees += 1;
        } else {
            self.ledger.anomalies.failed_frees += 1;
        }
    }

    pub(super) fn close_gone(&mut self, gone: Gone) {
        for live in gone.blocks.iter().chain(&gone.mappings) {
            self.ledger.close(live, Ending::Freed);
        }
        if let Some(segments) = self.segments.as_mut() {
            gone.addresses.iter().for_each(|start| segments.remove(*start));
        }
    }

    pub(super) fn map(&mut self, call: &Call<'_>) {
        let live = self.live(call, Family::Mapped);
        self.ledger.open(&live);
        self.physical
            .map(call.key(), live.bytes, call.number(Part::Handle), live);
        if let Some(segments) = self.segments.as_mut() {
            segments.add(call.key(), live.bytes);
        }
    }
}
