//! Processes that ran code of a library before it was probed: what they called meanwhile is not known.
//!
//! Owns what is said of them. Whether a thread stood still until its probes were in place is told by
//! [`crate::probe::gate`].

use super::Tracer;
use crate::clock::monotonic_ns;
use crate::wire::{self, Notice};
use std::time::Duration;

/// Processes that are named.
const MOST: usize = 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// Loads of libraries that did not wait at all.
    unheld: u64,
    /// Processes that did not wait and were gone when they were looked at.
    pub(super) unread: u64,
    named: usize,
    /// Processes whose own linker was hooked while it may have been at work already.
    unsure: Vec<u32>,
}

/// Processes that are looked at again.
const MOST_UNSURE: usize = 256;

impl Early {
    /// What the linker of process `pid` loads may not be told of.
    pub(super) fn look_again(&mut self, pid: u32) {
        if self.unsure.len() < MOST_UNSURE {
            self.unsure.push(pid);
        }
    }
}

impl Tracer {
    /// Probes were put into what a process maps after it had mapped it. The thread of `notice` stood still until then,
    /// CLOCK_MONOTONIC ns, if it did.
    pub(super) fn judge(&mut self, notice: &Notice, until: Option<u64>) {
        // of one that had nothing to wait for, another notice tells
        if until.is_some() || notice.waits == wire::WAITS_FOR_NONE {
            return;
        }
        // those that waited in vain are counted where they wait
        self.early.unheld += u64::from(notice.waits != wire::WAITS_HERE);
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

    /// What a process had mapped when `notice` was sent cannot be told any more.
    pub(super) fn note_gone(&mut self, notice: &Notice) {
        let ran_on = notice.kind == wire::NOTICE_LIBRARY && notice.waits == 0;
        self.early.unread += u64::from(ran_on);
    }

    /// Attaches to what processes have loaded through a linker that was hooked too late to tell. To be called once a second.
    pub(super) fn look_at_unsure(&mut self) {
        for pid in std::mem::take(&mut self.early.unsure) {
            let news = self.attacher.news(&self.rows.catalog, pid, u64::MAX, &[]);
            let Ok(news) = news else { continue };
            let mut is_behind = false;
            for mapping in &news.mappings {
                is_behind |= self.attacher.consider(&self.session, &mut self.rows, pid, mapping);
            }
            if is_behind {
                self.early.unheld += 1;
                self.doubt(pid, None);
            }
        }
    }

    /// Loads of libraries whose threads did not stand still until their probes were in place.
    pub(super) fn early_loads(&self, waits_expired: u64) -> u64 {
        waits_expired + self.gate.overdue() + self.early.unheld
    }
}
