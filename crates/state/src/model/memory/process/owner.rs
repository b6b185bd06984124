//! Contexts, streams and pools, and the memory that goes with them.

use super::{Origin, Process};
use crate::catalog::{Family, Part, Verb};
use crate::model::memory::Call;
use crate::model::memory::account::Ending;
use crate::model::memory::ledger::UNKNOWN_DEVICE;

/// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const POOL_RESERVED_NOW: u64 = 5;

impl Process {
    pub(super) fn pool(&mut self, call: &Call<'_>) {
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

    /// Contexts and streams.
    pub(super) fn own(&mut self, call: &Call<'_>) {
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

    pub(super) fn end_context(&mut self, handle: u64, entered: u64, how: Ending) {
        let Some(context) = self.owners.drop_context(handle, entered) else {
            return;
        };
        self.ledger.close_where(how, |key, live| {
            live.context == context.number && bound_to_context(key.family)
        });
        self.recount_segments();
    }

    pub(super) fn reset(&mut self, device: i16) {
        let context = self.owners.reset_primary(device);
        self.end_primary(context, device, Ending::ContextReset);
    }

    /// With a primary context goes what is bound to no other; where it is not known, all that is on its device.
    pub(super) fn end_primary(&mut self, context: Option<u64>, device: i16, how: Ending) {
        if let Some(context) = context {
            self.end_context(context, u64::MAX, how);
        }
        self.ledger.close_where(how, |key, _| {
            let bound = context.is_none() && bound_to_context(key.family);
            key.device == device && (bound || matches!(key.family, Family::Async | Family::Graph))
        });
        self.recount_segments();
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
