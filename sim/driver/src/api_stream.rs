//! Streams and events.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, PoisonError, RwLock};

use gpusim_common::clock::{now_ns, sleep_until};

use crate::context::current_device;
use crate::error::*;
use crate::{context, pool, stream};

struct Event {
    flags: u32,
    /// When the recorded work is done; 0 before the first record.
    at: AtomicU64,
}

const NO_TIMING: u32 = 2;

type Events = RwLock<HashMap<usize, &'static Event>>;

fn events() -> &'static Events {
    static EVENTS: OnceLock<Events> = OnceLock::new();
    EVENTS.get_or_init(Events::default)
}

fn event(handle: usize) -> Result<&'static Event, u32> {
    let events = events().read().unwrap_or_else(PoisonError::into_inner);
    events.get(&handle).copied().ok_or(INVALID_HANDLE)
}

fn record(handle: usize, stream: usize) -> Result<(), u32> {
    let device = current_device()?;
    let (event, stream) = (event(handle)?, stream::find(stream, device)?);
    event.at.store(stream.enqueue(0, 0).max(1), Relaxed);
    Ok(())
}

unsafe fn elapsed(ms: *mut f32, start: usize, end: usize) -> Result<(), u32> {
    current_device()?;
    let (start, end) = (event(start)?, event(end)?);
    let (from, to) = (start.at.load(Relaxed), end.at.load(Relaxed));
    if (start.flags | end.flags) & NO_TIMING != 0 || from == 0 || to == 0 {
        return Err(INVALID_HANDLE);
    }
    if from.max(to) > now_ns() {
        return Err(NOT_READY);
    }
    // SAFETY: an out-pointer of the caller.
    unsafe { put(ms, (to as f64 - from as f64) as f32 / 1e6) }
}

fn drop_event(handle: usize) -> Result<(), u32> {
    current_device()?;
    let removed = events().write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    removed.map(drop).ok_or(INVALID_HANDLE)
}

fn wait(handle: usize, on: usize) -> Result<(), u32> {
    let device = current_device()?;
    let at = event(on)?.at.load(Relaxed);
    stream::find(handle, device)?.not_before(at);
    Ok(())
}

api! {
    fn cuStreamCreate(place: *mut usize, flags: u32) {
        let device = current_device()?;
        require(!place.is_null() && flags < 2)?;
        put(place, stream::create(device, flags, 0))?;
    }
    fn cuStreamCreateWithPriority(place: *mut usize, flags: u32, priority: i32) {
        let device = current_device()?;
        require(!place.is_null() && flags < 2)?;
        put(place, stream::create(device, flags, priority.clamp(-5, 0)))?;
    }
    fn cuStreamDestroy_v2(handle: usize) {
        current_device()?;
        stream::destroy(handle)?;
    }
    fn cuStreamQuery(handle: usize) {
        let device = current_device()?;
        if !stream::find(handle, device)?.is_done() { return Err(NOT_READY); }
    }
    fn cuStreamSynchronize(handle: usize) {
        let device = current_device()?;
        let stream = stream::find(handle, device)?;
        if handle < 2 { stream.join_blocking(); }
        stream.synchronise()?;
        pool::settle(stream.device);
    }
    fn cuStreamWaitEvent(handle: usize, event: usize, _flags: u32) { wait(handle, event)?; }
    fn cuStreamGetFlags(handle: usize, flags: *mut u32) { put(flags, stream::find(handle, current_device()?)?.flags)?; }
    fn cuStreamGetPriority(handle: usize, priority: *mut i32) { put(priority, stream::find(handle, current_device()?)?.priority)?; }
    fn cuStreamGetId(handle: usize, id: *mut u64) { put(id, stream::find(handle, current_device()?)?.id)?; }
    fn cuStreamGetDevice(handle: usize, device: *mut i32) { put(device, stream::find(handle, current_device()?)?.device)?; }
    fn cuStreamGetCtx(handle: usize, place: *mut usize) {
        let device = stream::find(handle, current_device()?)?.device;
        put(place, context::primary(device)?.handle())?;
    }

    fn cuEventCreate(place: *mut usize, flags: u32) {
        current_device()?;
        require(!place.is_null() && flags < 8)?;
        let event: &'static Event = Box::leak(Box::new(Event { flags, at: AtomicU64::new(0) }));
        let handle = event as *const Event as usize;
        events().write().unwrap_or_else(PoisonError::into_inner).insert(handle, event);
        put(place, handle)?;
    }
    fn cuEventDestroy_v2(handle: usize) { drop_event(handle)?; }
    fn cuEventRecord(handle: usize, stream: usize) { record(handle, stream)?; }
    fn cuEventRecordWithFlags(handle: usize, stream: usize, _flags: u32) { record(handle, stream)?; }
    fn cuEventQuery(handle: usize) {
        current_device()?;
        if event(handle)?.at.load(Relaxed) > now_ns() { return Err(NOT_READY); }
    }
    fn cuEventSynchronize(handle: usize) {
        let device = current_device()?;
        sleep_until(event(handle)?.at.load(Relaxed));
        pool::settle(device);
    }
    fn cuEventElapsedTime(ms: *mut f32, start: usize, end: usize) { elapsed(ms, start, end)?; }
    fn cuEventElapsedTime_v2(ms: *mut f32, start: usize, end: usize) { elapsed(ms, start, end)?; }
}
