//! Processes that ran code of a library before it was probed: what they called meanwhile is not known.
//!
//! Owns what is said of them. Whether a thread stood still until its probes were in place is told by
//! [`crate::probe::gate`].

use super::{Tracer, monotonic_ns};
use crate::wire::{self, Notice};
use std::time::Duration;

/// Processes that are named.
const MOST: usize = 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// Loads of libraries that did not wait at all.
    unheld: u64,
    named: usize,
}

impl Tracer {
    /// The thread of `notice` stood still until then, CLOCK_MONOTONIC ns, if it did. `is_behind`: probes were put into what
    /// its process maps after it had mapped it.
    pub(super) fn judge(&mut self, notice: &Notice, until: Option<u64>, is_behind: bool) {
        if until.is_some() || !is_behind {
            return;
        }
        // those that waited in vain are counted where they wait
        self.early.unheld += u64::from(notice.waits == 0);
        let ran = Duration::from_nanos(monotonic_ns().saturating_sub(notice.at));
        self.doubt(notice.tgid, Some((ran, wire::text_of(&notice.comm))));
    }

    /// Process `pid` ran for so long, and is named so, as far as is known.
    pub(super) fn doubt(&mut self, pid: u32, known: Option<(Duration, String)>) {
        self.memory.doubt(pid);
        self.work.doubt(pid);
        // a daemon counts them: their number has no bound
        if self.fleet.is_some() || self.early.named == MOST {
            return;
        }
        if let Some((ran, comm)) = known {
            self.early.named += 1;
            self.attacher.gap(format!(
                "{comm} {pid} ran for {:.1} ms before its libraries were probed: its first calls may be missing",
                ran.as_secs_f64() * 1e3
            ));
        }
    }

    /// Loads of libraries whose threads did not stand still until their probes were in place.
    pub(super) fn early_loads(&self, waits_expired: u64) -> u64 {
        waits_expired + self.gate.overdue() + self.early.unheld
    }
}
