//! How fast counters grow, from one page to the next.

use super::reading::number;
use crate::owner::Owner;
use crate::serve::exchange::Scrape;
use crate::serve::metric::{Kind, Metric, Sample};
use crate::serve::metrics::{api, device, own, work};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// A series.
type Key = (&'static str, Vec<Cow<'static, str>>, Option<Arc<Owner>>);

/// Where the counters of a page stood at the page before.
#[derive(Debug, Clone)]
pub struct Pace {
    started: Instant,
    shown: fn(&Metric) -> bool,
    before: Option<(Instant, HashMap<Key, f64>)>,
}

/// What counters grew by since the page before.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// Since the first page was waited for.
    pub at_seconds: f64,
    /// Between the two pages; `None`: there is none before.
    pub over_seconds: Option<f64>,
    grown: HashMap<Key, f64>,
}

impl Pace {
    /// `started`: when counting began.
    #[must_use]
    pub fn new(started: Instant) -> Pace {
        Pace {
            started,
            shown: is_on_a_page,
            before: None,
        }
    }

    /// The same of every counter, for who shows more than a page does.
    #[must_use]
    pub fn of_all_counters(started: Instant) -> Pace {
        Pace {
            shown: |metric| metric.kind == Kind::Counter,
            ..Pace::new(started)
        }
    }

    /// What grew since the scrape before. A scrape that was seen already has no rates.
    pub fn rates(&mut self, scrape: &Scrape) -> Rates {
        let seconds = |from: Instant| scrape.at.saturating_duration_since(from).as_secs_f64();
        let now: HashMap<Key, f64> = scrape
            .samples
            .iter()
            .filter(|sample| (self.shown)(sample.metric))
            .map(|one| (key(one), number(one)))
            .collect();
        let before = self.before.as_ref().filter(|(at, _)| *at < scrape.at);
        let rates = Rates {
            at_seconds: seconds(self.started),
            over_seconds: before.map(|(at, _)| seconds(*at)),
            grown: before.map_or_else(HashMap::new, |(_, before)| grown(&now, before)),
        };
        self.before = Some((scrape.at, now));
        rates
    }
}

/// What is new counts from 0, and so does what began anew.
fn grown(now: &HashMap<Key, f64>, before: &HashMap<Key, f64>) -> HashMap<Key, f64> {
    let growth = |(key, value): (&Key, &f64)| {
        let old = before.get(key).copied().filter(|old| old <= value).unwrap_or(0.0);
        (*value > old).then(|| (key.clone(), value - old))
    };
    now.iter().filter_map(growth).collect()
}

impl Rates {
    /// By how much the counter has grown; `None`: there was no page before.
    #[must_use]
    pub fn growth(&self, sample: &Sample) -> Option<f64> {
        self.over_seconds?;
        Some(self.grown.get(&key(sample)).copied().unwrap_or(0.0))
    }

    /// The same of a second.
    #[must_use]
    pub fn per_second(&self, sample: &Sample) -> Option<f64> {
        let seconds = self.over_seconds.filter(|seconds| *seconds > 0.0)?;
        Some(self.growth(sample)? / seconds)
    }
}

/// Whether a page shows how it grows.
fn is_on_a_page(metric: &Metric) -> bool {
    debug_assert!(SHOWN.iter().all(|metric| metric.kind == Kind::Counter));
    SHOWN.iter().any(|shown| std::ptr::eq(*shown, metric))
}

fn key(sample: &Sample) -> Key {
    (sample.metric.name, sample.values.clone(), sample.owner.clone())
}

static SHOWN: [&Metric; 11] = [
    &api::API_CALLS,
    &api::API_ERRORS,
    &work::LAUNCHES,
    &work::COPY_BYTES,
    &work::SYNC_BLOCKED_SECONDS,
    &work::HIDDEN_WAIT_SECONDS,
    &device::GPU_XID_ERRORS,
    &own::LOST_RECORDS,
    &own::PROBE_SECONDS,
    &own::PROCESS_CPU_SECONDS,
    &own::HTTP_REQUESTS,
];
