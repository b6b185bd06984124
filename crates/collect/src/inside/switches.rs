//! Context switches of threads that have called and have ended: nobody tells us when a thread ends, so they are looked at from
//! time to time.
//!
//! Owns what was seen last of each thread. Those that run are asked about themselves when somebody wants to know.

use crate::engine::Counters;
use std::collections::BTreeMap;

/// Those in which a thread waited, and others.
pub(super) type Counts = (u64, u64);

/// Context switches of threads that have called and have ended.
#[derive(Debug, Default)]
pub(super) struct Switches {
    running: BTreeMap<u32, Thread>,
    ended: Ended,
}

#[derive(Debug)]
struct Thread {
    tgid: u32,
    /// At its first call.
    before: Counts,
    last: Counts,
}

#[derive(Debug, Default)]
struct Ended {
    threads: u64,
    counts: Counts,
    /// Threads whose last look was before their end.
    unsure: u64,
}

impl Switches {
    /// A thread has called for the first time.
    pub(super) fn meet(&mut self, tgid: u32, tid: u32, before: Counts) {
        // the number may have been another's, of whose end we have not heard
        self.gone(tid, None);
        let last = before;
        self.running.insert(tid, Thread { tgid, before, last });
    }

    /// Process and thread of all that run.
    pub(super) fn running(&self) -> Vec<(u32, u32)> {
        self.running.iter().map(|(tid, thread)| (thread.tgid, *tid)).collect()
    }

    /// What was seen of a thread; `None`: it is no more.
    pub(super) fn look(&mut self, tid: u32, seen: Option<Counts>) {
        match (self.running.get_mut(&tid), seen) {
            (Some(thread), Some(counts)) => thread.last = counts,
            _ => self.gone(tid, None),
        }
    }

    /// The program of a process is over.
    pub(super) fn end(&mut self, tgid: u32) {
        let of_process = self.running.iter().filter(|(_, thread)| thread.tgid == tgid);
        let ended: Vec<u32> = of_process.map(|(tid, _)| *tid).collect();
        for tid in ended {
            // the first thread can be asked until somebody has asked for its status
            self.gone(tid, counts(tgid, tid));
        }
    }

    fn gone(&mut self, tid: u32, at_end: Option<Counts>) {
        let Some(thread) = self.running.remove(&tid) else {
            return;
        };
        let last = at_end.unwrap_or(thread.last);
        self.ended.threads += 1;
        self.ended.counts.0 += last.0.saturating_sub(thread.before.0);
        self.ended.counts.1 += last.1.saturating_sub(thread.before.1);
        self.ended.unsure += u64::from(at_end.is_none());
    }

    /// What is known of those that have ended.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            threads_ended: self.ended.threads,
            voluntary: self.ended.counts.0,
            involuntary: self.ended.counts.1,
            threads_unsure: self.ended.unsure,
            ..Counters::default()
        }
    }
}

/// Those of a thread since it began; `None`: it is no more.
pub(super) fn counts(tgid: u32, tid: u32) -> Option<Counts> {
    let status = std::fs::read_to_string(format!("/proc/{tgid}/task/{tid}/status")).ok()?;
    let number = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    number("voluntary_ctxt_switches:").zip(number("nonvoluntary_ctxt_switches:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(switches: &Switches) -> (u64, u64, u64, u64) {
        let all = switches.counters();
        (all.threads_ended, all.voluntary, all.involuntary, all.threads_unsure)
    }

    #[test]
    fn switches_before_the_first_call_do_not_count() {
        let mut switches = Switches::default();
        switches.meet(1, 7, (100, 10));
        switches.look(7, Some((130, 12)));
        assert_eq!(counted(&switches), (0, 0, 0, 0));
        switches.look(7, None);
        assert_eq!(
            counted(&switches),
            (1, 30, 2, 1),
            "what came after the last look is missing"
        );
        assert!(switches.running().is_empty());
    }

    #[test]
    fn a_thread_that_takes_the_number_of_another_is_another() {
        let mut switches = Switches::default();
        switches.meet(1, 7, (0, 0));
        switches.look(7, Some((5, 0)));
        switches.meet(2, 7, (1, 1));
        assert_eq!(counted(&switches), (1, 5, 0, 1));
        assert_eq!(switches.running(), [(2, 7)]);
    }

    #[test]
    fn a_process_that_can_be_asked_at_its_end_has_exact_numbers() {
        let own = std::process::id();
        let mut switches = Switches::default();
        let before = counts(own, own).expect("own numbers");
        switches.meet(own, own, before);
        switches.end(own);
        let (threads, .., unsure) = counted(&switches);
        assert_eq!((threads, unsure), (1, 0));
    }
}
