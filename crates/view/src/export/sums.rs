//! What is counted along a trace: the tracks of numbers.

use super::Map;
use crate::catalog::Class;
use crate::record::{Kind, Record};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    BytesPerSecond,
    Nanoseconds,
    Milliwatts,
    Percent,
    Count,
}

impl Unit {
    /// As it is written; a count has none.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Nanoseconds => "ns",
            Unit::Milliwatts => "mW",
            Unit::Percent => "%",
            Unit::Count => "",
        }
    }

    fn of(name: &str) -> Unit {
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        match () {
            () if ends(&["_ns"]) => Unit::Nanoseconds,
            () if ends(&["bytes", "memory.held", "memory_used", "memory_total"]) => Unit::Bytes,
            () if ends(&["_mw", "power"]) => Unit::Milliwatts,
            () if ends(&["_percent", "utilisation", "utilization"]) => Unit::Percent,
            () => Unit::Count,
        }
    }
}

/// A number that changes along the trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Counter {
    /// 0: of the machine.
    pub pid: u32,
    /// Of that thread alone.
    pub tid: Option<u32>,
    /// How many calls of a function were only counted.
    pub counted: bool,
    pub name: String,
}

impl Counter {
    /// Of its name.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match self.name.as_str() {
            _ if self.counted => Unit::Count,
            BANDWIDTH => Unit::BytesPerSecond,
            name => Unit::of(name),
        }
    }
}

const HELD: &str = "memory.held";
const COPIED: &str = "copy.bytes";
const BANDWIDTH: &str = "copy bandwidth";

/// Sums so far: as many as there are processes and names.
#[derive(Default)]
pub(super) struct Sums {
    /// Calls of chatty functions.
    counted: Map<(u32, String), u64>,
    /// When, and how many bytes.
    copied: Map<u32, (i64, u64)>,
}

impl Sums {
    /// Tells each number that `event` changes, and since when.
    pub(super) fn follow(&mut self, event: &Record<'_>, mut tell: impl FnMut(Counter, i64, u64)) {
        let counter = |name: &str| Counter {
            pid: event.pid,
            tid: (name.starts_with("thread.")).then_some(event.tid),
            counted: event.kind == Kind::Count,
            name: name.to_owned(),
        };
        let after = event.end();
        match (event.kind, event.bytes) {
            (Kind::Call, _) if matches!(event.class, Class::Alloc | Class::Free) => {
                if let Some(held) = event.held {
                    tell(counter(HELD), after, held);
                }
            }
            (Kind::Sample, Some(value)) => {
                tell(counter(event.name), event.at, value);
                if event.name == COPIED
                    && let Some((from, rate)) = self.bandwidth(event, value)
                {
                    tell(counter(BANDWIDTH), from, rate);
                }
            }
            (Kind::Count, _) => {
                let key = (event.pid, event.name.to_owned());
                let sum = self.counted.entry(key).or_default();
                *sum = sum.saturating_add(event.count);
                tell(counter(event.name), event.at, *sum);
            }
            _ => {}
        }
    }

    /// Since the sample before: from when on, and how much, bytes a second.
    fn bandwidth(&mut self, event: &Record<'_>, bytes: u64) -> Option<(i64, u64)> {
        let (from, before) = self.copied.insert(event.pid, (event.at, bytes))?;
        let ns = u64::try_from(event.at.checked_sub(from)?).ok().filter(|ns| *ns > 0)?;
        let rate = u128::from(bytes.saturating_sub(before)) * 1_000_000_000 / u128::from(ns);
        Some((from, u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}
