//! Whom of a family we know, and what we have to do with each.
//!
//! Owns who has ended since, by the time at which processes began, and why some cannot be traced. Who is attached to, [`super`] decides.

use crate::device::Looking;
use crate::discover;
use crate::owner::{Stat, began};
use crate::text::quantity::plural;
use crate::tracer::targets::hidden_words;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Of those that cannot be traced, with the reason; and of whom it is remembered.
const MOST_NAMED: usize = 3;
const MOST_REFUSED: usize = 1024;

/// Why a process cannot be traced.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It may not be looked at; its number and name.
    Hidden(String),
    Words(String),
}

/// What we have to do with a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was asked for, and carries no agent yet.
    Awaited,
    /// We attached to it.
    Member,
    /// It was born of a member, or is left to others: nothing is to be done about it.
    Settled,
}

/// A process of the family.
#[derive(Debug)]
pub(super) struct Relative {
    /// When it began: another one may have its number later.
    pub(super) began: Option<u64>,
    pub(super) is: Standing,
    /// When we attached to it.
    pub(super) uses_cuda: bool,
    pub(super) asking: Asking,
}

/// How far it is with asking a process what devices execute for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    Due {
        /// In vain so far.
        visits: u32,
        /// When its devices were found to come to rest.
        at_rest: Option<Instant>,
    },
    /// It has answered, will not, or is left alone.
    Settled,
}

impl Asking {
    const AFRESH: Asking = Asking::Due {
        visits: 0,
        at_rest: None,
    };

    pub(super) fn visits(self) -> u32 {
        match self {
            Asking::Due { visits, .. } => visits,
            Asking::Settled => 0,
        }
    }

    pub(super) fn note_rest(&mut self) {
        if let Asking::Due { at_rest, .. } = self {
            *at_rest = Some(Instant::now());
        }
    }

    /// Whether that was found `lately`.
    pub(super) fn comes_to_rest(self, lately: Duration) -> bool {
        matches!(self, Asking::Due { at_rest: Some(at), .. } if at.elapsed() < lately)
    }
}

impl Relative {
    pub(super) fn of(pid: u32, is: Standing, uses_cuda: bool) -> Relative {
        Relative {
            began: began(pid),
            is,
            uses_cuda,
            asking: Asking::AFRESH,
        }
    }

    /// What cannot be read now is no end.
    pub(super) fn lives(&self, pid: u32) -> bool {
        match Stat::read(&Path::new("/proc").join(pid.to_string())) {
            Some(stat) => stat.runs(pid) && self.began.is_none_or(|ticks| ticks == stat.start_ticks),
            None => !discover::is_gone(pid),
        }
    }
}

/// The processes that were asked for, and who descends from them.
#[derive(Debug, Default)]
pub(in crate::tracer) struct Family {
    /// Without those that have ended.
    pub(super) roots: Vec<u32>,
    pub(super) known: BTreeMap<u32, Relative>,
    pub(super) refused: BTreeMap<u32, Refusal>,
    /// When it is to be looked again.
    pub(super) again: Option<Instant>,
    /// Whether devices of these are ever idle is looked at.
    pub(super) looking: Option<(Vec<u32>, Looking)>,
}

impl Family {
    /// Whom we attached to.
    pub(in crate::tracer) fn members(&self) -> impl Iterator<Item = u32> {
        let members = self.known.iter().filter(|(_, one)| one.is == Standing::Member);
        members.map(|(pid, _)| *pid)
    }

    pub(super) fn join(&mut self, pid: u32, uses_cuda: bool) {
        self.refused.remove(&pid);
        self.known.insert(pid, Relative::of(pid, Standing::Member, uses_cuda));
    }

    /// Nothing is to be done about it, as long as it lives.
    pub(in crate::tracer) fn settle(&mut self, pid: u32) {
        self.known.insert(pid, Relative::of(pid, Standing::Settled, false));
    }

    /// Another program: it is to be asked anew what devices execute for it.
    pub(in crate::tracer) fn executes(&mut self, pid: u32) {
        if let Some(one) = self.known.get_mut(&pid) {
            one.asking = Asking::AFRESH;
        }
    }

    pub(super) fn refuse(&mut self, pid: u32, why: Refusal) {
        if self.refused.len() < MOST_REFUSED || self.refused.contains_key(&pid) {
            self.refused.insert(pid, why);
        }
    }

    /// Those whom we have not attached to, but for us and ours.
    pub(super) fn strange(&self) -> Vec<u32> {
        let all = discover::descendants(self.roots.iter().chain(self.known.keys()).copied());
        // later: none of ours was born in between
        let ours = discover::descendants([std::process::id()]);
        let is_done = |pid: &u32| self.known.get(pid).is_some_and(|one| one.is != Standing::Awaited);
        let is_new = |pid: &u32| !is_done(pid) && !ours.contains(pid) && began(*pid).is_some();
        all.into_iter().filter(is_new).collect()
    }

    /// Takes out those that have ended.
    pub(super) fn take_ended(&mut self) -> Vec<u32> {
        let ended = self.known.extract_if(.., |pid, one| !one.lives(*pid));
        let ended: Vec<u32> = ended.map(|(pid, _)| pid).collect();
        self.roots.retain(|pid| !ended.contains(pid));
        ended
    }

    /// What to say of those that cannot be traced, or could not.
    pub(in crate::tracer) fn gaps(&self) -> Vec<String> {
        let (mut hidden, mut words) = (Vec::new(), Vec::new());
        for why in self.refused.values() {
            match why {
                Refusal::Hidden(name) => hidden.push(name.clone()),
                Refusal::Words(said) => words.push(said.clone()),
            }
        }
        let more = words.len().saturating_sub(MOST_NAMED) as u64;
        let more = (more > 0).then(|| format!("{} more, for such reasons", plural(more, "process")));
        let hidden = (!hidden.is_empty()).then(|| hidden_words(&hidden));
        words.into_iter().take(MOST_NAMED).chain(more).chain(hidden).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn who_has_ended_is_forgotten_and_what_was_said_of_it_is_not() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id();
        let mut family = Family {
            roots: vec![pid],
            ..Family::default()
        };
        family.join(pid, true);
        for number in 1..=5 {
            family.refuse(number, Refusal::Words(format!("process {number} has a shadow stack")));
        }
        family.refuse(6, Refusal::Hidden("6 sshd".to_owned()));
        assert!(family.take_ended().is_empty());
        assert_eq!(family.members().collect::<Vec<_>>(), [pid]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((family.take_ended(), family.roots.len()), (vec![pid], 0));
        let said = family.gaps();
        assert_eq!(said.len(), 5, "{said:?}");
        assert_eq!(said[3], "2 processes more, for such reasons");
        assert!(said[4].contains("(6 sshd)"), "{said:?}");
    }

    #[test]
    fn a_number_that_is_anothers_by_now_is_none_of_the_family() {
        let own = std::process::id();
        let known = Relative::of(own, Standing::Member, true);
        assert!(known.lives(own));
        let before = Relative {
            began: known.began.map(|ticks| ticks - 1),
            ..known
        };
        assert!(!before.lives(own));
    }
}
