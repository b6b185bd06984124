//! Xid events: a line `DEVICE xid CODE` is one event, told to the sets that its device was registered in before.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::device::at;
use crate::{INVALID_ARGUMENT, NOT_SUPPORTED, nvml, put, state};

const TIMEOUT: u32 = 10;
const XID: u64 = 8;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// `nvmlEventData_t`.
#[repr(C)]
pub struct Event {
    device: usize,
    kind: u64,
    data: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// For each registered device how many of its events were told.
type Set = BTreeMap<usize, usize>;

/// Sets by number.
static SETS: Mutex<BTreeMap<usize, Set>> = Mutex::new(BTreeMap::new());

fn on<T>(action: impl FnOnce(&mut BTreeMap<usize, Set>) -> T) -> T {
    action(&mut SETS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn create() -> usize {
    on(|sets| {
        let number = sets.keys().last().map_or(1, |last| last + 1);
        sets.insert(number, Set::new());
        number
    })
}

fn register(device: usize, set: usize) -> u32 {
    let before = state::lines(&device.to_string(), "xid").len();
    on(|sets| {
        sets.get_mut(&set)
            .map(|set| set.insert(device, before))
            .map_or(INVALID_ARGUMENT, |_| 0)
    })
}

/// As the real one: the code is that of the device's last event, whichever is told.
fn next(set: usize) -> Option<Event> {
    on(|sets| {
        for (device, told) in sets.get_mut(&set)? {
            let events = state::lines(&device.to_string(), "xid");
            if *told < events.len() {
                *told += 1;
                return Some(Event {
                    device: device + 1,
                    kind: XID,
                    data: events.last()?.parse().unwrap_or(999),
                    gpu_instance: u32::MAX,
                    compute_instance: u32::MAX,
                });
            }
        }
        None
    })
}

fn wait(set: usize, timeout: Duration) -> Option<Event> {
    let until = Instant::now() + timeout;
    loop {
        let event = next(set);
        let left = until.saturating_duration_since(Instant::now());
        if event.is_some() || left.is_zero() {
            return event;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

nvml! {
    fn nvmlEventSetCreate(place: *mut usize) { put(place, create()) }
    fn nvmlEventSetFree(set: usize) { on(|sets| sets.remove(&set)).map_or(INVALID_ARGUMENT, |_| 0) }
    fn nvmlDeviceGetSupportedEventTypes(handle: usize, place: *mut u64) { at!(handle); put(place, XID) }
    fn nvmlDeviceRegisterEvents(handle: usize, kinds: u64, set: usize) {
        let device = at!(handle);
        if kinds & XID == 0 { NOT_SUPPORTED } else { register(device, set) }
    }
    fn nvmlEventSetWait_v2(set: usize, place: *mut Event, timeout_ms: u32) {
        match state::trouble("driver") {
            0 => wait(set, Duration::from_millis(timeout_ms.into())).map_or(TIMEOUT, |event| put(place, event)),
            code => code,
        }
    }
}
