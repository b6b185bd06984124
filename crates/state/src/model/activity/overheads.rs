//! Time that CUPTI and the driver took for themselves, as CUPTI tells of it, and how much of a gap that was.
//!
//! Owns which of it the profiler is to blame for. It is told by process: which device waited, follows from gaps.

use super::total::Total;
use crate::activity::Source;
use crate::activity::shared::{ACTIVITY_OVERHEAD, ActivityRecord};
use std::collections::BTreeMap;

/// Times of a process that are kept until gaps around them are looked at; of more the oldest are forgotten.
const MOST: usize = 1 << 16;

macro_rules! kinds {
    ($($variant:ident $number:literal $name:literal $words:literal),+ $(,)?) => {
        /// What took the time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum OverheadKind { $(#[doc = $words] $variant),+, /// A kind that is not known here.
            Other }

        impl OverheadKind {
            /// Of CUPTI's number.
            #[must_use]
            pub(crate) fn of(number: u64) -> OverheadKind {
                match number { $($number => OverheadKind::$variant,)+ _ => OverheadKind::Other }
            }

            /// The word in outputs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(OverheadKind::$variant => $name,)+ OverheadKind::Other => "other" }
            }
        }
    };
}

kinds! {
    DriverCompile 0x1 "driver-compile" "the driver compiled code",
    BufferFlush 0x1_0000 "buffer-flush" "CUPTI handed records over",
    Instrumentation 0x2_0000 "instrumentation" "CUPTI instrumented kernels",
    Resource 0x3_0000 "resource" "CUPTI made or freed what it needs",
    ModuleLoad 0x4_0000 "module-load" "the runtime loaded a module",
    LazyLoad 0x5_0000 "lazy-load" "a function was loaded when it was first needed",
    CommandBufferFull 0x6_0000 "command-buffer-full" "the queue of commands was full",
    BufferRequest 0x7_0000 "buffer-request" "CUPTI asked for a buffer",
}

/// Who is to blame for a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blame {
    Profiler,
    Code,
    Nobody,
}

impl OverheadKind {
    fn blame(self) -> Blame {
        match self {
            OverheadKind::BufferFlush
            | OverheadKind::Instrumentation
            | OverheadKind::Resource
            | OverheadKind::BufferRequest => Blame::Profiler,
            OverheadKind::DriverCompile | OverheadKind::ModuleLoad | OverheadKind::LazyLoad => Blame::Code,
            // a device whose queue is full has enough to do
            OverheadKind::CommandBufferFull | OverheadKind::Other => Blame::Nobody,
        }
    }
}

/// Time that CUPTI or the driver took, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    pub pid: u32,
    pub begin: u64,
    pub end: u64,
    pub kind: OverheadKind,
}

impl Overhead {
    /// What `record` of `source` says; `None`: it is none.
    #[must_use]
    pub fn of(source: &Source, record: &ActivityRecord) -> Option<Overhead> {
        (record.kind == ACTIVITY_OVERHEAD).then(|| Overhead {
            pid: source.pid,
            begin: record.begin,
            end: record.end,
            kind: OverheadKind::of(record.bytes),
        })
    }
}

/// All of one kind in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverheadTotal {
    pub pid: u32,
    pub kind: OverheadKind,
    pub total: Total,
}

/// Overheads added up.
#[derive(Debug, Clone, Default)]
pub struct OverheadSums(BTreeMap<(u32, OverheadKind), Total>);

impl OverheadSums {
    /// Adds one.
    pub fn add(&mut self, overhead: &Overhead) {
        let total = self.0.entry((overhead.pid, overhead.kind)).or_default();
        total.add(overhead.end - overhead.begin);
    }

    /// What there is so far, by process, most time first.
    #[must_use]
    pub fn report(&self) -> Vec<OverheadTotal> {
        let totals = self.0.iter().map(|((pid, kind), total)| OverheadTotal {
            pid: *pid,
            kind: *kind,
            total: *total,
        });
        let mut totals: Vec<OverheadTotal> = totals.collect();
        totals.sort_by_key(|one| (one.pid, std::cmp::Reverse(one.total.ns), one.kind));
        totals
    }
}

