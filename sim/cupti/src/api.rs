//! The entries that tools call.

use std::ffi::{c_char, c_void};

use crate::record::{self, bytes_of};
use crate::store::{self, Callback, Complete, Request, Timestamp};
use crate::{driver, faults};

/// CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER.
const ZEROED_OUT_BUFFERS: u32 = 5;
const OK: u32 = 0;
const INVALID_PARAMETER: u32 = 1;
const MAX_LIMIT_REACHED: u32 = 12;
const NOT_INITIALIZED: u32 = 15;
const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: u32 = 39;
const DRIVER: u32 = 1;
const RESOURCE: u32 = 3;
const CONTEXT_CREATED: u32 = 1;
const STREAM_CREATED: u32 = 3;
const FORCED: u32 = 1;

/// 13.0.1.
const VERSION: u32 = 130_001;

#[repr(C)]
struct ResourceData {
    context: usize,
    stream: usize,
    more: usize,
}

extern "C" fn hear(context: usize, stream: usize) {
    let id = if stream == 0 { CONTEXT_CREATED } else { STREAM_CREATED };
    let heard = store::with(|store| store.subscriber.filter(|_| store.heard.contains(&(RESOURCE, id))));
    let data = ResourceData {
        context,
        stream,
        more: 0,
    };
    if let Some((callback, own)) = heard {
        callback(own as *mut c_void, RESOURCE, id, (&raw const data).cast());
    }
}

/// Of CUpti_CallbackData.
#[repr(C)]
struct CallData {
    site: u32,
    name: usize,
    arguments: *const usize,
}

extern "C" fn hear_of_node(function: u32, arguments: *const usize) {
    let heard = store::with(|store| store.subscriber.filter(|_| store.heard.contains(&(DRIVER, function))));
    let data = CallData {
        site: 0,
        name: 0,
        arguments,
    };
    if let Some((callback, own)) = heard {
        callback(own as *mut c_void, DRIVER, function, (&raw const data).cast());
    }
}

/// Whether a graph that got copies by hand fails: while copies are recorded, once it was asked to hand over, as CUPTI 13.0 has it.
extern "C" fn fails_copies() -> bool {
    let records = |store: &store::Store| {
        [record::COPY, record::PEER_COPY]
            .iter()
            .any(|kind| store.kinds.contains(kind))
    };
    store::with(|store| records(store) && store.flushes > 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> u32 {
    // SAFETY: an out-pointer of the caller.
    unsafe { *version = VERSION };
    OK
}

/// Of two libraries in a process only the one that was asked first works.
fn attached() -> u32 {
    while faults::has("waits") {
        std::thread::park();
    }
    match driver::watch(Some(store::take), Some(hear), (hear_of_node, fails_copies)) {
        _ if faults::has("new") => NOT_INITIALIZED,
        None => NOT_INITIALIZED,
        Some(false) => MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
        Some(true) => OK,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(place: *mut usize, callback: Callback, own: usize) -> u32 {
    match attached() {
        OK => {}
        error => return error,
    }
    let is_free = !faults::has("held") && store::with(|store| store.subscriber.is_none());
    if !is_free {
        return MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    store::with(|store| store.subscriber = Some((callback, own)));
    // SAFETY: an out-pointer of the caller.
    unsafe { *place = 1 };
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiUnsubscribe(_subscriber: usize) -> u32 {
    store::with(|store| {
        assert!(
            !store.given_cleared,
            "gpusim: whoever subscribes next does not know that buffers must be cleared"
        );
        store.subscriber = None;
    });
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(enable: u32, _subscriber: usize, domain: u32, id: u32) -> u32 {
    store::with(|store| {
        match (domain, enable) {
            (DRIVER | RESOURCE, 0) => drop(store.heard.remove(&(domain, id))),
            (DRIVER | RESOURCE, _) => drop(store.heard.insert((domain, id))),
            _ => return INVALID_PARAMETER,
        }
        OK
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(request: Request, complete: Complete) -> u32 {
    store::with(|store| store.callbacks = Some((request, complete)));
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterTimestampCallback(timestamp: Timestamp) -> u32 {
    store::with(|store| store.timestamp = Some(timestamp));
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, place: *mut *mut u8) -> u32 {
    // SAFETY: a buffer of ours, and a record in it or null.
    unsafe {
        let next = match *place {
            last if last.is_null() => buffer,
            last => last.add(bytes_of(last.cast::<u32>().read_unaligned())),
        };
        if next.offset_from(buffer) as usize >= valid {
            return MAX_LIMIT_REACHED;
        }
        *place = next;
    }
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(_context: usize, _stream: u32, count: *mut usize) -> u32 {
    // SAFETY: an out-pointer of the caller.
    unsafe { *count = store::take_dropped() as usize };
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> u32 {
    match attached() {
        OK => {}
        error => return error,
    }
    store::with(|store| store.kinds.insert(kind));
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: u32) -> u32 {
    store::with(|store| store.kinds.remove(&kind));
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(how: u32) -> u32 {
    while how & FORCED != 0 && faults::has("hang") {
        std::thread::park();
    }
    store::flush(how & FORCED != 0);
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(place: *mut u64) -> u32 {
    // SAFETY: an out-pointer of the caller.
    unsafe { *place = store::timestamp() };
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivitySetAttribute(attribute: u32, _bytes: *mut usize, value: *mut c_void) -> u32 {
    if attribute == ZEROED_OUT_BUFFERS {
        // SAFETY: a byte, for this attribute.
        let given = unsafe { *value.cast::<u8>() } != 0;
        store::with(|store| store.given_cleared = given);
    }
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiSetThreadIdType(_kind: u32) -> u32 {
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetStreamIdEx(context: usize, stream: usize, _per_thread: u8, place: *mut u32) -> u32 {
    let Some([_, number]) = driver::numbers(context, stream) else {
        return INVALID_PARAMETER;
    };
    // SAFETY: an out-pointer of the caller.
    unsafe { *place = number };
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetContextId(context: usize, place: *mut u32) -> u32 {
    let Some([number, _]) = driver::numbers(context, 0) else {
        return INVALID_PARAMETER;
    };
    // SAFETY: an out-pointer of the caller.
    unsafe { *place = number };
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(_result: u32, place: *mut *const c_char) -> u32 {
    // SAFETY: an out-pointer of the caller.
    unsafe { *place = c"simulated".as_ptr() };
    OK
}
