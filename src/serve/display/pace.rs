//! How fast counters grow, from one page to the next.

use super::reading::number;
use crate::owner::Owner;
use crate::serve::exchange::Scrape;
use crate::serve::metric::{Kind, Sample};
use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

/// A series that is remembered.
#[derive(Debug, Clone)]
struct Key {
    metric: &'static str,
    values: Vec<Cow<'static, str>>,
    owner: Option<Arc<Owner>>,
}

/// What tells series apart: that of a sample is looked up without a copy.
trait Series {
    fn parts(&self) -> (&'static str, &[Cow<'static, str>], Option<&Arc<Owner>>);
}

impl Series for Key {
    fn parts(&self) -> (&'static str, &[Cow<'static, str>], Option<&Arc<Owner>>) {
        (self.metric, &self.values, self.owner.as_ref())
    }
}

impl Series for Sample {
    fn parts(&self) -> (&'static str, &[Cow<'static, str>], Option<&Arc<Owner>>) {
        (self.metric.name, &self.values, self.owner.as_ref())
    }
}

impl PartialEq for dyn Series + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Series + '_ {}

impl Hash for dyn Series + '_ {
    /// Of an owner the first label, which is the process where these are told apart: all would take longer than what it saves.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (metric, values, owner) = self.parts();
        (metric, values).hash(state);
        owner.and_then(|owner| owner.labels.first()).hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self as &dyn Series).hash(state);
    }
}

impl<'a> Borrow<dyn Series + 'a> for Key {
    fn borrow(&self) -> &(dyn Series + 'a) {
        self
    }
}

/// Where a counter stood, and in which page that was.
#[derive(Debug, Clone, Copy)]
struct Stand {
    value: f64,
    /// Since the page before.
    growth: f64,
    page: u64,
}

/// Where the counters of a page stood at the page before.
#[derive(Debug, Clone)]
pub struct Pace {
    started: Instant,
    before: Option<Instant>,
    stands: HashMap<Key, Stand>,
    pages: u64,
}

/// What counters grew by since the page before.
#[derive(Debug, Clone, Default)]
pub struct Rates<'a> {
    /// Since the first page was waited for.
    pub at_seconds: f64,
    /// Between the two pages; `None`: there is none before.
    pub over_seconds: Option<f64>,
    /// `None`: there is no page before.
    stands: Option<&'a HashMap<Key, Stand>>,
}

impl Pace {
    /// `started`: when counting began.
    #[must_use]
    pub fn new(started: Instant) -> Pace {
        Pace {
            started,
            before: None,
            stands: HashMap::new(),
            pages: 0,
        }
    }

    /// What grew since the scrape before. A scrape that was seen already has no rates.
    pub fn rates(&mut self, scrape: &Scrape) -> Rates<'_> {
        let seconds = |from: Instant| scrape.at.saturating_duration_since(from).as_secs_f64();
        let before = self.before.replace(scrape.at).filter(|at| *at < scrape.at);
        self.grow(scrape);
        Rates {
            at_seconds: seconds(self.started),
            over_seconds: before.map(seconds),
            stands: before.map(|_| &self.stands),
        }
    }

    /// What is new counts from 0, and so does what began anew.
    fn grow(&mut self, scrape: &Scrape) {
        self.pages += 1;
        let page = self.pages;
        let counters = scrape
            .samples
            .iter()
            .filter(|sample| sample.metric.kind == Kind::Counter);
        for sample in counters {
            let value = number(sample);
            let series: &dyn Series = sample;
            let new = |old: f64| Stand {
                value,
                growth: value - if old <= value { old } else { 0.0 },
                page,
            };
            match self.stands.get_mut(series) {
                Some(stand) => *stand = new(stand.value),
                None => drop(self.stands.insert(key(sample), new(0.0))),
            }
        }
        self.stands.retain(|_, stand| stand.page == page);
    }
}

impl Rates<'_> {
    /// By how much the counter has grown; `None`: there was no page before.
    #[must_use]
    pub(crate) fn growth(&self, sample: &Sample) -> Option<f64> {
        self.over_seconds?;
        let series: &dyn Series = sample;
        let stand = self.stands.and_then(|stands| stands.get(series));
        Some(stand.map_or(0.0, |stand| stand.growth))
    }

    /// The same of a second.
    #[must_use]
    pub(crate) fn per_second(&self, sample: &Sample) -> Option<f64> {
        let seconds = self.over_seconds.filter(|seconds| *seconds > 0.0)?;
        Some(self.growth(sample)? / seconds)
    }
}

fn key(sample: &Sample) -> Key {
    Key {
        metric: sample.metric.name,
        values: sample.values.clone(),
        owner: sample.owner.clone(),
    }
}
