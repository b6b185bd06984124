//! Which calls are left unseen because probes take more of a program's time than they may, and when they are seen again.
//!
//! Owns the decision. What a program spent is measured by who asks, at regular intervals; a look is one of these.

use crate::catalog::Traffic;
use std::collections::{BTreeMap, BTreeSet};

/// So many looks in a row have to find a program beyond the budget: what begins makes many calls.
const IN_A_ROW: u32 = 2;
/// Looks until calls are seen again that were left unseen once; each time that this was too early, twice as many.
const PAUSE: u32 = 30;
const LONGEST_PAUSE: u32 = 360;
/// Calls that cost less than so much of the budget are not shed: without them a program would be beyond it as before.
const WORTH_IT: f64 = 4.0;

/// What a program spent in probes since the last look, as shares of the time that has passed: of all its threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    pub pid: u32,
    pub work: f64,
    pub queries: f64,
    /// On calls that are always seen.
    pub others: f64,
}

impl Spent {
    /// On calls of any kind.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.work + self.queries + self.others
    }

    /// So much more; `None`: on calls that are always seen.
    pub fn add(&mut self, traffic: Option<Traffic>, share: f64) {
        let of = match traffic {
            Some(Traffic::Work) => &mut self.work,
            Some(Traffic::Queries) => &mut self.queries,
            None => &mut self.others,
        };
        *of += share;
    }

    fn on(&self, traffic: Traffic) -> f64 {
        match traffic {
            Traffic::Work => self.work,
            Traffic::Queries => self.queries,
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// These calls are left unseen: the program spends that share of its time on probes, and so much of it on them.
    Shed { traffic: Traffic, by: Spent },
    /// They are seen again.
    TakeUp(Traffic),
    /// A program is beyond the budget, and there is nothing left to shed that would change it.
    Beyond(Spent),
}

/// Calls that are not seen.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shed {
    /// On whose account.
    pid: u32,
    /// For how many looks.
    pause: u32,
    /// Looks so far.
    looks: u32,
}

/// Decides at each look.
#[derive(Debug)]
pub struct Budget {
    share: f64,
    /// Programs beyond it, and how many looks in a row have found that.
    beyond: BTreeMap<u32, u32>,
    shed: BTreeMap<Traffic, Shed>,
    /// For how many looks calls were left unseen the last time, and looks since these are seen again.
    before: BTreeMap<Traffic, (u32, u32)>,
    /// Programs of which it was said that there is nothing left to shed for them.
    said: BTreeSet<u32>,
}

impl Budget {
    /// No program shall spend more than that share of its time on probes, 1: all.
    #[must_use]
    pub fn new(share: f64) -> Budget {
        Budget {
            share,
            beyond: BTreeMap::new(),
            shed: BTreeMap::new(),
            before: BTreeMap::new(),
            said: BTreeSet::new(),
        }
    }

    /// Of a program's time.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Whether these are left unseen.
    #[must_use]
    pub fn is_shed(&self, traffic: Traffic) -> bool {
        self.shed.contains_key(&traffic)
    }

    /// What follows from what programs have spent since the last look, as far as they run and are held to it: that is asked of few.
    pub fn look(&mut self, spent: &[Spent], mut is_judged: impl FnMut(u32) -> bool) -> Vec<Change> {
        let mut changes = self.over(&mut is_judged);
        let beyond: Vec<&Spent> = spent
            .iter()
            .filter(|one| one.share() > self.share && is_judged(one.pid))
            .collect();
        let before = std::mem::take(&mut self.beyond);
        let looks = |pid: &u32| before.get(pid).copied().unwrap_or(0) + 1;
        self.beyond = beyond.iter().map(|one| (one.pid, looks(&one.pid))).collect();
        self.said.retain(|pid| beyond.iter().any(|one| one.pid == *pid));
        let often = beyond.into_iter();
        let mut often: Vec<&Spent> = often
            .filter(|one| self.beyond.get(&one.pid) >= Some(&IN_A_ROW))
            .collect();
        often.sort_by(|one, other| other.share().total_cmp(&one.share()));
        let dearest = often.iter().find_map(|one| Some((*one, self.dearest_of(one)?)));
        match dearest {
            Some((by, traffic)) => changes.push(self.shed_for(by, traffic)),
            None => {
                let unsaid = often.into_iter().filter(|one| self.said.insert(one.pid));
                changes.extend(unsaid.map(|one| Change::Beyond(*one)));
            }
        }
        changes
    }

    /// They are seen again.
    pub fn taken_up(&mut self, traffic: Traffic) {
        if let Some(shed) = self.shed.remove(&traffic) {
            self.before.insert(traffic, (shed.looks, 0));
            self.beyond.clear();
        }
    }

