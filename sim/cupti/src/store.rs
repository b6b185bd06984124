//! What has run and was not handed over yet, and who takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpusim_common::clock::now_ns;

use crate::driver::Told;
use crate::faults;
use crate::record::{DEVICE, GRAPH, OVERHEAD, Ran, bytes_of};

pub type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
pub type Timestamp = extern "C" fn() -> u64;
pub type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);

#[derive(Default)]
pub struct Store {
    pub ran: Vec<Ran>,
    pub kinds: BTreeSet<u32>,
    pub callbacks: Option<(Request, Complete)>,
    pub timestamp: Option<Timestamp>,
    pub subscriber: Option<(Callback, usize)>,
    /// By domain and number.
    pub heard: BTreeSet<(u32, u32)>,
    /// Whether buffers come cleared: CUPTI does not, then.
    pub given_cleared: bool,
    /// Of graphs.
    first_nodes: BTreeMap<u32, u64>,
    /// Devices that were told of.
    devices: BTreeSet<u32>,
    /// When the last of what has run was over.
    busy_until: u64,
    count: u64,
    dropped: u64,
    pub flushes: u64,
    /// By the fault `shuffled`: what, and when.
    kept_back: Vec<Ran>,
    kept_at: u64,
}

static STORE: Mutex<Option<Store>> = Mutex::new(None);
static NAMES: Mutex<BTreeMap<Vec<u8>, usize>> = Mutex::new(BTreeMap::new());

pub fn with<T>(work: impl FnOnce(&mut Store) -> T) -> T {
    let mut store: MutexGuard<Option<Store>> = STORE.lock().unwrap_or_else(PoisonError::into_inner);
    work(store.get_or_insert_default())
}

/// The same address for the same name; 0: none.
pub fn interned(name: usize) -> usize {
    if name == 0 {
        return 0;
    }
    // SAFETY: a name of the driver's.
    let name: CString = unsafe { CStr::from_ptr(name as *const c_char) }.to_owned();
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = names.entry(name.as_bytes().to_vec());
    *known.or_insert_with(|| name.into_raw() as usize)
}

/// From here on idle time has the overhead that was asked for.
const WITH_OVERHEAD_NS: u64 = 1_000_000;

impl Store {
    /// Of a launch the first node comes first: where it comes again, that is another launch.
    fn add_node(&mut self, told: &Told) {
        let first = self.first_nodes.entry(told.graph).or_insert(told.node);
        if *first == told.node {
            self.ran.push(Ran::graph(told));
            return;
        }
        let is_its = |ran: &&mut Ran| ran.told.kind == GRAPH && ran.told.graph == told.graph;
        if let Some(launch) = self.ran.iter_mut().rev().find(is_its) {
            launch.told.end_ns = launch.told.end_ns.max(told.end_ns);
        }
    }

    /// What is handed over this time; each Nth time it comes behind what is handed over next.
    fn shuffled(&mut self, ready: Vec<Ran>, forced: bool) -> Vec<Ran> {
        self.flushes += 1;
        let behind = 2;
        if !forced && self.kept_back.is_empty() && faults::hits("shuffled", self.flushes) {
            self.kept_back = ready;
            self.kept_at = self.flushes;
            return Vec::new();
        }
        if forced || self.flushes >= self.kept_at + behind {
            return self.kept_back.drain(..).chain(ready).collect();
        }
        ready
    }

    fn add_overhead(&mut self, until: u64) {
        let (since, kind) = (self.busy_until, faults::number("overhead"));
        let is_wanted = kind > 0 && self.kinds.contains(&OVERHEAD);
        if is_wanted && since > 0 && until >= since + WITH_OVERHEAD_NS {
            self.ran.push(Ran::overhead(kind, since, until));
        }
    }
}

