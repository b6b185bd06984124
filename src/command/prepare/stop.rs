//! Whether the user wants the trace to end, as signals say.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Set by SIGINT, SIGTERM and SIGHUP; a second signal ends the process at once.
///
/// # Errors
/// A handler cannot be installed.
pub(crate) fn stop_flag() -> Result<StopFlag> {
    match ignores_hangup() {
        true => stop_flag_of(&[libc::SIGINT, libc::SIGTERM]),
        false => stop_flag_of(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]),
    }
}

/// The same by these signals.
///
/// # Errors
/// A handler cannot be installed.
fn stop_flag_of(signals: &[i32]) -> Result<StopFlag> {
    let flag = StopFlag::default();
    for signal in signals.iter().copied() {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag.set))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag.set)))
            .and_then(|_| signal_hook::flag::register_usize(signal, Arc::clone(&flag.signal), signal as usize))
            .context("failed to handle signals")?;
    }
    Ok(flag)
}

/// Under nohup(1) the end of a terminal is not ours.
fn ignores_hangup() -> bool {
    // SAFETY: only reads what is set for a signal, into a structure of ours
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut set) == 0 && set.sa_sigaction == libc::SIG_IGN
    }
}

/// Whether the user wants the trace to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag {
    set: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl StopFlag {
    /// True from the first signal on.
    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Relaxed)
    }

    /// The signal that wants it.
    pub(crate) fn signal(&self) -> Option<i32> {
        let signal = self.signal.load(Ordering::Relaxed);
        (signal > 0).then_some(signal as i32)
    }
}
