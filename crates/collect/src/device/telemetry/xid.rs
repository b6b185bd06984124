//! Xid events: what the kernel driver reports of a GPU's errors, as they come.
//!
//! NVML keeps one code for each GPU: of several events that come before they are fetched, all have the code of the
//! last. Between two rounds of questions events are waited for, and so fetched at once.

use super::gpu::Identity;
use crate::device::ask::{Gpu, note};
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper::event::EventSet;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

/// How NVML writes that it does not know the code.
const UNKNOWN: u64 = 999;

/// The events of one code on one GPU since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xid {
    pub gpu: Identity,
    /// See NVIDIA's "XID Errors"; 999: not known.
    pub code: u64,
    pub count: u64,
    /// When the last of them was told.
    pub last: SystemTime,
}

/// All events since the start.
#[derive(Default)]
pub(super) struct History(BTreeMap<(String, u64), Xid>);

impl History {
    pub(super) fn add(&mut self, gpu: &Identity, code: u64, at: SystemTime) {
        let known = self.0.entry((gpu.uuid.clone(), code)).or_insert_with(|| Xid {
            gpu: gpu.clone(),
            code,
            count: 0,
            last: at,
        });
        known.count += 1;
        known.last = at;
    }

    pub(super) fn all(&self) -> Vec<Xid> {
        self.0.values().cloned().collect()
    }
}

/// Waits for the events of all GPUs.
pub(super) struct Watch<'a> {
    set: EventSet<'a>,
    /// A lost GPU cannot be asked for its name.
    names: HashMap<usize, Identity>,
}

impl<'a> Watch<'a> {
    /// Registers the GPUs; `None`: none of them tells.
    pub(super) fn new(nvml: &'a Nvml, gpus: &[(Gpu<'a>, Identity)], notes: &mut Vec<String>) -> Option<Watch<'a>> {
        let mut refused = BTreeSet::new();
        while refused.len() < gpus.len() {
            let mut watch = Watch {
                set: nvml.create_event_set().ok()?,
                names: HashMap::new(),
            };
            let willing = gpus.iter().filter(|(_, name)| !refused.contains(&name.index));
            let failed = willing
                .into_iter()
                .find_map(|(gpu, name)| watch.register(gpu, name).err());
            let Some((index, error)) = failed else {
                return (!watch.names.is_empty()).then_some(watch);
            };
            if !super::answer::is_unsupported(&error) {
                notes.push(note(index, "Xid events are not told", &error));
            }
            // after an error the set may be in any state
            refused.insert(index);
        }
        None
    }

    fn register(&mut self, gpu: &Gpu<'a>, name: &Identity) -> Result<(), (u32, NvmlError)> {
        let ask = gpu.nvml().lib().nvmlDeviceRegisterEvents.as_ref();
        let ask = ask.map_err(|_| (name.index, NvmlError::FunctionNotFound))?;
        // SAFETY: device and set are of the same NVML and alive; the wrapper's own function frees the set on errors
        let code = unsafe { ask(gpu.handle(), EventTypes::CRITICAL_XID_ERROR.bits(), self.set.handle()) };
        nvml_try(code).map_err(|error| (name.index, error))?;
        // SAFETY: only the address is kept, to compare with
        self.names.insert(unsafe { gpu.handle() } as usize, name.clone());
        Ok(())
    }

    /// The next event within this time.
    ///
    /// # Errors
    /// When NVML does not answer.
    pub(super) fn next(&self, within: Duration) -> Result<Option<(Identity, u64)>, NvmlError> {
        let event = match self.set.wait(u32::try_from(within.as_millis()).unwrap_or(u32::MAX)) {
            Err(NvmlError::Timeout) => return Ok(None),
            event => event?,
        };
        let code = match event.event_data {
            Some(XidError::Value(code)) => code,
            Some(XidError::Unknown) => UNKNOWN,
            None => return Ok(None),
        };
        // SAFETY: only the address is used, to compare with
        let address = unsafe { event.device.handle() } as usize;
        let known = self.names.get(&address).cloned();
        Ok(known.or_else(|| self.by_uuid(&event.device)).map(|name| (name, code)))
    }

    fn by_uuid(&self, gpu: &Gpu) -> Option<Identity> {
        let uuid = gpu.uuid().ok()?;
        self.names.values().find(|name| name.uuid == uuid).cloned()
    }
}
