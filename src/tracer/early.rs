//! Processes that ran code of a library before it was probed: what they called meanwhile is not known.
//!
//! Owns what is said of them. Whether a thread stood still until its probes were in place is told by
//! [`crate::engine::Arrivals`].

use super::Tracer;
use crate::clock::monotonic_ns;
use crate::discover;
use crate::probe::attach::{News, Waiter};
use crate::wire::{self, Notice};
use std::io::ErrorKind;
use std::time::Duration;

/// Processes that are named.
const MOST: usize = 100;

/// Processes that ran code of a library before it was probed.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// Loads of libraries that did not wait at all.
    unheld: u64,
    /// Processes that did not wait and were gone when they were looked at.
    pub(super) unread: u64,
    named: usize,
    /// Processes beyond those that are named.
    pub(super) unnamed: u64,
    unsure: Vec<Unsure>,
}

/// A process of which no linker may have told what it loads.
#[derive(Debug)]
struct Unsure {
    pid: u32,
    comm: String,
    /// Since when it ran, CLOCK_MONOTONIC ns.
    since: u64,
    why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Its own linker was hooked while that may have been at work already.
    HookedLate,
    /// It had ended before it was looked at, or may end before its linker tells.
    Gone,
}

/// Processes that are looked at again.
const MOST_UNSURE: usize = 256;

impl Early {
    /// What the linker of the process of `notice` loads may not be told of.
    pub(super) fn look_again(&mut self, notice: &Notice) {
        self.be_unsure(notice, Why::HookedLate);
    }

    /// It may end without passing its linker's hook.
    pub(super) fn await_linker(&mut self, notice: &Notice) {
        self.be_unsure(notice, Why::Gone);
    }

    /// A linker tells of the process of `notice`: who is gone has nothing else to tell.
    pub(super) fn heard_of(&mut self, notice: &Notice) {
        self.unsure
            .retain(|unsure| unsure.pid != notice.tgid || unsure.why != Why::Gone);
    }

    fn be_unsure(&mut self, notice: &Notice, why: Why) {
        // of a process that has become another program since, that is told
        self.unsure.retain(|unsure| unsure.pid != notice.tgid);
        if self.unsure.len() == MOST_UNSURE {
            self.unnamed += 1;
            return;
        }
        self.unsure.push(Unsure {
            pid: notice.tgid,
            comm: wire::text_of(&notice.comm),
            since: notice.at,
            why,
        });
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
        self.doubt(notice.tgid, notice.at, &wire::text_of(&notice.comm));
    }

    /// A file could not be probed until now, and a process has run with it.
    pub(super) fn judge_waiter(&mut self, waiter: &Waiter) {
        self.early.unheld += 1;
        let comm = discover::comm(waiter.pid, waiter.pid).unwrap_or_default();
        self.doubt(waiter.pid, waiter.since, &comm);
    }

    /// Process `pid` has run since then, CLOCK_MONOTONIC ns, with what was not probed.
    fn doubt(&mut self, pid: u32, since: u64, comm: &str) {
        self.memory.doubt(pid);
        self.work.doubt(pid);
        let ran = Duration::from_nanos(monotonic_ns().saturating_sub(since));
        self.name(format!(
            "{comm} {pid} ran for {:.1} ms before its libraries were probed: its first calls may be missing",
            ran.as_secs_f64() * 1e3
        ));
    }

    /// A daemon counts them: their number has no bound.
    fn name(&mut self, words: String) {
        if self.fleet.is_some() {
            return;
        }
        if self.early.named == MOST {
            self.early.unnamed += 1;
            return;
        }
        self.early.named += 1;
        self.attacher.gap(words);
    }

    /// Whether it misses nothing that its beginning is acted on late: an agent asks for all that it has loaded.
    pub(super) fn waits_itself(&self, notice: &Notice) -> bool {
        notice.kind != wire::NOTICE_LIBRARY && self.engine.is_inside().is_some()
    }

    /// What a process had mapped when `notice` was sent cannot be told any more.
    pub(super) fn note_gone(&mut self, notice: &Notice) {
        let ran_on = notice.kind == wire::NOTICE_LIBRARY && notice.waits == 0;
        self.early.unread += u64::from(ran_on);
        if notice.kind == wire::NOTICE_EXEC && self.fleet.is_none() && !self.waits_itself(notice) {
            self.early.be_unsure(notice, Why::Gone);
        }
    }

    /// Attaches to what processes have loaded without a linker that told of it, and names them. To be called once a second,
    /// and at the end.
    pub(super) fn look_at_unsure(&mut self) {
        for unsure in std::mem::take(&mut self.early.unsure) {
            let news = self.attacher.news(&self.rows.catalog, unsure.pid, u64::MAX, &[]);
            match news.and_then(News::of_living) {
                Ok(news) if unsure.why == Why::HookedLate => self.attach_late(&unsure, &news),
                Err(error) if error.kind() != ErrorKind::PermissionDenied => self.name(format!(
                    "{} {} ended before it was known what it had loaded: its calls may be missing",
                    unsure.comm, unsure.pid
                )),
                // another one of that number, or one that may not be looked at
                _ => {}
            }
        }
    }

    fn attach_late(&mut self, unsure: &Unsure, news: &News) {
        let mut is_behind = false;
        for mapping in &news.mappings {
            is_behind |= self
                .attacher
                .consider(self.engine.as_ref(), &mut self.rows, unsure.pid, mapping);
        }
        if is_behind {
            self.early.unheld += 1;
            self.doubt(unsure.pid, unsure.since, &unsure.comm);
        }
    }

    /// Loads of libraries whose threads did not stand still until their probes were in place.
    pub(super) fn early_loads(&self, waits_expired: u64) -> u64 {
        waits_expired + self.arrivals.overdue() + self.early.unheld
    }
}