/// The driver runs something.
pub extern "C" fn take(told: *const Told) {
    // SAFETY: the driver's, for this call.
    let told = unsafe { &*told };
    with(|store| {
        if !store.kinds.contains(&told.kind) {
            return;
        }
        if store.kinds.contains(&DEVICE) && store.devices.insert(told.device) {
            store.ran.push(Ran::device(told.device));
        }
        store.add_overhead(told.start_ns);
        store.busy_until = store.busy_until.max(told.end_ns);
        if told.graph != 0 && store.kinds.contains(&GRAPH) {
            return store.add_node(told);
        }
        store.count += 1;
        if faults::hits("lost", store.count) {
            store.dropped += 1;
        } else {
            store.ran.push(Ran::new(told));
        }
    });
}

pub fn take_dropped() -> u64 {
    with(|store| std::mem::take(&mut store.dropped))
}

/// What CUPTI's clock shows now: of whoever was to be asked, else the time of day.
pub fn timestamp() -> u64 {
    match with(|store| store.timestamp).filter(|_| !faults::has("clock")) {
        Some(ask) => ask(),
        None => {
            let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: a place to write to, and a clock that exists.
            unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        }
    }
}

/// Hands over what is done; `forced`: also what is not, without times.
pub fn flush(forced: bool) {
    let now = now_ns();
    let offset = clock_offset();
    let (ready, callbacks) = with(|store| {
        let all = std::mem::take(&mut store.ran);
        let (ready, rest) = all.into_iter().partition(|ran| forced || ran.told.end_ns <= now);
        store.ran = rest;
        (store.shuffled(ready, forced), store.callbacks)
    });
    let Some((request, complete)) = callbacks else { return };
    hand_over(ready, now, offset, request, complete);
}

/// Of CUPTI's clock; of one that shows the same it is none.
fn clock_offset() -> u64 {
    let offset = timestamp().wrapping_sub(now_ns());
    if (offset as i64).abs() < 1_000_000 { 0 } else { offset }
}

/// Records of work that were handed over so far, however many at a time.
static HANDED_OVER: AtomicU64 = AtomicU64::new(0);

fn hand_over(ready: Vec<Ran>, now: u64, offset: u64, request: Request, complete: Complete) {
    let mut ready = ready.into_iter().peekable();
    while ready.peek().is_some() {
        let (mut buffer, mut bytes, mut most) = (std::ptr::null_mut(), 0, 0);
        request(&mut buffer, &mut bytes, &mut most);
        if buffer.is_null() {
            return;
        }
        // SAFETY: the buffer that was just given.
        let room = unsafe { std::slice::from_raw_parts_mut(buffer, bytes) };
        clear(room);
        let mut used = 0;
        while let Some(ran) = ready.next_if(|ran| used + bytes_of(ran.told.kind) <= bytes) {
            let end = used + bytes_of(ran.told.kind);
            let number = HANDED_OVER.fetch_add(u64::from(ran.is_work()), Relaxed) + u64::from(ran.is_work());
            ran.write(&mut room[used..end], times(&ran, now, offset, number));
            used = end;
        }
        complete(std::ptr::null_mut(), 0, buffer, bytes, used);
    }
}

/// Where CUPTI was told that buffers are cleared, what is in them would be taken for its own: it ends the program.
fn clear(room: &mut [u8]) {
    if with(|store| store.given_cleared) {
        assert!(
            room.iter().all(|byte| *byte == 0),
            "gpusim: a buffer that is not cleared"
        );
    } else {
        room.fill(0);
    }
}

/// How long before its time a record of the fault `early` is.
const EARLY_NS: u64 = 1_000_000;

fn times(ran: &Ran, now: u64, offset: u64, number: u64) -> (u64, u64) {
    let told = &ran.told;
    let hits = |fault| ran.is_work() && faults::hits(fault, number);
    let (start, end) = (told.start_ns.wrapping_add(offset), told.end_ns.wrapping_add(offset));
    if told.end_ns > now || hits("zero") {
        return (0, 0);
    }
    if hits("early") {
        return (start - EARLY_NS, end - EARLY_NS);
    }
    match hits("reversed") {
        true => (end + 1, start),
        false => (start, end),
    }
}
