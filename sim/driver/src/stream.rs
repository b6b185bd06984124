//! Streams and events in simulated time.
//!
//! A stream is one number: when the last work given to it will be done. Nothing runs; waiting
//! for a stream is sleeping until that time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use gpusim_common::clock::{now_ns, sleep_until};

use crate::error::{INVALID_HANDLE, STREAM_CAPTURE_UNSUPPORTED};
use crate::graph::Step;
use crate::machine::machine;

/// How many kernels may wait in a stream before a launch blocks.
const QUEUE: u64 = 1024;
const NON_BLOCKING: u32 = 1;

/// Work recorded instead of run.
#[derive(Clone, Default)]
pub struct Recording {
    pub nodes: u64,
    pub kernels: u64,
    pub ns: u64,
    /// What it does to memory, in order.
    pub memory: Vec<Step>,
}

pub struct Stream {
    done_at: AtomicU64,
    pub device: i32,
    pub flags: u32,
    pub priority: i32,
    pub id: u64,
    capturing: AtomicBool,
    recording: Mutex<Recording>,
}

type Streams = RwLock<HashMap<usize, &'static Stream>>;

fn streams() -> &'static Streams {
    static STREAMS: OnceLock<Streams> = OnceLock::new();
    STREAMS.get_or_init(Streams::default)
}

pub fn create(device: i32, flags: u32, priority: i32) -> usize {
    static NEXT: AtomicU64 = AtomicU64::new(16);
    let stream: &'static Stream = Box::leak(Box::new(Stream {
        done_at: AtomicU64::new(0),
        device,
        flags,
        priority,
        id: NEXT.fetch_add(1, Relaxed),
        capturing: AtomicBool::new(false),
        recording: Mutex::default(),
    }));
    let handle = stream as *const Stream as usize;
    streams()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle, stream);
    handle
}

pub fn destroy(handle: usize) -> Result<(), u32> {
    let removed = streams()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&handle);
    removed.map(drop).ok_or(INVALID_HANDLE)
}

/// The stream of a handle; 0 and 1 are the default stream of `device`, 2 the per-thread one.
pub fn find(handle: usize, device: i32) -> Result<&'static Stream, u32> {
    static DEFAULTS: OnceLock<Vec<usize>> = OnceLock::new();
    let handle = if handle > 2 {
        handle
    } else {
        let count = machine().devices.len() as i32;
        let defaults = DEFAULTS.get_or_init(|| (0..2 * count).map(|i| create(i / 2, 0, 0)).collect());
        defaults[2 * device as usize + usize::from(handle == 2)]
    };
    let streams = streams().read().unwrap_or_else(PoisonError::into_inner);
    streams.get(&handle).copied().ok_or(INVALID_HANDLE)
}

/// When all streams of a device will be done.
pub fn all_done_at(device: i32) -> u64 {
    let streams = streams().read().unwrap_or_else(PoisonError::into_inner);
    streams
        .values()
        .filter(|s| s.device == device)
        .map(|s| s.done_at())
        .max()
        .unwrap_or(0)
}

impl Stream {
    pub fn done_at(&self) -> u64 {
        self.done_at.load(Relaxed)
    }

    pub fn is_done(&self) -> bool {
        self.done_at() <= now_ns()
    }

    pub fn is_capturing(&self) -> bool {
        self.capturing.load(Relaxed)
    }

    /// Adds work and returns when it will be done; while capturing, records it instead.
    pub fn enqueue(&self, ns: u64, kernels: u64) -> u64 {
        if self.is_capturing() {
            let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
            recording.nodes += 1;
            recording.kernels += kernels;
            recording.ns += ns;
            return 0;
        }
        let now = now_ns();
        let limit = QUEUE * machine().kernel_ns.max(1000);
        let waiting = self.done_at().saturating_sub(now);
        if kernels > 0 && waiting > limit {
            sleep_until(now + waiting - limit);
        }
        if let Some(device) = machine().devices.get(self.device as usize) {
            device.work(ns);
        }
        let mut done = 0;
        let _ = self.done_at.fetch_update(Relaxed, Relaxed, |at| {
            done = at.max(now) + ns;
            Some(done)
        });
        done
    }

    /// Adds a memory node to what is being captured.
    pub fn record(&self, step: Step) {
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        recording.nodes += 1;
        recording.memory.push(step);
    }

    /// Makes later work start no earlier than `at`.
    pub fn not_before(&self, at: u64) {
        self.done_at.fetch_max(at, Relaxed);
    }

    /// Blocks until everything in the stream is done. The default stream also waits for the
    /// streams that are not created as non-blocking.
    pub fn synchronise(&self) -> Result<(), u32> {
        if self.is_capturing() {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        sleep_until(self.done_at());
        Ok(())
    }

    /// Work of the default stream starts after that of all blocking streams.
    pub fn join_blocking(&self) {
        let streams = streams().read().unwrap_or_else(PoisonError::into_inner);
        let blocking = |s: &&&Stream| s.device == self.device && s.flags & NON_BLOCKING == 0;
        if let Some(at) = streams.values().filter(blocking).map(|s| s.done_at()).max() {
            self.not_before(at);
        }
    }

    pub fn begin_capture(&self) -> bool {
        *self.recording.lock().unwrap_or_else(PoisonError::into_inner) = Recording::default();
        !self.capturing.swap(true, Relaxed)
    }

    pub fn end_capture(&self) -> Option<Recording> {
        let was = self.capturing.swap(false, Relaxed);
        was.then(|| std::mem::take(&mut *self.recording.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
