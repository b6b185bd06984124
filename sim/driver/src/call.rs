//! The call a thread is in, as far as the work it submits has to know.

use std::cell::Cell;

use gpusim_common::clock::now_ns;

use crate::work;

#[derive(Clone, Copy)]
pub struct Call {
    /// The exported function.
    pub api: &'static str,
    pub entered_ns: u64,
    /// Whether stream 0 is the per-thread default stream, as for `_ptsz` and `_ptds`.
    per_thread: bool,
}

const NONE: Call = Call {
    api: "",
    entered_ns: 0,
    per_thread: false,
};

thread_local! {
    static CURRENT: Cell<Call> = const { Cell::new(NONE) };
}

/// Notes a call; what it replaces, if it is worth noting.
#[inline]
pub fn enter(api: &'static str, per_thread: bool) -> Option<Call> {
    if !per_thread && !work::is_wanted() {
        return None;
    }
    let entered_ns = now_ns();
    Some(CURRENT.replace(Call {
        api,
        entered_ns,
        per_thread,
    }))
}

#[inline]
pub fn leave(outer: Option<Call>) {
    if let Some(outer) = outer {
        CURRENT.set(outer);
    }
}

/// Calls that a callback makes are calls of their own, and may never return to this one.
pub fn forget() {
    CURRENT.set(NONE);
}

pub fn current() -> Call {
    CURRENT.get()
}

/// What stream 0 means to the call at hand.
pub fn default_is_per_thread() -> bool {
    CURRENT.get().per_thread
}
