//! Ends of processes, and of the programs that they ran, on their way to the ledgers of memory.
//!
//! Owns their order beside calls. Notices and calls come in two streams, of which notices are taken first: a process may
//! have become another program in between, and its first calls are not to be taken for those of the program before it.

use crate::engine::{Arrivals, RecordInbox};
use crate::wire::{self, MemoryCall, Notice};
use std::collections::{HashMap, HashSet};
use std::iter::Peekable;

/// The end of a process, or of the program that it ran.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    pub pid: u32,
    /// Empty: the process goes on as another program.
    pub comm: String,
    pub is_exit: bool,
}

/// Those that are to be applied.
#[derive(Default)]
pub(super) struct Ends {
    pending: Vec<End>,
    /// Process and time of those that were added, although their notice is still to be acted on.
    foreseen: HashSet<(u32, u64)>,
}

impl End {
    fn of(notice: &Notice) -> End {
        let is_exit = notice.kind == wire::NOTICE_EXIT;
        let comm = match is_exit {
            true => wire::text_of(&notice.comm),
            false => String::new(),
        };
        End {
            at: notice.at,
            pid: notice.tgid,
            comm,
            is_exit,
        }
    }
}

impl Ends {
    /// False: it was foreseen.
    pub(super) fn add(&mut self, notice: &Notice) -> bool {
        let is_new = !self.foreseen.remove(&(notice.tgid, notice.at));
        if is_new {
            self.pending.push(End::of(notice));
        }
        is_new
    }

    /// What was added will be added once more, when its notice is acted on.
    pub(super) fn foresee(&mut self, notice: &Notice) {
        self.foreseen.insert((notice.tgid, notice.at));
    }

    /// Whether one of this process is still to be applied.
    pub(super) fn concern(&self, pid: u32) -> bool {
        self.pending.iter().any(|end| end.pid == pid)
    }

    /// All, by time.
    pub(super) fn take(&mut self) -> Peekable<impl Iterator<Item = End> + use<>> {
        let mut ends = std::mem::take(&mut self.pending);
        ends.sort_unstable();
        ends.into_iter().peekable()
    }
}

/// Ends that are still to be acted on, and after which their process, or another of its number, has called.
pub(super) fn outlived(arrivals: &dyn Arrivals, inbox: &RecordInbox) -> Vec<Notice> {
    let mut ends = Vec::new();
    arrivals.foresee(&mut |notice| {
        if matches!(notice.kind, wire::NOTICE_EXEC | wire::NOTICE_EXIT) {
            ends.push(*notice);
        }
    });
    if !ends.is_empty() {
        let calls = inbox.records().filter_map(MemoryCall::parse);
        keep_outlived(&mut ends, calls.map(|call| (call.tgid, call.entered)));
    }
    ends
}

/// `calls`: process, and when it entered. Of an end that nothing comes after, something may still come from before.
fn keep_outlived(ends: &mut Vec<Notice>, calls: impl Iterator<Item = (u32, u64)>) {
    let mut last: HashMap<u32, u64> = HashMap::new();
    for (tgid, at) in calls {
        let entered = last.entry(tgid).or_default();
        *entered = at.max(*entered);
    }
    ends.retain(|end| last.get(&end.tgid).is_some_and(|entered| *entered > end.at));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(tgid: u32, at: u64) -> Notice {
        Notice {
            kind: wire::NOTICE_EXEC,
            tgid,
            at,
            ..Notice::default()
        }
    }

    #[test]
    fn an_end_that_was_foreseen_is_added_once() {
        let mut ends = Ends::default();
        assert!(ends.add(&executed(7, 100)));
        ends.foresee(&executed(7, 100));
        assert!(!ends.add(&executed(7, 100)), "when its notice is acted on");
        assert!(ends.add(&executed(7, 200)), "another one");
        assert_eq!(ends.take().map(|end| end.at).collect::<Vec<_>>(), [100, 200]);
        assert!(!ends.concern(7));
    }

    #[test]
    fn an_end_is_foreseen_when_its_process_has_called_after_it() {
        let mut ends = vec![executed(7, 100), executed(8, 100), executed(9, 100)];
        keep_outlived(&mut ends, [(7, 90), (7, 110), (8, 90)].into_iter());
        assert_eq!(ends, [executed(7, 100)]);
    }
}
