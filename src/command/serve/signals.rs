//! What signals want of the exporter.

use crate::command::prepare::{self, StopFlag};
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// See the module.
pub(super) struct Signals {
    stop: StopFlag,
    hangup: Arc<AtomicBool>,
}

impl Signals {
    /// SIGINT and SIGTERM end it, a second one at once; SIGHUP is taken note of.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub(super) fn catch() -> Result<Signals> {
        let hangup = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(libc::SIGHUP, Arc::clone(&hangup)).context("failed to handle SIGHUP")?;
        let stop = prepare::stop_flag_of(&[libc::SIGINT, libc::SIGTERM])?;
        Ok(Signals { stop, hangup })
    }

    pub(super) fn end(&self) -> bool {
        self.stop.is_set()
    }

    pub(super) fn take_hangup(&self) -> bool {
        self.hangup.swap(false, Ordering::Relaxed)
    }
}
