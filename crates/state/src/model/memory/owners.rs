//! What memory belongs to beside a process: contexts (and through them devices), streams, pools.

use super::handles::Handles;
use super::ledger::{HOST, UNKNOWN_DEVICE};
use crate::catalog::Part;
use crate::model::memory::Call;
use std::collections::{BTreeMap, HashMap};

const LOCATION_DEVICE: u64 = 1;
const LEGACY_STREAMS: u64 = 2;

/// A context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub device: i16,
    /// Small number that stands for it; 0 is none.
    pub number: u16,
}

/// A device's primary context, as far as it was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Primary {
    pub context: u64,
    pub retained: u64,
}

/// A pool of the program's own, or one that it asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pool {
    pub number: u16,
    pub device: i16,
    /// Made by the program; else a device's own.
    pub made: bool,
    pub used_bytes: u64,
    pub peak_used_bytes: u64,
    /// What the driver told the program that the pool keeps, and when (CLOCK_MONOTONIC ns).
    pub reserved: Option<(u64, u64)>,
}

/// Contexts, streams and pools that memory belongs to.
#[derive(Debug, Default)]
pub struct Owners {
    contexts: Handles<Context>,
    primaries: HashMap<i16, Primary>,
    streams: HashMap<u64, u64>,
    pools: HashMap<u64, Pool>,
    /// Which device an ordinal stands for, as the driver told the program.
    pub uuids: BTreeMap<u32, [u8; 16]>,
    /// How often memory of other processes is open, by address.
    opened: HashMap<u64, u32>,
    numbers: u16,
    pool_numbers: u16,
}

impl Owners {
    /// The context of that handle; made with an unknown device when it was not seen before.
    pub fn context(&mut self, handle: u64) -> Context {
        if handle == 0 {
            return Context {
                device: UNKNOWN_DEVICE,
                number: 0,
            };
        }
        if let Some(known) = self.contexts.get(handle) {
            return known;
        }
        self.add_context(handle, UNKNOWN_DEVICE, 0)
    }

    /// A call that returned at `at` made a context. Its handle may have been another's.
    pub(crate) fn add_context(&mut self, handle: u64, device: i16, at: u64) -> Context {
        self.numbers = self.numbers.wrapping_add(1).max(1);
        let number = self.numbers;
        let context = Context { device, number };
        self.contexts.insert(handle, context, at);
        context
    }

    /// A context is on `device`.
    fn place_context(&mut self, handle: u64, device: i16) {
        self.context(handle);
        if let Some(context) = self.contexts.get_mut(handle) {
            context.device = device;
        }
    }

    /// A call entered at `entered` ends a context.
    pub(crate) fn drop_context(&mut self, handle: u64, entered: u64) -> Option<Context> {
        self.contexts.remove(handle, entered)
    }

    /// A primary context is kept once more.
    pub(crate) fn retain_primary(&mut self, device: i16, handle: u64) {
        self.place_context(handle, device);
        let primary = self.primaries.entry(device).or_default();
        primary.context = handle;
        primary.retained += 1;
    }

    /// A primary context is kept once less. Its handle when that was the last time; `None` also when not all of
    /// its beginnings were seen.
    pub(crate) fn release_primary(&mut self, device: i16) -> Option<u64> {
        let primary = self.primaries.get_mut(&device).filter(|primary| primary.retained > 0)?;
        primary.retained -= 1;
        (primary.retained == 0).then_some(primary.context)
    }

    /// A primary context ends at once; its handle, if it was seen.
    pub(crate) fn reset_primary(&mut self, device: i16) -> Option<u64> {
        self.primaries.remove(&device).map(|primary| primary.context)
    }

    /// A stream belongs to a context.
    pub(crate) fn add_stream(&mut self, stream: u64, context: u64) {
        self.streams.insert(stream, context);
    }

    /// The context that a call works in: its stream's, else its thread's.
    pub(crate) fn context_of(&mut self, call: &Call<'_>) -> Context {
        let stream = call.part(Part::Stream).filter(|stream| *stream > LEGACY_STREAMS);
        let handle = stream.and_then(|stream| self.streams.get(&stream).copied());
        self.context(handle.unwrap_or(call.raw.context))
    }

    /// The device that a call takes memory from.
    pub(crate) fn device_of(&mut self, call: &Call<'_>) -> i16 {
        match (call.part(Part::Location), call.part(Part::Device)) {
            (Some(location), _) if location != LOCATION_DEVICE => HOST,
            (_, Some(device)) => i16::try_from(device as i32).unwrap_or(UNKNOWN_DEVICE),
            _ => self.pool_device(call).unwrap_or_else(|| self.context_of(call).device),
        }
    }

    fn pool_device(&self, call: &Call<'_>) -> Option<i16> {
        let pool = self.pools.get(&call.part(Part::Pool)?)?;
        (pool.device != UNKNOWN_DEVICE).then_some(pool.device)
    }

    /// The pool of that handle; made when it was not seen before.
    pub(crate) fn pool(&mut self, handle: u64, device: i16, made: bool) -> &mut Pool {
        let numbers = &mut self.pool_numbers;
        self.pools.entry(handle).or_insert_with(|| {
            *numbers = numbers.wrapping_add(1).max(1);
            Pool {
                number: *numbers,
                device,
                made,
                ..Pool::default()
            }
        })
    }

    /// The pool of that number.
    pub(crate) fn pool_numbered(&mut self, number: u16) -> Option<&mut Pool> {
        self.pools.values_mut().find(|pool| pool.number == number)
    }

    /// A pool ends.
    pub(crate) fn drop_pool(&mut self, handle: u64) {
        self.pools.remove(&handle);
    }

    /// Another process's memory is opened; whether it was open already.
    pub(crate) fn open_again(&mut self, address: u64) -> bool {
        let opened = self.opened.entry(address).or_default();
        *opened += 1;
        *opened > 1
    }

    /// It is closed; whether that was the last time.
    pub(crate) fn close_last(&mut self, address: u64) -> bool {
        match self.opened.get_mut(&address) {
            Some(opened) if *opened > 1 => {
                *opened -= 1;
                false
            }
            _ => {
                self.opened.remove(&address);
                true
            }
        }
    }

    pub fn pools(&self) -> impl Iterator<Item = (u64, &Pool)> {
        self.pools.iter().map(|(handle, pool)| (*handle, pool))
    }
}