    /// What has been unseen for long enough, or on the account of who is gone: until it is taken up it is asked for at each look.
    fn over(&mut self, is_judged: &mut impl FnMut(u32) -> bool) -> Vec<Change> {
        for (_, since) in self.before.values_mut() {
            *since = since.saturating_add(1);
        }
        let mut over = Vec::new();
        for (traffic, shed) in &mut self.shed {
            shed.looks = shed.looks.saturating_add(1);
            if shed.looks >= shed.pause || !is_judged(shed.pid) {
                over.push(Change::TakeUp(*traffic));
            }
        }
        over
    }

    /// The dearest calls of a program that are seen; `None`: they cost next to nothing.
    fn dearest_of(&self, one: &Spent) -> Option<Traffic> {
        let seen = Traffic::ALL.into_iter().filter(|traffic| !self.is_shed(*traffic));
        let dearest = seen.max_by(|this, other| one.on(*this).total_cmp(&one.on(*other)));
        dearest.filter(|dearest| one.on(*dearest) > self.share / WORTH_IT)
    }

    fn shed_for(&mut self, by: &Spent, traffic: Traffic) -> Change {
        self.beyond.clear();
        let pause = match self.before.get(&traffic) {
            Some((looks, since)) if since < looks => (looks * 2).clamp(PAUSE, LONGEST_PAUSE),
            _ => PAUSE,
        };
        let shed = Shed {
            pid: by.pid,
            pause,
            looks: 0,
        };
        self.shed.insert(traffic, shed);
        Change::Shed { traffic, by: *by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYBODY: fn(u32) -> bool = |_| true;

    fn spends(work: f64, queries: f64, others: f64) -> [Spent; 1] {
        [Spent {
            pid: 7,
            work,
            queries,
            others,
        }]
    }

    /// A look after which everything that can be is seen again.
    fn look(budget: &mut Budget, spent: &[Spent]) -> Vec<Change> {
        let changes = budget.look(spent, EVERYBODY);
        for change in &changes {
            if let Change::TakeUp(traffic) = change {
                budget.taken_up(*traffic);
            }
        }
        changes
    }

    fn shed(changes: &[Change]) -> Vec<Traffic> {
        let shed = changes.iter().filter_map(|change| match change {
            Change::Shed { traffic, .. } => Some(*traffic),
            _ => None,
        });
        shed.collect()
    }

    #[test]
    fn the_dearest_calls_are_shed_where_a_program_is_beyond_the_budget_twice_in_a_row() {
        let mut budget = Budget::new(0.01);
        assert_eq!(budget.look(&spends(0.005, 0.02, 0.0), EVERYBODY), []);
        assert_eq!(budget.look(&spends(0.005, 0.001, 0.0), EVERYBODY), []);
        assert_eq!(budget.look(&spends(0.005, 0.02, 0.0), EVERYBODY), []);
        assert_eq!(
            shed(&budget.look(&spends(0.005, 0.02, 0.0), EVERYBODY)),
            [Traffic::Queries]
        );
        assert!(budget.is_shed(Traffic::Queries) && !budget.is_shed(Traffic::Work));
        // what is left is within it
        assert!((0..20).all(|_| budget.look(&spends(0.005, 0.0, 0.0), EVERYBODY).is_empty()));
    }

    #[test]
    fn who_is_still_beyond_it_loses_the_others_too_and_then_it_is_said_once() {
        let mut budget = Budget::new(0.01);
        let mut changes = Vec::new();
        for _ in 0..10 {
            let work = if budget.is_shed(Traffic::Work) { 0.0 } else { 0.03 };
            let queries = if budget.is_shed(Traffic::Queries) { 0.0 } else { 0.02 };
            changes.extend(budget.look(&spends(work, queries, 0.04), EVERYBODY));
        }
        assert_eq!(shed(&changes), [Traffic::Work, Traffic::Queries]);
        assert_eq!(changes.len(), 3, "{changes:?}");
        assert!(matches!(changes[2], Change::Beyond(_)));
    }

    #[test]
    fn nothing_is_shed_that_would_not_help() {
        let mut budget = Budget::new(0.01);
        let changes: Vec<Change> = (0..9)
            .flat_map(|_| budget.look(&spends(0.001, 0.0, 0.04), EVERYBODY))
            .collect();
        assert!(matches!(changes[..], [Change::Beyond(_)]), "{changes:?}");
    }

    #[test]
    fn they_are_seen_again_and_each_time_that_was_too_early_it_takes_longer() {
        let mut budget = Budget::new(0.01);
        let mut unseen = Vec::new();
        for number in 0..2000 {
            let work = if budget.is_shed(Traffic::Work) { 0.0 } else { 0.05 };
            for change in look(&mut budget, &spends(work, 0.0, 0.0)) {
                match change {
                    Change::Shed { .. } => unseen.push(number),
                    Change::TakeUp(_) => *unseen.last_mut().unwrap() -= number,
                    Change::Beyond(_) => panic!("{change:?}"),
                }
            }
        }
        assert_eq!(unseen[..6], [-30, -60, -120, -240, -360, -360]);
    }

    #[test]
    fn a_program_that_has_been_quiet_for_as_long_is_looked_at_afresh() {
        let mut budget = Budget::new(0.01);
        let mut run = |looks: usize, work: f64| -> Vec<Change> {
            let looks = 0..looks;
            looks.flat_map(|_| look(&mut budget, &spends(work, 0.0, 0.0))).collect()
        };
        assert_eq!(shed(&run(2, 0.05)), [Traffic::Work]);
        assert_eq!(run(30, 0.0), [Change::TakeUp(Traffic::Work)]);
        run(40, 0.0);
        assert_eq!(shed(&run(2, 0.05)), [Traffic::Work]);
        assert_eq!(run(30, 0.0), [Change::TakeUp(Traffic::Work)]);
    }

    #[test]
    fn one_program_after_the_other_is_none_that_was_found_twice() {
        let mut budget = Budget::new(0.01);
        for pid in 1..50 {
            let spent = Spent {
                pid,
                ..spends(0.05, 0.0, 0.0)[0]
            };
            assert_eq!(budget.look(&[spent], EVERYBODY), []);
        }
    }

    #[test]
    fn what_cannot_be_seen_again_is_tried_at_each_look_and_others_are_judged_meanwhile() {
        let mut budget = Budget::new(0.01);
        (0..2).for_each(|_| drop(budget.look(&spends(0.05, 0.0, 0.0), EVERYBODY)));
        (0..29).for_each(|_| assert_eq!(budget.look(&[], EVERYBODY), []));
        let take_up = Change::TakeUp(Traffic::Work);
        assert_eq!(budget.look(&spends(0.0, 0.05, 0.0), EVERYBODY), [take_up]);
        let changes = budget.look(&spends(0.0, 0.05, 0.0), EVERYBODY);
        assert_eq!((changes[0], shed(&changes)), (take_up, vec![Traffic::Queries]));
        assert!(budget.is_shed(Traffic::Work));
        budget.taken_up(Traffic::Work);
        assert!(!budget.is_shed(Traffic::Work));
    }

    #[test]
    fn one_for_whom_nothing_can_be_shed_does_not_hide_another() {
        let mut budget = Budget::new(0.01);
        let spent = [
            Spent {
                pid: 1,
                ..spends(0.0, 0.0, 0.5)[0]
            },
            Spent {
                pid: 2,
                ..spends(0.03, 0.0, 0.0)[0]
            },
        ];
        assert_eq!(budget.look(&spent, EVERYBODY), []);
        let changes = budget.look(&spent, EVERYBODY);
        assert!(
            matches!(
                changes[..],
                [Change::Shed {
                    by: Spent { pid: 2, .. },
                    ..
                }]
            ),
            "{changes:?}"
        );
        let beyond = [spent[0], Spent { pid: 3, ..spent[0] }];
        budget.look(&beyond, EVERYBODY);
        assert_eq!(budget.look(&beyond, EVERYBODY).len(), 2, "each is named");
        assert_eq!(budget.look(&beyond, EVERYBODY), []);
    }

    #[test]
    fn a_pause_that_a_programs_end_cut_short_makes_the_next_one_no_longer() {
        let mut budget = Budget::new(0.01);
        for pid in 1..9 {
            let spent = [Spent {
                pid,
                ..spends(0.05, 0.0, 0.0)[0]
            }];
            (0..2).for_each(|_| drop(budget.look(&spent, EVERYBODY)));
            assert_eq!(budget.look(&[], |_| false), [Change::TakeUp(Traffic::Work)]);
            budget.taken_up(Traffic::Work);
        }
        (0..2).for_each(|_| drop(look(&mut budget, &spends(0.05, 0.0, 0.0))));
        assert!((0..29).all(|_| look(&mut budget, &[]).is_empty()));
        assert_eq!(look(&mut budget, &[]), [Change::TakeUp(Traffic::Work)]);
    }

    #[test]
    fn when_who_spent_it_is_gone_everything_is_seen_again() {
        let mut budget = Budget::new(0.01);
        (0..2).for_each(|_| drop(budget.look(&spends(0.05, 0.0, 0.0), EVERYBODY)));
        assert!(budget.is_shed(Traffic::Work));
        assert_eq!(budget.look(&[], |pid| pid != 7), [Change::TakeUp(Traffic::Work)]);
        budget.taken_up(Traffic::Work);
        assert!(!budget.is_shed(Traffic::Work));
    }
}
