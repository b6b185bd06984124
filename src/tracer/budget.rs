//! Keeps what probes take of any program's time within a budget: measures it at intervals, and leaves frequent calls unseen where it
//! is too much.
//!
//! Owns the measuring and the doing; what is done is decided by [`crate::model::budget`]. While calls are left unseen the model of work
//! takes nothing for done, so that no idle time is claimed; memory is followed as ever.

use super::Tracer;
use super::burden::{hits_of, is_probed, price_of};
use crate::catalog::{Catalog, Row, Traffic};
use crate::clock::monotonic_ns;
use crate::discover;
use crate::model::budget::{Budget, Change, Spent};
use crate::model::cost::Hits;
use crate::output::say;
use crate::owner::Choice;
use crate::text::parse::duration_in;
use crate::wire::{BEYOND_CAPACITY, RowCounter, Total, TotalKey};
use anyhow::Result;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);

/// What a process has spent on calls of a kind so far, ns.
type SpentNs = HashMap<(u32, Option<Traffic>), f64>;

/// What is left unseen, and what that has come to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Spending {
    /// Of the program that spends most of its time on probes: what it did between the last two looks, 1: all of it.
    pub most: f64,
    /// Whether calls are left unseen now, and for how many seconds they have been so far.
    pub shed: Vec<(Traffic, bool, f64)>,
}

/// Keeps what probes take within a budget.
pub(super) struct BudgetPlane {
    budget: Budget,
    /// Programs that may spend more.
    except: Vec<Choice>,
    every: Duration,
    looked: Instant,
    before: SpentNs,
    most: f64,
    /// Since when calls are left unseen, why, and for how long they were before.
    unseen: BTreeMap<Traffic, (Instant, String)>,
    unseen_for: BTreeMap<Traffic, Duration>,
    /// When calls were seen again last, CLOCK_MONOTONIC ns.
    seen_again: BTreeMap<Traffic, u64>,
    /// Work is not taken for all there is any more, but is still seen: calls that are under way then are seen to end.
    leaves: bool,
    /// Work is seen again, but not yet taken for all there is.
    recovers: bool,
}

impl Tracer {
    /// Has probes take no more than that share of any program's time, 1: all, but of those that `except` chooses; before any file
    /// is probed.
    pub(crate) fn keep_within(&mut self, share: f64, except: Vec<Choice>) {
        self.attacher.tell_traffic_apart();
        let prices = self.fleet.as_ref().map_or(&[][..], |fleet| fleet.prices());
        if prices.iter().all(|price| price.ns == 0.0) {
            self.declare_unseen("--budget: nothing is shed: what a probe costs could not be measured here".to_owned());
        }
        self.budget = Some(BudgetPlane {
            budget: Budget::new(share),
            except,
            every: duration_in("GPUSCOPE_BUDGET_EVERY").unwrap_or(EVERY),
            looked: Instant::now(),
            before: SpentNs::new(),
            most: 0.0,
            unseen: BTreeMap::new(),
            unseen_for: BTreeMap::new(),
            seen_again: BTreeMap::new(),
            leaves: false,
            recovers: false,
        });
    }

    /// To be called once a second.
    pub(super) fn look_at_budget(&mut self) {
        if let Some(plane) = self.budget.as_mut().filter(|plane| plane.leaves) {
            plane.leaves = false;
            self.attacher.shed(Traffic::Work);
        }
        let due = |plane: &mut BudgetPlane| plane.looked.elapsed() >= plane.every;
        let Some(mut plane) = self.budget.take_if(due) else {
            return;
        };
        if std::mem::take(&mut plane.recovers) {
            // calls that were under way when their probes came back have ended
            self.see_work(true);
        }
        // what cannot be read now can be the next time
        if let Ok(now) = self.spent_ns() {
            let spent = plane.since_last(now);
            let (fleet, except) = (&mut self.fleet, &plane.except);
            let mut is_excepted = |pid| fleet.as_mut().is_some_and(|fleet| fleet.is_chosen(pid, except));
            // one whose first thread has ended may go on
            let is_judged = |pid| !discover::is_gone(pid) && !is_excepted(pid);
            let changes = plane.budget.look(&spent, is_judged);
            changes.into_iter().for_each(|change| self.change(&mut plane, change));
        }
        self.budget = Some(plane);
    }

    /// What has come of the budget; `None`: there is none.
    pub(super) fn spending(&self) -> Option<Spending> {
        let plane = self.budget.as_ref()?;
        let shed = Traffic::ALL.into_iter().map(|traffic| {
            let now = plane.unseen.get(&traffic).map(|(since, _)| since.elapsed());
            let before = plane.unseen_for.get(&traffic).copied().unwrap_or_default();
            (traffic, now.is_some(), (before + now.unwrap_or_default()).as_secs_f64())
        });
        Some(Spending {
            most: plane.most,
            shed: shed.collect(),
        })
    }

    /// What is left unseen now, in words.
    pub(super) fn left_unseen(&self) -> impl Iterator<Item = String> {
        let unseen = self.budget.iter().flat_map(|plane| plane.unseen.values());
        unseen.map(|(_, why)| why.clone())
    }

    /// Whether these calls were left unseen at any time since then, CLOCK_MONOTONIC ns.
    pub(super) fn was_unseen_since(&self, traffic: Traffic, since: u64) -> bool {
        self.budget.as_ref().is_some_and(|plane| {
            let again = plane.seen_again.get(&traffic);
            plane.unseen.contains_key(&traffic) || again.is_some_and(|again| *again >= since)
        })
    }

