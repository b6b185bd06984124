//! Has calls that do not return told of while they hang, and at the end.
//!
//! Owns when threads are looked at. Which calls are long is [`crate::model::open`]'s business.

use super::Tracer;
use super::lines::layer_of;
use crate::catalog::Row;
use crate::clock::monotonic_ns;
use crate::decode::Call;
use crate::discover;
use crate::engine::Arrival;
use crate::model::open::OpenCall;
use crate::model::order::Numbered;
use crate::model::totals::Switches;
use crate::probe::open_calls::{self, NotSeen};
use crate::record::{Facts, Taker, Traced};
use std::collections::BTreeSet;

/// Threads that are looked at each second.
const MOST_THREADS: usize = 4096;
/// Calls under way that are told of at one moment.
const MOST_UNDER_WAY: usize = 4096;

impl Tracer {
    /// Looks which calls have been open for long. To be called each second.
    pub(super) fn look_for_hanging(&mut self, now: u64) {
        let threads = self.open.threads();
        if self.fleet.is_some() {
            // who wants to know looks itself: here only those are forgotten whose end nobody has told
            if threads.len() > MOST_THREADS {
                let gone = threads.iter().filter(|(tid, _)| discover::is_gone(*tid));
                gone.for_each(|(tid, _)| self.open.gone(*tid, None));
            }
            return;
        }
        if threads.len() > MOST_THREADS {
            let words =
                format!("calls that do not return, in threads beyond {MOST_THREADS}, are told of only if they do");
            self.attacher.gap(words);
        }
        for (tid, pid) in threads.into_iter().take(MOST_THREADS) {
            match self.engine.open_calls(pid, tid) {
                Ok(calls) => self.note_open((tid, pid), &calls, now),
                Err(NotSeen::Gone) => self.open.gone(tid, None),
                Err(NotSeen::OldKernel) => {
                    let words = "calls that do not return, in other threads than the first: that needs Linux 6.9";
                    self.attacher.gap(words.to_owned());
                }
            }
        }
    }

    /// A process has ended: which calls its threads were in by then. To be called before they count as gone.
    pub(super) fn look_at_last_calls(&mut self, arrival: &Arrival) {
        if self.fleet.is_some() {
            return;
        }
        let (pid, at) = (arrival.notice.tgid, arrival.notice.at);
        for tid in self.open.threads_of(pid) {
            let told = arrival.within.as_ref().map(|within| {
                let own = within.iter().find(|(thread, _)| *thread == tid);
                own.map_or_else(Vec::new, |(_, told)| open_calls::last_calls(told, pid, tid))
            });
            if let Some(calls) = told.or_else(|| self.engine.ended_in(pid, tid)) {
                self.note_open((tid, pid), &calls, at);
            }
        }
    }

    /// Context switches of all threads that have called.
    pub(super) fn switches(&self) -> Switches {
        let counters = self.engine.counters();
        let mut sum = Switches {
            threads: counters.threads_ended,
            voluntary: counters.voluntary,
            involuntary: counters.involuntary,
            unknown_threads: counters.threads_unsure,
        };
        for (tid, pid) in self.open.threads() {
            match self.engine.switches(pid, tid) {
                Ok((voluntary, involuntary)) => {
                    sum.threads += 1;
                    sum.voluntary += voluntary;
                    sum.involuntary += involuntary;
                }
                // counted at its end
                Err(NotSeen::Gone) => {}
                Err(NotSeen::OldKernel) => sum.unknown_threads += 1,
            }
        }
        sum
    }

    fn note_open(&mut self, thread: (u32, u32), calls: &[open_calls::OpenCall], now: u64) {
        let known: Vec<(u32, u64)> = calls.iter().map(|call| (call.row, call.entered)).collect();
        let fresh = self.open.look(thread, &known, now);
        self.note_place(thread.0);
        let told = calls.iter().filter(|call| call.streamed);
        for call in told.filter(|call| fresh.contains(&(thread.0, call.entered))) {
            self.open.describe((thread.0, call.entered), &call.event);
            self.tell(&call.event, now, false);
        }
    }

    /// Tells of the calls that are known to have been open for long, and have not returned.
    pub(super) fn tell_unreturned(&mut self) {
        let open = self.open.open().into_iter();
        let open: Vec<(Vec<u8>, u64)> = open
            .filter_map(|call| Some((call.event.clone()?, call.until)))
            .collect();
        for (event, until) in open {
            self.tell(&event, until, true);
        }
    }

