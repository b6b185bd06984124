//! How long threads waited, by function, stream and place.
//!
//! Owns waits that the program asks for. Those that it does not are [`super::hidden`]' business.

use super::report::WaitReport;
use std::collections::HashMap;

/// Functions, streams and places that are told apart. Beyond, waits lose their place, and beyond twice as many their
/// stream.
pub(super) const KEYS: usize = 8192;

/// One call that waited.
#[derive(Debug, Clone, Copy)]
pub struct Wait<'a> {
    pub row: u32,
    /// Documented name of the function.
    pub function: &'a str,
    /// Handle; `None`: for a context.
    pub stream: Option<u64>,
    /// Names the stack; 0: not taken.
    pub site: u64,
    pub ns: u64,
}

type Key = (u32, Option<u64>, u64);

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    count: u64,
    total_ns: u64,
    max_ns: u64,
}

/// Waits of one process.
#[derive(Debug, Default)]
pub struct Waits {
    tallies: HashMap<Key, Tally>,
    functions: HashMap<u32, String>,
}

impl Waits {
    /// A call waited.
    pub fn note(&mut self, wait: &Wait<'_>) {
        self.functions
            .entry(wait.row)
            .or_insert_with(|| wait.function.to_owned());
        let tally = self.tallies.entry(self.key(wait)).or_default();
        tally.count += 1;
        tally.total_ns = tally.total_ns.saturating_add(wait.ns);
        tally.max_ns = tally.max_ns.max(wait.ns);
    }

    fn key(&self, wait: &Wait<'_>) -> Key {
        let full = (wait.row, wait.stream, wait.site);
        let placeless = (wait.row, wait.stream, 0);
        let fits = |key: &Key, most: usize| self.tallies.len() < most || self.tallies.contains_key(key);
        if fits(&full, KEYS) {
            full
        } else if fits(&placeless, 2 * KEYS) {
            placeless
        } else {
            (wait.row, None, 0)
        }
    }

    /// Most time first.
    #[must_use]
    pub fn report(&self) -> Vec<WaitReport> {
        let tallies = self.tallies.iter();
        let mut all: Vec<WaitReport> = tallies
            .map(|((row, stream, site), tally)| WaitReport {
                row: *row,
                function: self.functions.get(row).cloned().unwrap_or_default(),
                stream: *stream,
                site: *site,
                count: tally.count,
                total_ns: tally.total_ns,
                max_ns: tally.max_ns,
            })
            .collect();
        all.sort_by_key(|wait| (std::cmp::Reverse(wait.total_ns), wait.row, wait.stream, wait.site));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wait(stream: Option<u64>, site: u64, ns: u64) -> Wait<'static> {
        Wait {
            row: 3,
            function: "cuStreamSynchronize",
            stream,
            site,
            ns,
        }
    }

    #[test]
    fn waits_add_up_by_stream_and_place_most_time_first() {
        let mut waits = Waits::default();
        for (stream, site, ns) in [(Some(1), 9, 10), (None, 9, 500), (Some(1), 9, 30), (Some(1), 8, 1)] {
            waits.note(&wait(stream, site, ns));
        }
        let told: Vec<_> = waits
            .report()
            .iter()
            .map(|wait| (wait.stream, wait.site, wait.count, wait.total_ns, wait.max_ns))
            .collect();
        assert_eq!(
            told,
            [(None, 9, 1, 500, 500), (Some(1), 9, 2, 40, 30), (Some(1), 8, 1, 1, 1)]
        );
        assert_eq!(waits.report()[0].function, "cuStreamSynchronize");
    }

    #[test]
    fn waits_from_more_places_and_streams_than_are_kept_apart_still_count() {
        let mut waits = Waits::default();
        let all = 10 * KEYS as u64;
        for number in 1..=all {
            waits.note(&wait(Some(7), number, 1));
            waits.note(&wait(Some(100 + number), number, 1));
        }
        let report = waits.report();
        assert!(report.len() <= 2 * KEYS + 1);
        assert_eq!(report.iter().map(|wait| wait.count).sum::<u64>(), 2 * all);
        let placeless = report.iter().find(|wait| (wait.stream, wait.site) == (Some(7), 0));
        assert!(placeless.unwrap().count > all / 2);
    }

    proptest! {
        #[test]
        fn any_times_are_taken(
            waits in proptest::collection::vec((any::<Option<u64>>(), any::<u64>(), any::<u64>()), 0..50)
        ) {
            let mut all = Waits::default();
            for (stream, site, ns) in &waits {
                all.note(&wait(*stream, *site, *ns));
            }
            prop_assert_eq!(all.report().iter().map(|wait| wait.count).sum::<u64>(), waits.len() as u64);
        }
    }
}
