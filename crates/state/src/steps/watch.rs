//! One sequence of work, and which of its calls cuts it into steps.

use super::anchor::{Anchor, Evidence};
use super::candidate::{Candidate, Label, Pauses};
use super::period::{self, EXPLAINED_PERCENT, LEAST, Period};
use super::work::{Role, Sequence, Work};
use crate::findings::interner::{Id, Interner};
use crate::findings::table::{Bounded, is_percent};

/// Different calls of a sequence that are followed.
const CANDIDATES: usize = 2048;
/// Why nobody has steps of whom no launch has come.
pub(super) const NO_LAUNCH: &str = "no launch was seen";
/// Part of all launches that steps have at least, in which work is the same: less is some of what a program does.
const OF_ALL_PERCENT: u64 = 5;
/// As many steps have to be there where their number of launches varies.
const LEAST_VARYING: u64 = 16;
/// The standard deviation of the launches in a step, as a part of their mean.
const VARIATION: f64 = 0.5;
/// Launches of a step whose number varies.
const LEAST_LAUNCHES: u64 = 4;

/// One sequence of work.
#[derive(Debug)]
pub(super) struct Watch {
    sequence: Sequence,
    candidates: Bounded<Candidate>,
    /// Of the launch before.
    before: Id,
    /// When all work so far had been given.
    until: Option<i64>,
    /// The wait that what comes next is behind.
    waited: Option<u64>,
    pauses: Pauses,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            sequence: Sequence::default(),
            candidates: Bounded::new(CANDIDATES),
            before: 0,
            until: None,
            waited: None,
            pauses: Pauses::default(),
        }
    }
}

impl Watch {
    pub(super) fn launches(&self) -> u64 {
        self.sequence.now.launches
    }

    /// The next piece.
    pub(super) fn take(&mut self, work: &Work) {
        let pause_ns = self.pause(work);
        for (key, after) in self.sequence.keys(work).into_iter().zip([0, self.before]) {
            let Some(candidate) = key.and_then(|key| self.candidates.entry(key)) else {
                continue;
            };
            candidate.label = Label {
                role: work.role,
                name: work.name,
                after,
            };
            candidate.occurs(&self.sequence.now);
            if work.role != Role::Wait {
                candidate.pauses.push(pause_ns);
            }
        }
        if work.role == Role::Launch {
            self.before = work.name;
        }
        self.sequence.take(work);
    }

    /// How long nothing was called before `work`; that is also what a wait before it is told by.
    fn pause(&mut self, work: &Work) -> u64 {
        let until = self.until.unwrap_or(work.at);
        self.until = Some(until.max(work.end));
        let pause_ns = u64::try_from(work.at.saturating_sub(until)).unwrap_or(0);
        let waited = self.waited.take().and_then(|key| self.candidates.get_mut(key));
        if let Some(wait) = waited {
            wait.pauses.push(pause_ns);
        }
        self.waited = Some(work.symbol).filter(|_| work.role == Role::Wait);
        self.pauses.push(pause_ns);
        pause_ns
    }

    /// What comes once in each step; `Err`: why there is nothing.
    pub(super) fn anchor(&self, interner: &Interner) -> Result<Anchor, String> {
        let best = self.regular().or_else(|| self.varying());
        let Some((key, candidate, evidence)) = best else {
            return Err(self.why_not());
        };
        Ok(Anchor::of_call(key, &candidate.label, evidence, interner))
    }

    /// What cuts the sequence best, at its most natural border.
    fn regular(&self) -> Option<(u64, &Candidate, Evidence)> {
        let all = self.candidates.iter();
        let regular: Vec<Period<'_>> = all
            .filter_map(|(key, candidate)| Period::of(key, candidate))
            .filter(|period| self.is_of_weight(period))
            .collect();
        let period = period::choose(&regular, &self.pauses)?;
        let evidence = Evidence {
            sketch: Some(period.alike.sketch),
            launches: period.alike.mean_launches(),
            explained: period.alike.covered().min(self.launches()),
            of: self.launches(),
        };
        Some((period.key, period.candidate, evidence))
    }

    fn is_of_weight(&self, period: &Period<'_>) -> bool {
        is_percent(period.alike.covered(), self.launches(), OF_ALL_PERCENT)
    }

    /// What a program that waits or copies once a step does so at, where steps are of different length.
    fn varying(&self) -> Option<(u64, &Candidate, Evidence)> {
        let all = self.candidates.iter();
        let regular =
            all.filter(|(_, one)| is_varying(one) && is_percent(one.launches, self.launches(), EXPLAINED_PERCENT));
        let (key, candidate) = regular.min_by(|(key, one), (other_key, other)| {
            one.variation().total_cmp(&other.variation()).then(key.cmp(other_key))
        })?;
        let evidence = Evidence {
            sketch: None,
            launches: candidate.launches / candidate.count.max(1),
            explained: candidate.launches,
            of: self.launches(),
        };
        Some((key, candidate, evidence))
    }

    fn why_not(&self) -> String {
        let launches = self.launches();
        let kinds = self.candidates.iter().filter(|(_, one)| is_launch(one)).count();
        if launches == 0 {
            return NO_LAUNCH.to_owned();
        }
        let rare = self.candidates.iter().all(|(_, one)| one.count < LEAST);
        let comes_back = |(key, one): (u64, &Candidate)| Period::of(key, one).is_some();
        match (rare, kinds) {
            _ if self.candidates.iter().any(comes_back) => {
                format!(
                    "what comes back with about the same work between is less than {OF_ALL_PERCENT} % of all launches"
                )
            }
            (true, _) => format!("nothing was done more than {LEAST} times"),
            (_, 1) => {
                "one kernel was launched over and over, and nothing comes between at regular intervals".to_owned()
            }
            _ => "nothing comes back with about the same work between".to_owned(),
        }
    }
}

fn is_launch(candidate: &Candidate) -> bool {
    candidate.label.role == Role::Launch && candidate.label.after == 0
}

fn is_varying(candidate: &Candidate) -> bool {
    let can_be = matches!(candidate.label.role, Role::Wait | Role::Move);
    let many = candidate.count >= LEAST_VARYING && candidate.launches / candidate.count >= LEAST_LAUNCHES;
    can_be && many && candidate.variation() <= VARIATION
}
