//! Copies by direction, host memory and manner.

use super::functions::View;
use super::kernels::{index, seen};
use crate::catalog::{CopyKind, HostMemory};
use crate::model::snapshot::{self, Snapshot};
use crate::record::Record;
use serde::Serialize;
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
type Key<'a> = (Option<&'a str>, Option<&'a str>, bool);

type Kind = (Option<CopyKind>, Option<HostMemory>, bool);

/// Copies by direction, host memory and manner.
#[derive(Debug, Clone, Default)]
pub(super) struct CopyTally {
    of: [HashMap<Kind, Tally>; 2],
    pub(super) counts: [u64; 2],
}

impl CopyTally {
    pub(super) fn take(&mut self, event: &Record<'_>, view: View) {
        let Some(index) = index(view).filter(|_| !event.failed) else {
            return;
        };
        let kind = (event.direction, event.host, event.blocking);
        let tally = self.of[index].entry(kind).or_default();
        tally.count = tally.count.saturating_add(event.count);
        tally.bytes = tally.bytes.saturating_add(event.bytes.unwrap_or(0));
        tally.ns = tally.ns.saturating_add(event.ns.unwrap_or(0));
        self.counts[index] = self.counts[index].saturating_add(event.count);
    }

    /// Most bytes first.
    pub(super) fn list(&self, exact: Option<&Snapshot>) -> Vec<Copies> {
        let works = exact.map(|exact| exact.work.as_slice()).unwrap_or_default();
        let reported: Vec<&snapshot::Copies> = works.iter().flat_map(|work| &work.copies).collect();
        let mut copies: Vec<Copies> = match reported.is_empty() {
            false => together(&reported),
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
fn together(reported: &[&snapshot::Copies]) -> Vec<Copies> {
    let mut sums: HashMap<Key<'_>, (Copies, f64)> = HashMap::new();
    for said in reported {
        let (direction, host) = (said.direction.as_deref(), said.host.as_deref());
        let blocking = said.blocking;
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
        sum.count = sum.count.saturating_add(said.count);
        sum.bytes = sum.bytes.saturating_add(said.bytes);
        sum.call_ns = sum.call_ns.saturating_add(said.call_ns);
        sum.at_least |= said.bound.as_deref() == Some("at_least");
        *seconds += said.bytes_per_second.map_or(f64::NAN, |rate| said.bytes as f64 / rate);
    }
    let all = sums.into_values().map(|(sum, seconds)| Copies {
        bytes_per_second: (seconds > 0.0).then(|| sum.bytes as f64 / seconds),
        ..sum
    });
    all.collect()
}