    /// Tells of all calls that threads of these processes are in now, however short.
    pub(crate) fn tell_under_way(&mut self, pids: &BTreeSet<u32>) {
        let now = monotonic_ns();
        let threads = self.open.threads().into_iter();
        let meant = threads.filter(|(_, pid)| pids.contains(pid));
        let mut told = 0;
        for (tid, pid) in meant.collect::<Vec<_>>() {
            let calls = self.engine.open_calls(pid, tid).unwrap_or_default();
            let seen = |call: &&open_calls::OpenCall| call.streamed && !self.may_have_returned_unseen(call);
            let calls: Vec<&open_calls::OpenCall> = calls.iter().filter(seen).collect();
            told += calls.len();
            if told > MOST_UNDER_WAY {
                let words = format!("calls under way beyond {MOST_UNDER_WAY} have no row in what is kept (--keep)");
                return self.attacher.gap(words);
            }
            for call in calls {
                self.tell(&call.event, now, true);
            }
        }
    }

    /// Whether calls of its kind were left unseen at a time since it was entered: its return may be among those.
    fn may_have_returned_unseen(&self, call: &open_calls::OpenCall) -> bool {
        let row = self.rows.catalog.rows.get(call.row as usize);
        let traffic = row.and_then(Row::traffic);
        traffic.is_some_and(|traffic| self.was_unseen_since(traffic, call.entered))
    }

    /// Processes of which a thread has called and not ended.
    pub(crate) fn calling(&self) -> BTreeSet<u32> {
        self.open.threads().into_iter().map(|(_, pid)| pid).collect()
    }

    /// Where a thread is that hangs.
    fn note_place(&mut self, tid: u32) {
        if self.samples.is_none() || !self.open.hangs(tid) {
            return;
        }
        if let Some(seen) = self.engine.last_stack(tid) {
            let site = self.memory.sites.keep_sampled(&seen.stack);
            // nothing is seen of a thread that is ending, which was somewhere before
            if self.memory.sites.says_where(site) {
                self.open.seen_at(tid, seen.at, site);
            }
        }
    }

    /// Tells of a call that had not returned by `now`. `at_end`: and will not be seen to.
    fn tell(&mut self, event: &[u8], now: u64, at_end: bool) {
        let Some(encoder) = self.encoder.as_mut() else { return };
        let Some(call) = Call::decode(event, &self.rows.catalog, &self.rows.plans) else {
            return;
        };
        let header = &call.header;
        let number = Numbered {
            id: self.numbers.announce(header.tid, header.depth, header.entered),
            caller: self.numbers.caller_of(header.tid, header.depth, header.caller),
        };
        let comm = self
            .comms
            .entry(header.tid)
            .or_insert_with(|| discover::comm(header.tgid, header.tid).unwrap_or_else(|| "?".to_owned()));
        let site = self.open.site_of((header.tid, header.entered));
        let stack = site.and_then(|site| self.memory.sites.frames(site));
        let traced = Traced {
            call: &call,
            number,
            comm,
            layer: layer_of(&self.rows.catalog, &call),
            kernel: None,
            asked: None,
            stack: stack.as_deref(),
            facts: Facts::default(),
        };
        let open = self.maker.open(&traced, now.saturating_sub(header.entered));
        if !at_end {
            return encoder.take(&open, &mut self.buffer);
        }
        if let Ok(diagnostics) = &mut self.findings {
            Taker::take(diagnostics.as_mut(), &open);
        }
        encoder.take_unreturned(&open, &mut self.buffer);
    }

    /// Calls that have not returned up to now.
    pub(super) fn open_calls(&mut self) -> Vec<OpenCall> {
        let catalog = &self.rows.catalog;
        let sites = &mut self.memory.sites;
        let calls = self.open.open().into_iter();
        let calls = calls.filter_map(|open| {
            let row = catalog.rows.get(open.row as usize)?;
            Some(OpenCall {
                layer: catalog.library_with(row.library)?.name.clone(),
                function: row.symbol.clone(),
                pid: open.pid,
                tid: open.tid,
                comm: discover::comm(open.pid, open.tid)
                    .or_else(|| self.comms.get(&open.tid).cloned())
                    .unwrap_or_default(),
                ns: open.until.saturating_sub(open.entered),
                ended: open.ended,
                stack: open.site.and_then(|site| Some(sites.frames(site)?.frames.clone())),
            })
        });
        calls.collect()
    }
}
