//! Copies by direction, host memory and manner.

use super::functions::View;
use super::kernels::{index, seen};
use crate::catalog::CopyKind;
use crate::model::work::HostMemory;
use crate::trace::Event;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// Copies of one kind that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Copies {
    /// `HtoD` and so on; `None`: not known.
    pub direction: Option<String>,
    /// `pinned`, `pageable`, `managed`, `unknown`; `None`: none takes part, or it is not known.
    pub host: Option<String>,
    /// The call waits for the copy.
    pub blocking: bool,
    pub count: u64,
    pub bytes: u64,
    /// In the calls.
    pub call_ns: u64,
    pub bytes_per_second: Option<f64>,
    /// It is at least that: a lower bound.
    pub at_least: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    count: u64,
    bytes: u64,
    ns: u64,
}

/// Direction, host memory and manner, as a summary has them.
type Told<'a> = (Option<&'a str>, Option<&'a str>, bool);

type Kind = (Option<CopyKind>, Option<HostMemory>, bool);

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct CopyTally {
    of: [HashMap<Kind, Tally>; 2],
    pub(super) counts: [u64; 2],
}

impl CopyTally {
    pub(super) fn take(&mut self, event: &Event<'_>, view: View) {
        let Some(index) = index(view).filter(|_| !event.failed) else {
            return;
        };
        let kind = (event.direction, event.host, event.blocking);
        let tally = self.of[index].entry(kind).or_default();
        tally.count += event.count;
        tally.bytes = tally.bytes.saturating_add(event.bytes.unwrap_or(0));
        tally.ns = tally.ns.saturating_add(event.ns.unwrap_or(0));
        self.counts[index] += event.count;
    }

    /// Most bytes first.
    pub(super) fn list(&self, exact: Option<&Value>) -> Vec<Copies> {
        let works = exact.and_then(|exact| exact["work"].as_array()).map(Vec::as_slice);
        let told: Vec<&Value> = works
            .unwrap_or_default()
            .iter()
            .filter_map(|work| work["copies"].as_array())
            .flatten()
            .collect();
        let mut copies: Vec<Copies> = match told.is_empty() {
            false => together(&told),
            true => self.of[seen(&self.counts)]
                .iter()
                .map(|(kind, tally)| Copies::seen(*kind, tally))
                .collect(),
        };
        copies.sort_by(|a, b| {
            let order = b.bytes.cmp(&a.bytes).then(b.count.cmp(&a.count));
            order.then_with(|| (&a.direction, &a.host, a.blocking).cmp(&(&b.direction, &b.host, b.blocking)))
        });
        copies
    }
}

impl Copies {
    /// The bandwidth of a copy that nobody waits for cannot be told from its call.
    fn seen((direction, host, blocking): Kind, tally: &Tally) -> Copies {
        let rate = tally.bytes as f64 / (tally.ns.max(1) as f64 / 1e9);
        Copies {
            direction: direction.map(|direction| direction.name().to_owned()),
            host: host.map(|host| host.name().to_owned()),
            blocking,
            count: tally.count,
            bytes: tally.bytes,
            call_ns: tally.ns,
            bytes_per_second: (blocking && tally.ns > 0 && tally.bytes > 0).then_some(rate),
            at_least: false,
        }
    }
}

/// Of all processes of a summary.
fn together(told: &[&Value]) -> Vec<Copies> {
    let mut sums: HashMap<Told<'_>, (Copies, f64)> = HashMap::new();
    for said in told {
        let (direction, host) = (said["direction"].as_str(), said["host"].as_str());
        let blocking = said["blocking"].as_bool().unwrap_or(false);
        let (sum, seconds) = sums.entry((direction, host, blocking)).or_insert_with(|| {
            let none = Copies::seen((None, None, blocking), &Tally::default());
            let own = |word: Option<&str>| word.map(str::to_owned);
            (
                Copies {
                    direction: own(direction),
                    host: own(host),
                    ..none
                },
                0.0,
            )
        });
        let bytes = said["bytes"].as_u64().unwrap_or(0);
        sum.count += said["count"].as_u64().unwrap_or(0);
        sum.bytes += bytes;
        sum.call_ns += said["call_us"].as_f64().map_or(0, |us| (us * 1e3) as u64);
        sum.at_least |= said["bound"].as_str() == Some("at_least");
        *seconds += said["bytes_per_second"]
            .as_f64()
            .map_or(f64::NAN, |rate| bytes as f64 / rate);
    }
    let all = sums.into_values().map(|(sum, seconds)| Copies {
        bytes_per_second: (seconds > 0.0).then(|| sum.bytes as f64 / seconds),
        ..sum
    });
    all.collect()
}