    /// What each process has spent in probes so far.
    fn spent_ns(&self) -> Result<SpentNs> {
        let Some(fleet) = self.fleet.as_ref() else {
            return Ok(SpentNs::new());
        };
        let rows = &self.rows;
        let counters = self.engine.row_counters(rows.plans.len())?;
        let prices: Vec<f64> = counters
            .iter()
            .zip(0..)
            .map(|(counter, row)| match is_probed(&rows.catalog, row) {
                true => price(counter, rows.timed(row), fleet.prices()),
                false => 0.0,
            })
            .collect();
        let mut spent = SpentNs::new();
        let count = |key: TotalKey, total: Total| {
            // those beyond the table's capacity are no one program
            if key.tgid == BEYOND_CAPACITY {
                return;
            }
            let price = prices.get(key.row as usize).copied().unwrap_or(0.0);
            let traffic = traffic_of(&rows.catalog, key.row);
            *spent.entry((key.tgid, traffic)).or_default() += total.calls() as f64 * price;
        };
        self.engine.read_counts(count, |_, _| {})?;
        Ok(spent)
    }

    fn change(&mut self, plane: &mut BudgetPlane, change: Change) {
        match change {
            Change::Shed { traffic, by } => {
                let why = self.words(traffic, &by, plane.budget.share());
                say(format_args!("gpuscope: {why}"));
                match traffic {
                    Traffic::Work => {
                        self.see_work(false);
                        (plane.leaves, plane.recovers) = (true, false);
                    }
                    Traffic::Queries => self.attacher.shed(traffic),
                }
                plane.unseen.insert(traffic, (Instant::now(), why));
            }
            Change::TakeUp(traffic) => {
                if let Err(error) = self.attacher.take_up(self.engine.as_ref(), traffic) {
                    return plane.stay_unseen(traffic, &error);
                }
                plane.budget.taken_up(traffic);
                plane.recovers |= traffic == Traffic::Work;
                plane.seen_again.insert(traffic, monotonic_ns());
                if let Some((since, _)) = plane.unseen.remove(&traffic) {
                    *plane.unseen_for.entry(traffic).or_default() += since.elapsed();
                }
                say(format_args!("gpuscope: --budget: {} are seen again", calls(traffic)));
            }
            Change::Beyond(by) => say(format_args!(
                "gpuscope: --budget: process {} ({}) spends {} of its time on probes even so; hint: name fewer collectors (--collect)",
                by.pid,
                discover::comm(by.pid, by.pid).unwrap_or_default(),
                percent(by.share()),
            )),
        }
    }

    fn words(&self, traffic: Traffic, by: &Spent, share: f64) -> String {
        let comm = discover::comm(by.pid, by.pid).unwrap_or_default();
        format!(
            "{} are not seen (--budget): process {} ({comm}) spent {} of its time on probes, {} is the budget; they are tried again by and by",
            calls(traffic),
            by.pid,
            percent(by.share()),
            percent(share)
        )
    }

    /// Whether what is put into streams is seen from now on.
    fn see_work(&mut self, seen: bool) {
        self.follow(u64::MAX);
        if self.rows.follows_work() {
            let runs = |pid: &u32| !self.ended.contains(pid) && !discover::has_ended(*pid);
            for pid in self.callers.iter().copied().filter(runs) {
                self.work.meet(pid, &self.memory);
            }
            self.work.set_blind(!seen);
        }
    }
}

impl BudgetPlane {
    /// They could not be seen again: that may be tried again and again in vain, and is said once.
    fn stay_unseen(&mut self, traffic: Traffic, error: &anyhow::Error) {
        let words = format!(
            "{} are not seen (--budget), as they could not be probed again: {error:#}",
            calls(traffic)
        );
        if let Some((_, why)) = self.unseen.get_mut(&traffic).filter(|(_, why)| *why != words) {
            say(format_args!("gpuscope: {words}"));
            *why = words;
        }
    }

    /// Of each process, what it has spent since this was asked last.
    fn since_last(&mut self, now: SpentNs) -> Vec<Spent> {
        let ns = self.looked.elapsed().as_nanos().max(1) as f64;
        self.looked = Instant::now();
        let mut spent: BTreeMap<u32, Spent> = BTreeMap::new();
        for ((pid, traffic), now) in &now {
            let before = self.before.get(&(*pid, *traffic)).copied().unwrap_or(0.0);
            let of = spent.entry(*pid).or_insert(Spent {
                pid: *pid,
                ..Spent::default()
            });
            of.add(*traffic, (now - before).max(0.0) / ns);
        }
        self.before = now;
        let spent: Vec<Spent> = spent.into_values().collect();
        self.most = spent.iter().map(Spent::share).fold(0.0, f64::max);
        spent
    }
}

/// What a call of a row costs, ns: by where its probes are, which may be several places.
fn price(counter: &RowCounter, returns: bool, prices: &[Hits]) -> f64 {
    let hits = hits_of(counter, returns);
    let ns: f64 = hits.iter().map(|hits| hits.count as f64 * price_of(prices, hits)).sum();
    ns / counter.entered.max(1) as f64
}

fn traffic_of(catalog: &Catalog, row: u32) -> Option<Traffic> {
    catalog.rows.get(row as usize).and_then(Row::traffic)
}

fn calls(traffic: Traffic) -> &'static str {
    match traffic {
        Traffic::Work => "launches, copies and waits",
        Traffic::Queries => "queries",
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
