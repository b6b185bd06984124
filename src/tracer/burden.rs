//! Who bears what tracing costs: hits by kind of place, threads that call, and threads that stood still while probes were
//! put into what they had loaded.

use super::Tracer;
use crate::catalog::{Catalog, Layer};
use crate::elf::Cost as Place;
use crate::engine::Engine;
use crate::model::cost::{Cost, Hits, Records, Standstill};
use crate::model::summary::Summary;
use crate::probe::calibrate::Calibration;
use crate::wire::{Notice, RowCounter};
use anyhow::Result;
use std::collections::HashMap;

/// A line is written before so many more loads of libraries have been waited for.
const MOST_CALLS: usize = 4096;

/// Who bears what tracing costs.
#[derive(Debug, Default)]
pub(super) struct Burden {
    /// Threads that have called, by process.
    threads: HashMap<u32, u32>,
    standstill: Standstill,
    /// Of calls that loaded a library, by thread and time of entry: ns.
    of_calls: HashMap<(u32, u64), u64>,
    /// By row.
    of_rows: HashMap<u32, u64>,
}

impl Burden {
    /// A thread of process `tgid` calls for the first time.
    pub(super) fn meet(&mut self, tgid: u32) {
        *self.threads.entry(tgid).or_default() += 1;
    }

    /// The thread of `notice` has stood still since then, `until` CLOCK_MONOTONIC ns.
    pub(super) fn stood_still(&mut self, notice: &Notice, until: u64) {
        let ns = until.saturating_sub(notice.at);
        self.standstill.times += 1;
        self.standstill.ns += ns;
        if self.of_calls.len() >= MOST_CALLS {
            self.of_calls.clear();
        }
        let mut rows: Vec<u32> = Vec::new();
        for open in notice.open.iter().filter(|open| open.entered != 0) {
            *self.of_calls.entry((notice.tid, open.entered)).or_default() += ns;
            // a function within itself has waited once
            if !rows.contains(&open.row) {
                rows.push(open.row);
                *self.of_rows.entry(open.row).or_default() += ns;
            }
        }
    }

    /// How long thread `tid` stood still within the call that it entered at `entered`, ns.
    pub(super) fn of_call(&mut self, tid: u32, entered: u64) -> Option<u64> {
        if self.of_calls.is_empty() {
            return None;
        }
        self.of_calls.remove(&(tid, entered))
    }

    /// The same of all calls of a row.
    pub(super) fn of_row(&self, row: u32) -> u64 {
        self.of_rows.get(&row).copied().unwrap_or(0)
    }
}

impl Tracer {
    /// What the run has cost up to now. Measures here and now what a hit costs.
    pub(super) fn cost(&self, summary: &Summary, counters: &[RowCounter]) -> Cost {
        let spare = self.engine.rows() as u32 - 1;
        let hits = self.hits_by_place(counters);
        let (busiest, busiest_share) = self.tally.busiest();
        let (cpu_seconds, rss_bytes) = super::own_usage();
        let of_kernel = |layer| layer == Layer::Kernel;
        let unpriced = summary.functions.iter().filter(|function| of_kernel(function.layer));
        let streamed = counters.iter().zip(0..).filter(|(_, row)| self.rows.streams(*row));
        let records = Records {
            count: streamed
                .filter(|(_, row)| is_probed(&self.rows.catalog, *row))
                .map(|(counter, _)| counter.entered)
                .sum(),
            ns: 0.0,
        };
        let agents = self.engine.is_inside().unwrap_or_default();
        let (hits, records) = priced(self.engine.as_ref(), spare, hits, records);
        Cost {
            hits,
            records,
            standstill: self.burden.standstill,
            waiting: Standstill {
                times: agents.waits,
                ns: agents.waited_ns,
            },
            busiest_share,
            several_threads: self.burden.threads.get(&busiest).is_some_and(|threads| *threads > 1),
            unpriced: unpriced.map(|function| function.calls).sum(),
            cpu_seconds,
            rss_bytes,
        }
    }

