//! What a rule has found. Plain data, complete: outputs need nothing else.

use super::book::Book;
use super::devices::Busy;
use super::scene::Past;
use crate::catalog::Class;
use crate::model::outside::Placed;
use crate::model::work::Certainty;
use crate::text::quantity::{form, plural};
use crate::trace::Event;
use std::collections::BTreeMap;

/// The name of a moment in which the host was in no call.
pub const OUTSIDE: &str = "outside CUDA";
/// Moments that a finding names.
pub const MOMENTS: usize = 3;

/// One diagnosis with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The word of the rule: `alloc-churn`.
    pub rule: &'static str,
    /// What happens, in a few words that need no rule to be known; the place in the program comes behind it.
    pub title: String,
    /// One sentence with its numbers: what happens.
    pub what: String,
    /// Wall time that it costs, ns.
    pub cost_ns: u64,
    /// It ends the program or makes its results wrong, however little time it costs: such findings come first.
    pub grave: bool,
    pub certainty: Certainty,
    /// Events that show it.
    pub count: u64,
    /// The worst of them, worst first.
    pub moments: Vec<Moment>,
    /// Where most of them were called from: JSON array of frames, innermost first; `None`: not known.
    pub site: Option<String>,
    /// Where the host was meanwhile, most time first: of samples. Empty: they are not of use, or there are none.
    pub places: Vec<Placed>,
    /// One thing to do.
    pub cure: String,
    /// The thresholds that were passed, in words.
    pub thresholds: String,
    /// What it says may be too little, as calls that it rests on have no rows.
    pub weakened: Option<String>,
}

impl Finding {
    /// Cost as a share of the steady part of `run`, at most 1.
    #[must_use]
    pub fn share(&self, run: &Run) -> f64 {
        (self.cost_ns as f64 / run.steady_ns.max(1) as f64).min(1.0)
    }
}

/// All findings of a run, what is grave first, then by cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub run: Run,
    pub findings: Vec<Finding>,
}

/// Whether a run was looked at for what is wrong.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Diagnosis {
    /// And what was found.
    Told(Report),
    /// It was not; why.
    Untold(String),
    /// Nobody asked.
    #[default]
    Unasked,
}

/// When something happened; the row with this time, process and thread is in the trace, but where the host was outside
/// CUDA: there the call before it returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// ns since the start of the trace.
    pub at: i64,
    pub ns: u64,
    pub pid: u32,
    pub tid: u32,
    pub name: String,
}

impl Moment {
    fn of(event: &Event<'_>) -> Moment {
        Moment {
            at: event.at,
            ns: event.ns.unwrap_or(0),
            pid: event.pid,
            tid: event.tid,
            name: event.name.to_owned(),
        }
    }
}

/// Everything that rules judge by, besides rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// From the first to the last row of a call.
    pub wall_ns: u64,
    /// Of it the steady part: without what comes before the first launch, start-up and end.
    pub steady_ns: u64,
    /// Before the steady part, from the first row of a call on.
    pub start_ns: u64,
    /// How busy its devices were in the steady part, where NVML tells.
    pub busy: Vec<Busy>,
    /// In the steady part the host was outside CUDA for so long, with work given to a device that was not behind when it
    /// was asked, or was not asked.
    pub outside_ns: u64,
    /// Calls without rows, by function.
    pub lost: BTreeMap<String, u64>,
    /// Not everything that gives devices work was seen: idle time is inferred.
    pub blind: bool,
    /// What probes cost the program, about, all its threads together.
    pub tracing_ns: u64,
    /// Calls that had not returned when their thread ended, or the trace, by function.
    pub unreturned: BTreeMap<String, u64>,
    /// The class of functions in `lost`, as far as it is known.
    pub lost_classes: BTreeMap<String, Class>,
}

impl Run {
    /// Whether rows of calls are missing whose class `concerns` picks, in words. Those of no known class concern all.
    #[must_use]
    pub fn weakness(&self, concerns: impl Fn(Class) -> bool) -> Option<String> {
        let may = |name: &String| self.lost_classes.get(name).copied().is_none_or(&concerns);
        let lost: u64 = self
            .lost
            .iter()
            .filter(|(name, _)| may(name))
            .fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        (lost > 0).then(|| {
            format!(
                "{} that it may rest on {} no {}: it may be more",
                plural(lost, "call"),
                form(lost, "has", "have"),
                form(lost, "row", "rows")
            )
        })
    }
}

#[derive(Debug, Clone)]
enum Noted {
    Row(Moment),
    /// Its name is in the book.
    Past(Past),
}

/// The worst moments so far, by a weight that the rule chooses.
#[derive(Debug, Clone, Default)]
pub struct Moments(Vec<(u64, Noted)>);

impl Moments {
    /// Remembers `event` if it is among the worst.
    pub fn note(&mut self, weight: u64, event: &Event<'_>) {
        if let Some(place) = self.place(weight) {
            self.0.insert(place, (weight, Noted::Row(Moment::of(event))));
            self.0.truncate(MOMENTS);
        }
    }

    /// The host was outside CUDA for `ns` before `event`.
    pub fn note_outside(&mut self, ns: u64, event: &Event<'_>) {
        let moment = Moment {
            at: event.at.saturating_sub_unsigned(ns),
            ns,
            name: OUTSIDE.to_owned(),
            ..Moment::of(event)
        };
        self.note_moment(ns, moment);
    }

    /// A moment that is put together otherwise.
    pub fn note_moment(&mut self, weight: u64, moment: Moment) {
        if let Some(place) = self.place(weight) {
            self.0.insert(place, (weight, Noted::Row(moment)));
            self.0.truncate(MOMENTS);
        }
    }

    /// The same of an earlier call.
    pub fn note_past(&mut self, weight: u64, past: &Past) {
        if let Some(place) = self.place(weight) {
            self.0.insert(place, (weight, Noted::Past(*past)));
            self.0.truncate(MOMENTS);
        }
    }

    /// Takes the worst of both.
    pub fn merge(&mut self, other: &Moments) {
        for (weight, noted) in &other.0 {
            if let Some(place) = self.place(*weight) {
                self.0.insert(place, (*weight, noted.clone()));
                self.0.truncate(MOMENTS);
            }
        }
    }

    fn place(&self, weight: u64) -> Option<usize> {
        let worse = self.0.iter().take_while(|(kept, _)| *kept >= weight).count();
        (worse < MOMENTS).then_some(worse)
    }

    /// Worst first.
    #[must_use]
    pub fn list(&self, book: &Book) -> Vec<Moment> {
        let moment = |noted: &Noted| match noted {
            Noted::Row(moment) => moment.clone(),
            Noted::Past(past) => past.moment(book),
        };
        self.0.iter().map(|(_, noted)| moment(noted)).collect()
    }
}
