//! When to stop, and how fast to go.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static STOPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: i32) {
    STOPPED.store(true, Relaxed);
}

/// Lets SIGINT and SIGTERM end the scenario after its current step, so that it still reports.
pub fn stop_on_signals() {
    let handler: extern "C" fn(i32) = stop;
    // SAFETY: the handler only stores to an atomic.
    unsafe {
        libc::signal(libc::SIGINT, handler as libc::sighandler_t);
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
    }
}

pub fn stopped() -> bool {
    STOPPED.load(Relaxed)
}

/// Numbers up to `steps`, or until stopped if `steps` is 0.
pub fn steps(steps: u64) -> impl Iterator<Item = u64> {
    (0..if steps == 0 { u64::MAX } else { steps }).take_while(|_| !stopped())
}
