//! Events: when what they were recorded after is done.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use gpusim_common::clock::{now_ns, sleep_until};

use crate::capture::{self, Capture};
use crate::error::{INVALID_HANDLE, NOT_READY, STREAM_CAPTURE_UNSUPPORTED};
use crate::stream::Stream;
use crate::timeline::Span;

pub struct Event {
    flags: u32,
    /// When the recorded work is done; 0 before the first record.
    at_ns: AtomicU64,
    /// The capture it was recorded in, if that is where it was recorded last.
    capture: Mutex<Option<Arc<Capture>>>,
}

const NO_TIMING: u32 = 2;

type Events = RwLock<HashMap<usize, &'static Event>>;

fn events() -> &'static Events {
    static EVENTS: OnceLock<Events> = OnceLock::new();
    EVENTS.get_or_init(Events::default)
}

pub fn create(flags: u32) -> usize {
    let event: &'static Event = Box::leak(Box::new(Event {
        flags,
        at_ns: AtomicU64::new(0),
        capture: Mutex::default(),
    }));
    let handle = std::ptr::from_ref(event) as usize;
    events()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle, event);
    handle
}

pub fn destroy(handle: usize) -> Result<(), u32> {
    let removed = events().write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    removed.map(drop).ok_or(INVALID_HANDLE)
}

pub fn find(handle: usize) -> Result<&'static Event, u32> {
    let events = events().read().unwrap_or_else(PoisonError::into_inner);
    events.get(&handle).copied().ok_or(INVALID_HANDLE)
}

/// The milliseconds from one event to another, and when both were done.
pub fn elapsed(start: usize, end: usize) -> Result<(f32, Span), u32> {
    let (start, end) = (find(start)?, find(end)?);
    let (start_ns, end_ns) = (start.recorded_ns()?, end.recorded_ns()?);
    if (start.flags | end.flags) & NO_TIMING != 0 {
        return Err(INVALID_HANDLE);
    }
    if start_ns.max(end_ns) > now_ns() {
        return Err(NOT_READY);
    }
    let ms = (end_ns as f64 - start_ns as f64) / 1e6;
    Ok((ms as f32, Span { start_ns, end_ns }))
}

impl Event {
    pub fn record(&self, stream: &Stream) {
        let capture = stream.capture();
        if capture.is_none() {
            self.at_ns.store(stream.place(0).end_ns.max(1), Relaxed);
        }
        *self.capture.lock().unwrap_or_else(PoisonError::into_inner) = capture;
    }

    /// Lets a stream wait; one that waits for what is captured is captured itself.
    pub fn hold(&self, stream: &'static Stream) {
        match &*self.capture.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(captured) => capture::join(captured, stream),
            None => stream.not_before(self.at_ns.load(Relaxed)),
        }
    }

    fn is_captured(&self) -> bool {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn recorded_ns(&self) -> Result<u64, u32> {
        match self.at_ns.load(Relaxed) {
            0 => Err(INVALID_HANDLE),
            at if !self.is_captured() => Ok(at),
            _ => Err(INVALID_HANDLE),
        }
    }

    pub fn is_done(&self) -> Result<bool, u32> {
        if self.is_captured() {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        Ok(self.at_ns.load(Relaxed) <= now_ns())
    }

    /// Blocks until what it was recorded after is done.
    pub fn synchronise(&self) -> Result<(), u32> {
        if self.is_captured() {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        sleep_until(self.at_ns.load(Relaxed));
        Ok(())
    }
}