/// When a process had overhead, for gaps that are looked at later.
#[derive(Debug, Clone, Default)]
pub(super) struct Overheads {
    profilers: Spans,
    code: Spans,
}

/// Of a gap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// The profiler took so much of it.
    pub profiler: u64,
    /// Code was compiled or loaded for so long.
    pub code: u64,
}

impl Overheads {
    pub(super) fn add(&mut self, overhead: &Overhead) {
        match overhead.kind.blame() {
            Blame::Profiler => self.profilers.add(overhead.begin, overhead.end),
            Blame::Code => self.code.add(overhead.begin, overhead.end),
            Blame::Nobody => {}
        }
    }

    /// To be called before gaps are looked at.
    pub(super) fn sort(&mut self) {
        self.profilers.sort();
        self.code.sort();
    }

    pub(super) fn overlap(&self, since: u64, until: u64) -> Overlap {
        Overlap {
            profiler: self.profilers.within(since, until),
            code: self.code.within(since, until),
        }
    }

    /// No gap before `at` is looked at any more.
    pub(super) fn forget(&mut self, at: u64) {
        self.profilers.0.retain(|span| span.1 > at);
        self.code.0.retain(|span| span.1 > at);
    }
}

/// Disjoint and ascending once sorted.
#[derive(Debug, Clone, Default)]
struct Spans(Vec<(u64, u64)>);

impl Spans {
    fn add(&mut self, begin: u64, end: u64) {
        if self.0.len() >= MOST {
            self.0.drain(..MOST / 2);
        }
        self.0.push((begin, end));
    }

    fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|next, last| {
            let touches = next.0 <= last.1;
            if touches {
                last.1 = last.1.max(next.1);
            }
            touches
        });
    }

    fn within(&self, since: u64, until: u64) -> u64 {
        let first = self.0.partition_point(|span| span.1 <= since);
        let spans = self.0[first..].iter().take_while(|span| span.0 < until);
        spans.map(|span| span.1.min(until) - span.0.max(since)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn overhead(kind: OverheadKind, begin: u64, end: u64) -> Overhead {
        Overhead {
            pid: 7,
            begin,
            end,
            kind,
        }
    }

    #[test]
    fn what_the_program_would_have_had_anyway_is_not_the_profilers() {
        let mut overheads = Overheads::default();
        overheads.add(&overhead(OverheadKind::BufferFlush, 10, 20));
        overheads.add(&overhead(OverheadKind::LazyLoad, 15, 45));
        overheads.add(&overhead(OverheadKind::CommandBufferFull, 0, 100));
        overheads.sort();
        assert_eq!(overheads.overlap(12, 40), Overlap { profiler: 8, code: 25 });
        overheads.forget(20);
        assert_eq!(overheads.overlap(0, 100), Overlap { profiler: 0, code: 30 });
    }

    #[test]
    fn each_number_of_cupti_has_a_kind_of_its_own() {
        let numbers = [1, 1 << 16, 2 << 16, 3 << 16, 4 << 16, 5 << 16, 6 << 16, 7 << 16];
        let kinds: BTreeSet<OverheadKind> = numbers.into_iter().map(OverheadKind::of).collect();
        assert_eq!(kinds.len(), numbers.len());
        assert!(!kinds.contains(&OverheadKind::Other));
        assert_eq!(OverheadKind::of(9 << 16).name(), "other");
    }

    proptest! {
        #[test]
        fn what_lies_within_counts_once(spans in vec((0..200u64, 0..40u64), 0..30), gap in (0..200u64, 1..80u64)) {
            let mut all = Spans::default();
            spans.iter().for_each(|(begin, ns)| all.add(*begin, begin + ns));
            all.sort();
            let is_in = |at: u64| spans.iter().any(|(begin, ns)| (*begin..begin + ns).contains(&at));
            let truth = (gap.0..gap.0 + gap.1).filter(|at| is_in(*at)).count() as u64;
            prop_assert_eq!(all.within(gap.0, gap.0 + gap.1), truth);
        }
    }
}
