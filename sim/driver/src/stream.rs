//! Streams: which there are, and what each has to do and when.
//!
//! Nothing runs. The end of work is known when it is submitted, and waiting for it is sleeping
//! until that time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use gpusim_common::clock::{now_ns, sleep_until};

use crate::activity;
use crate::call;
use crate::capture::Capture;
use crate::context::{self, Context};
use crate::error::{INVALID_HANDLE, STREAM_CAPTURE_UNSUPPORTED};
use crate::machine::machine;
use crate::timeline::{Joint, Lane, Order, Span};

const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_PER_THREAD`.
pub const PER_THREAD: usize = 2;

pub struct Stream {
    pub context: &'static Context,
    /// Its handle; 0 for the legacy default stream, 2 for a per-thread one.
    pub number: u64,
    pub flags: u32,
    pub priority: i32,
    pub id: u64,
    lane: Mutex<Lane>,
    /// When all that it has itself is done.
    end_ns: AtomicU64,
    is_capturing: AtomicBool,
    capture: Mutex<Option<Arc<Capture>>>,
}

type Streams = RwLock<HashMap<usize, &'static Stream>>;

fn streams() -> &'static Streams {
    static STREAMS: OnceLock<Streams> = OnceLock::new();
    STREAMS.get_or_init(Streams::default)
}

fn make(context: &'static Context, order: Order, flags: u32, priority: i32) -> Stream {
    static NEXT: AtomicU64 = AtomicU64::new(16);
    Stream {
        context,
        number: 0,
        flags,
        priority,
        id: NEXT.fetch_add(1, Relaxed),
        lane: Mutex::new(Lane::new(order)),
        end_ns: AtomicU64::new(0),
        is_capturing: AtomicBool::new(false),
        capture: Mutex::default(),
    }
}

/// A new stream of `context`.
pub fn create(context: &'static Context, flags: u32, priority: i32) -> usize {
    let order = if flags & NON_BLOCKING != 0 {
        Order::Free
    } else {
        Order::Blocking
    };
    let made = Box::leak(Box::new(make(context, order, flags, priority)));
    let handle = std::ptr::from_ref(made) as usize;
    made.number = handle as u64;
    let mut streams = streams().write().unwrap_or_else(PoisonError::into_inner);
    streams.insert(handle, made);
    drop(streams);
    activity::created(context, made);
    handle
}

/// Forgets a stream; what it has to do is done all the same.
pub fn destroy(handle: usize) -> Result<(), u32> {
    let removed = streams()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&handle);
    removed.map(drop).ok_or(INVALID_HANDLE)
}

/// The stream of a handle; of this thread's context if it is a default stream.
pub fn find(handle: usize) -> Result<&'static Stream, u32> {
    let context = context::current()?;
    if handle == PER_THREAD || (handle == 0 && call::default_is_per_thread()) {
        return Ok(of_thread(context));
    }
    if handle < PER_THREAD {
        let make = || -> &'static Stream { Box::leak(Box::new(make(context, Order::Legacy, 0, 0))) };
        return Ok(context.legacy.get_or_init(make));
    }
    let streams = streams().read().unwrap_or_else(PoisonError::into_inner);
    streams.get(&handle).copied().ok_or(INVALID_HANDLE)
}

/// The calling thread's own default stream.
fn of_thread(context: &'static Context) -> &'static Stream {
    thread_local! {
        static OWN: RefCell<Vec<&'static Stream>> = const { RefCell::new(Vec::new()) };
    }
    OWN.with_borrow_mut(|own| {
        if let Some(known) = own.iter().find(|stream| std::ptr::eq(stream.context, context)) {
            return *known;
        }
        let made = Box::leak(Box::new(make(context, Order::Blocking, 0, 0)));
        made.number = PER_THREAD as u64;
        own.push(made);
        made
    })
}

/// Blocks until all work of a context is done.
pub fn synchronise_context(context: &Context) {
    let end = joint(context).end_ns();
    sleep_until(end);
}

fn joint(context: &Context) -> MutexGuard<'_, Joint> {
    context.joint.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    pub fn device(&self) -> i32 {
        self.context.device
    }

    fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done_ns(&self) -> u64 {
        if self.number != 0 {
            return self.end_ns.load(Relaxed);
        }
        let lane = self.lane();
        lane.done_ns(&joint(self.context))
    }

    pub fn is_done(&self) -> bool {
        self.done_ns() <= now_ns()
    }

    /// Adds what has kept the host busy from `begun` until now: the device does nothing meanwhile.
    pub fn hold_up(&self, begun: u64) {
        let ns = now_ns().saturating_sub(begun);
        let span = self.lane().place(&mut joint(self.context), begun, ns);
        self.end_ns.store(span.end_ns, Relaxed);
    }

    /// Adds work that lasts `ns`.
    pub fn place(&self, ns: u64) -> Span {
        self.place_in(&mut self.lane(), now_ns(), ns)
    }

    fn place_in(&self, lane: &mut Lane, now_ns: u64, ns: u64) -> Span {
        if let Some(device) = machine().devices.get(self.device() as usize) {
            device.work(ns);
        }
        let span = lane.place(&mut joint(self.context), now_ns, ns);
        self.end_ns.store(span.end_ns, Relaxed);
        span
    }

    /// Adds a kernel, when there is room for it.
    pub fn place_kernel(&self, ns: u64) -> Span {
        let places = machine().queue;
        let (mut now, mut lane) = (now_ns(), self.lane());
        loop {
            let room = lane.room_ns(now, places);
            if room <= now {
                break;
            }
            drop(lane);
            sleep_until(room);
            (now, lane) = (now_ns(), self.lane());
        }
        let span = self.place_in(&mut lane, now, ns);
        if places > 0 {
            lane.queued(span.end_ns);
        }
        span
    }

    /// Makes later work start no earlier than `at_ns`.
    pub fn not_before(&self, at_ns: u64) {
        let mut lane = self.lane();
        lane.not_before(&mut joint(self.context), at_ns);
        self.end_ns.fetch_max(at_ns, Relaxed);
    }

    /// Blocks until everything in the stream is done.
    pub fn synchronise(&self) -> Result<(), u32> {
        if self.is_capturing() {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        sleep_until(self.done_ns());
        Ok(())
    }

    pub fn is_capturing(&self) -> bool {
        self.is_capturing.load(Relaxed)
    }

    /// What its work is recorded in instead of run.
    pub fn capture(&self) -> Option<Arc<Capture>> {
        if !self.is_capturing() {
            return None;
        }
        self.capture.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_capture(&self, capture: Option<Arc<Capture>>) {
        let mut own = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_capturing.store(capture.is_some(), Relaxed);
        *own = capture;
    }
}

/// The number by which CUPTI knows a stream.
pub fn number_of(handle: usize) -> Option<u32> {
    let streams = streams().read().unwrap_or_else(PoisonError::into_inner);
    streams.get(&handle).map(|stream| stream.id as u32)
}
