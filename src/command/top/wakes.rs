//! What signals want: to end, to stop for the shell, to go on after it.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What signals want.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    end: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    go_on: Arc<AtomicBool>,
}

impl Wakes {
    /// To end alone.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub(super) fn register() -> Result<Wakes> {
        let wakes = Wakes::default();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            set_by(signal, &wakes.end)?;
        }
        Ok(wakes)
    }

    /// With those of a shell, for who has its terminal.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub(super) fn of_screen() -> Result<Wakes> {
        let wakes = Wakes::register()?;
        set_by(libc::SIGTSTP, &wakes.stop)?;
        set_by(libc::SIGCONT, &wakes.go_on)?;
        Ok(wakes)
    }

    pub(super) fn end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    pub(super) fn take_stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }

    pub(super) fn take_go_on(&self) -> bool {
        self.go_on.swap(false, Ordering::Relaxed)
    }
}

fn set_by(signal: i32, flag: &Arc<AtomicBool>) -> Result<()> {
    let registered = signal_hook::flag::register(signal, Arc::clone(flag));
    registered.map(drop).context("failed to handle signals")
}
