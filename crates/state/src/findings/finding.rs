//! What rules remember of what they find.

use super::interner::Interner;
use super::past::Past;
use crate::catalog::Class;
use crate::model::finding::{Moment, Run};
use crate::record::Record;
use crate::text::quantity::{form, plural};

/// The name of a moment in which the host was in no call.
pub(crate) const OUTSIDE: &str = "outside CUDA";
/// Moments that a finding names.
pub(crate) const MOMENTS: usize = 3;

impl Moment {
    fn of(event: &Record<'_>) -> Moment {
        Moment {
            at: event.at,
            ns: event.ns.unwrap_or(0),
            pid: event.pid,
            tid: event.tid,
            name: event.name.to_owned(),
        }
    }
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
    /// Its name is in the interner.
    Past(Past),
}

/// The worst moments so far, by a weight that the rule chooses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moments(Vec<(u64, Noted)>);

impl Moments {
    /// Remembers `event` if it is among the worst.
    pub(crate) fn note(&mut self, weight: u64, event: &Record<'_>) {
        if let Some(place) = self.place(weight) {
            self.0.insert(place, (weight, Noted::Row(Moment::of(event))));
            self.0.truncate(MOMENTS);
        }
    }

    /// The host was outside CUDA for `ns` before `event`.
    pub(crate) fn note_outside(&mut self, ns: u64, event: &Record<'_>) {
        let moment = Moment {
            at: event.at.saturating_sub_unsigned(ns),
            ns,
            name: OUTSIDE.to_owned(),
            ..Moment::of(event)
        };
        self.note_moment(ns, moment);
    }

    /// A moment that is put together otherwise.
    pub(crate) fn note_moment(&mut self, weight: u64, moment: Moment) {
        if let Some(place) = self.place(weight) {
            self.0.insert(place, (weight, Noted::Row(moment)));
            self.0.truncate(MOMENTS);
        }
    }

    /// The same of an earlier call.
    pub(crate) fn note_past(&mut self, weight: u64, past: &Past) {
        if let Some(place) = self.place(weight) {
            self.0.insert(place, (weight, Noted::Past(*past)));
            self.0.truncate(MOMENTS);
        }
    }

    /// Takes the worst of both.
    pub(crate) fn merge(&mut self, other: &Moments) {
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
    pub(crate) fn list(&self, interner: &Interner) -> Vec<Moment> {
        let moment = |noted: &Noted| match noted {
            Noted::Row(moment) => moment.clone(),
            Noted::Past(past) => past.moment(interner),
        };
        self.0.iter().map(|(_, noted)| moment(noted)).collect()
    }
}