    /// What probes have cost the calls up to now at such prices, ns; what records of calls cost beyond that is left out.
    pub(super) fn in_calls_ns(&self, counters: &[RowCounter], prices: &[Hits]) -> u64 {
        let hits = self.hits_by_place(counters).into_iter();
        let hits = hits
            .map(|hits| Hits {
                ns: price_of(prices, &hits),
                ..hits
            })
            .collect();
        let cost = Cost {
            hits,
            ..Cost::default()
        };
        cost.in_calls_ns()
    }

    /// What one hit costs here, at each kind of place.
    pub(crate) fn prices(&self) -> Vec<Hits> {
        let spare = self.engine.rows() as u32 - 1;
        let places = [Place::Emulated, Place::SingleStepped, Place::Nop5];
        let kinds = places.into_iter().flat_map(|place| [(place, true), (place, false)]);
        let hits = kinds.map(|(place, returns)| Hits {
            place,
            returns,
            count: 1,
            ns: 0.0,
        });
        priced(self.engine.as_ref(), spare, hits.collect(), Records::default()).0
    }

    /// Not priced yet; of functions of the kernel nothing.
    pub(super) fn hits_by_place(&self, counters: &[RowCounter]) -> Vec<Hits> {
        let mut sums: HashMap<(bool, Place), u64> = HashMap::new();
        for (counter, row) in counters.iter().zip(0..) {
            if counter.entered == 0 || !is_probed(&self.rows.catalog, row) {
                continue;
            }
            for hits in hits_of(counter, self.rows.timed(row)) {
                *sums.entry((hits.returns, hits.place)).or_default() += hits.count;
            }
        }
        let sums = sums.into_iter().filter(|(_, count)| *count > 0);
        let mut hits: Vec<Hits> = sums
            .map(|((returns, place), count)| Hits {
                place,
                returns,
                count,
                ns: 0.0,
            })
            .collect();
        hits.sort_by_key(|hits| (!hits.returns, hits.place));
        hits
    }
}

/// Of one row, by place; not priced yet.
pub(super) fn hits_of(counter: &RowCounter, returns: bool) -> [Hits; 3] {
    let emulated = counter.entered.saturating_sub(counter.stepped + counter.nop5);
    let counts = [
        (Place::Emulated, emulated),
        (Place::SingleStepped, counter.stepped),
        (Place::Nop5, counter.nop5),
    ];
    counts.map(|(place, count)| Hits {
        place,
        returns,
        count,
        ns: 0.0,
    })
}

/// What one of them costs, ns; what was not measured costs nothing.
pub(super) fn price_of(prices: &[Hits], hits: &Hits) -> f64 {
    let same = |price: &&Hits| (price.place, price.returns) == (hits.place, hits.returns);
    prices.iter().find(same).map_or(0.0, |price| price.ns)
}

/// Functions of the kernel are hooked in another way.
pub(super) fn is_probed(catalog: &Catalog, row: u32) -> bool {
    let Some(known) = catalog.rows.get(row as usize) else {
        return false;
    };
    let library = catalog.library_with(known.library);
    library.is_some_and(|library| library.layer != Layer::Kernel)
}

/// What cannot be measured costs nothing as far as one knows.
fn priced(engine: &dyn Engine, row: u32, mut hits: Vec<Hits>, mut records: Records) -> (Vec<Hits>, Records) {
    let mut measure = || -> Result<()> {
        let calibration = Calibration::begin(engine, row)?;
        for hits in &mut hits {
            hits.ns = calibration.hit_ns(hits.place, hits.returns)?;
        }
        if records.count > 0 {
            records.ns = calibration.record_ns()?;
        }
        Ok(())
    };
    // what is not measured shows as 0 ns
    let _ = measure();
    (hits, records)
}
