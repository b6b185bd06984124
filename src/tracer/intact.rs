//! Looks now and then whether the processes that are traced still have their probes.
//!
//! Owns when a process is looked at: soon after it has mapped a library, in turn while it makes calls, and at the end. What
//! is compared is [`crate::probe::attach`]'s business.

use super::Tracer;
use crate::discover;
use crate::probe::attach::Unprobed;
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

/// Newcomers that wait to be looked at, and how many are each second.
const MOST_WAITING: usize = 256;
const EACH_SECOND: usize = 8;
/// Processes that are looked at once more at the end, and how long at most: nobody waits for who does not answer.
const MOST_AT_END: usize = 64;
const FOR_AT_END: Duration = Duration::from_millis(300);

/// Who is looked at next.
#[derive(Debug, Default)]
pub(super) struct Watch {
    new: VecDeque<u32>,
    /// Of those that make calls.
    last: u32,
    /// Those of which it was said that a debugger follows them.
    followed: HashSet<u32>,
}

impl Watch {
    /// A process has mapped a library.
    pub(super) fn meet(&mut self, pid: u32) {
        if self.new.len() < MOST_WAITING && !self.new.contains(&pid) {
            self.new.push_back(pid);
        }
    }

    /// Those whose turn it is.
    fn due(&mut self, callers: &HashSet<u32>) -> Vec<u32> {
        let count = self.new.len().min(EACH_SECOND);
        let mut due: Vec<u32> = self.new.drain(..count).collect();
        let behind = callers.iter().copied().filter(|pid| *pid > self.last).min();
        let next = behind.or_else(|| callers.iter().copied().min());
        self.last = next.unwrap_or(0);
        due.extend(next);
        due
    }
}

impl Tracer {
    /// To be called once a second.
    pub(super) fn look_at_code(&mut self) {
        if self.engine.is_inside().is_some() {
            return; // what lies in the code is an agent's, who says what it could not patch
        }
        for pid in self.watch.due(&self.callers) {
            self.look_at_code_of(pid);
        }
    }

    /// Those that are still there at the end.
    pub(super) fn look_at_all_code(&mut self) {
        if self.engine.is_inside().is_some() {
            return;
        }
        let all: HashSet<u32> = self.callers.iter().copied().chain(self.family.members()).collect();
        let begun = Instant::now();
        for pid in all.into_iter().take(MOST_AT_END) {
            if begun.elapsed() < FOR_AT_END {
                self.look_at_code_of(pid);
            }
        }
    }

    fn look_at_code_of(&mut self, pid: u32) {
        self.warn_once_of_debugger(pid);
        // whoever is gone, or may not be looked at, is not missed here
        for file in self.attacher.unprobed_in(pid).unwrap_or_default() {
            let comm = discover::comm(pid, pid).unwrap_or_default();
            self.attacher.gap(words(&file, pid, &comm));
            self.attacher.be_blind();
        }
    }

    /// One that came later: it knows the probes' bytes as the program's, and may put one back when nobody handles it any more.
    pub(super) fn warn_once_of_debugger(&mut self, pid: u32) {
        let known = &self.watch.followed;
        if known.len() < MOST_WAITING && !known.contains(&pid) && self.warn_of_debugger(pid) {
            self.watch.followed.insert(pid);
        }
    }
}

fn words(file: &Unprobed, pid: u32, comm: &str) -> String {
    let Unprobed { path, missing, of } = file;
    let why = if missing == of {
        "it has mapped another file than its name leads to by now, as when an overlay copies one up, or its code was put \
         back; hint: start the program anew"
    } else {
        "a debugger that took a breakpoint away, or the program itself, has written there; hint: trace it anew"
    };
    format!(
        "{}: {missing} of {of} probes are not in the code of process {pid} ({comm}), whose calls there are missed: {why}",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_and_newcomers_come_first() {
        let (mut watch, callers) = (Watch::default(), HashSet::from([7, 30, 900]));
        watch.meet(30);
        watch.meet(30);
        let turns: Vec<Vec<u32>> = (0..4).map(|_| watch.due(&callers)).collect();
        assert_eq!(turns, [vec![30, 7], vec![30], vec![900], vec![7]]);
        assert_eq!(watch.due(&HashSet::new()), [0; 0]);
    }

    #[test]
    fn a_crowd_of_newcomers_takes_bounded_room() {
        let mut watch = Watch::default();
        (0..1000).for_each(|pid| watch.meet(pid));
        assert_eq!(
            (watch.new.len(), watch.due(&HashSet::new()).len()),
            (MOST_WAITING, EACH_SECOND)
        );
    }
}
