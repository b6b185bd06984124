//! Gaps whose cause was measured: on which device's track they lie, and what is said of them.
//!
//! Owns which devices a process uses, and what its threads did last: where a gap came from is where the thread was that ended
//! it, for most of it. Why it was is in the row.

use super::Map;
use crate::frame::json::place_of;
use crate::model::activity::Why;
use crate::model::outside::{BETWEEN, SAMPLE};
use crate::record::{Kind, Record, json};
use std::collections::VecDeque;
use std::rc::Rc;

/// What threads did that takes less is no place of a gap.
const LEAST_NS: u64 = 5_000;
/// So much of it is remembered of a thread, and of so many threads. A gap is told within two seconds.
const REMEMBERED: usize = 4096;
const THREADS: usize = 256;

/// The devices that a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Devices {
    One(u32),
    Several,
}

/// A thread was there.
#[derive(Debug)]
struct Stay {
    at: i64,
    end: i64,
    function: Rc<str>,
    stack: Option<Rc<str>>,
}

/// Knows where a gap is drawn, and its place.
#[derive(Debug, Default)]
pub(super) struct Waits {
    devices: Map<u32, Devices>,
    threads: Map<u32, VecDeque<Stay>>,
    /// The texts of the last row, which the next may have as well.
    function: Option<Rc<str>>,
    stack: Option<Rc<str>>,
}

impl Waits {
    /// A row that may say where a gap came from.
    pub(super) fn learn(&mut self, event: &Record<'_>) {
        let is_long = event.ns.unwrap_or(0) >= LEAST_NS;
        match event.kind {
            Kind::Gpu => self.ran(event),
            Kind::Call if event.depth == 0 && is_long => self.stay(event, event.name, event.stack),
            Kind::Sample if event.name == SAMPLE && is_long => self.stay(event, "", event.stack),
            // of the time since the last call, which is short
            Kind::Sample if event.name == BETWEEN => self.stay(event, "", event.stack),
            _ => {}
        }
    }

    fn ran(&mut self, event: &Record<'_>) {
        let Some(device) = event.args.and_then(json::device_of_activity) else {
            return;
        };
        let devices = self.devices.entry(event.pid).or_insert(Devices::One(device));
        if *devices != Devices::One(device) {
            *devices = Devices::Several;
        }
    }

    fn stay(&mut self, event: &Record<'_>, function: &str, stack: Option<&str>) {
        let known = self.threads.len() < THREADS || self.threads.contains_key(&event.tid);
        if !known {
            return;
        }
        let stay = Stay {
            at: event.at,
            end: event.end(),
            function: shared(&mut self.function, function),
            stack: stack.map(|stack| shared(&mut self.stack, stack)),
        };
        let stays = self.threads.entry(event.tid).or_default();
        if stays.len() == REMEMBERED {
            stays.pop_front();
        }
        stays.push_back(stay);
    }

    /// Those that had nothing to do in this gap, as it says itself, or else what the process has used by then; `None`: not known.
    pub(super) fn devices(&self, gap: &Record<'_>) -> Option<Devices> {
        let device = gap.args.and_then(json::device_of_activity).map(Devices::One);
        let several = gap.args.and_then(json::devices_of_idle).map(|_| Devices::Several);
        device.or(several).or_else(|| self.devices.get(&gap.pid).copied())
    }

    /// JSON object: the cause in words, and the place where it is known.
    pub(super) fn args(&self, gap: &Record<'_>) -> String {
        let why = Why::from_name(gap.name);
        let cause = why.map_or(gap.name, |why| why.words());
        match why.and_then(|why| self.place(gap, why)) {
            Some(place) => serde_json::json!({"cause": cause, "place": place}),
            None => serde_json::json!({"cause": cause}),
        }
        .to_string()
    }

    /// Where the thread was that ended it, for most of what its cause is about.
    fn place(&self, gap: &Record<'_>, why: Why) -> Option<String> {
        let is_outside = is_outside(why)?;
        let stays = self.threads.get(&gap.tid)?.iter();
        let overlap = |stay: &Stay| stay.end.min(gap.end()).saturating_sub(stay.at.max(gap.at));
        let mut sums: Map<(&str, Option<&str>), i64> = Map::default();
        for stay in stays.filter(|stay| stay.function.is_empty() == is_outside && overlap(stay) > 0) {
            let sum = sums.entry((&*stay.function, stay.stack.as_deref())).or_default();
            *sum = sum.saturating_add(overlap(stay));
        }
        let ((function, stack), _) = sums.into_iter().max_by_key(|(place, ns)| (*ns, *place))?;
        let line = stack.and_then(place_of);
        let function = Some(function).filter(|function| !function.is_empty());
        match (function, line) {
            (Some(function), Some(line)) => Some(format!("{function} at {line}")),
            (Some(function), None) => Some(function.to_owned()),
            (None, line) => line,
        }
    }
}

/// Whether it is about what the host did outside CUDA, or about its calls; `None`: about neither.
fn is_outside(why: Why) -> Option<bool> {
    match why {
        Why::NoProcessor | Why::Blocked | Why::HostCode | Why::Unsampled => Some(true),
        why => why.is_hosts().then_some(false),
    }
}

/// `text`, which is that of the last row if it is as that.
fn shared(last: &mut Option<Rc<str>>, text: &str) -> Rc<str> {
    match last {
        Some(last) if **last == *text => Rc::clone(last),
        _ => Rc::clone(last.insert(text.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: Kind, name: &'static str, at: i64, ns: u64) -> Record<'static> {
        Record {
            name,
            ns: Some(ns),
            tid: 8,
            ..Record::new(kind, at, 7)
        }
    }

    #[test]
    fn a_gap_came_from_where_the_thread_was_for_most_of_it() {
        let mut waits = Waits::default();
        waits.learn(&row(Kind::Call, "cuMemAlloc_v2", 0, 40_000));
        waits.learn(&Record {
            stack: Some(r#"[{"function":"load","file":"/x/train.py","line":23,"language":"python"}]"#),
            ..row(Kind::Sample, SAMPLE, 50_000, 90_000)
        });
        let args = |why, at, ns| waits.args(&row(Kind::Idle, why, at, ns));
        let allocating = args("memory", 10_000, 20_000);
        assert!(allocating.contains(r#""place":"cuMemAlloc_v2""#), "{allocating}");
        let python = args("host-code", 0, 150_000);
        assert!(
            python.contains("train.py:23") && python.contains("the host ran outside CUDA"),
            "{python}"
        );
        for (why, at) in [("host-code", 500_000), ("host-code", 0), ("kernel-wait", 0)] {
            assert!(
                !args(why, at, 20_000).contains("place"),
                "{why}: the thread was in a call, or nowhere"
            );
        }
    }

    #[test]
    fn a_look_says_where_the_thread_was_in_the_gap_that_it_falls_into() {
        const LOAD: &str = r#"[{"function":"load","file":"/x/train.py","line":3,"language":"python"}]"#;
        const STEP: &str = r#"[{"function":"step","file":"/x/train.py","line":7,"language":"python"}]"#;
        let mut waits = Waits::default();
        for (stack, at) in [(STEP, 46_000), (LOAD, 1_010_000), (LOAD, 1_020_000), (STEP, 1_030_000)] {
            waits.learn(&Record {
                stack: Some(stack),
                ..row(Kind::Sample, BETWEEN, at, 4_000)
            });
        }
        let args = |at, ns| waits.args(&row(Kind::Idle, "host-code", at, ns));
        assert!(args(40_000, 20_000).contains("train.py:7 step"));
        assert!(args(1_000_000, 50_000).contains("train.py:3 load"), "most looks");
        for at in [20_000, 50_000] {
            assert!(!args(at, 20_000).contains("place"), "{at}");
        }
    }

    #[test]
    fn a_process_of_several_devices_has_no_gap_that_is_one_devices() {
        let mut waits = Waits::default();
        let ran = |device: &'static str| Record {
            args: Some(device),
            ..row(Kind::Gpu, "gemm", 0, 10)
        };
        let gap = row(Kind::Idle, "memory", 0, 10);
        assert_eq!(waits.devices(&gap), None);
        waits.learn(&ran(r#"{"activity":"kernel","device":3}"#));
        assert_eq!(waits.devices(&gap), Some(Devices::One(3)));
        waits.learn(&ran(r#"{"activity":"kernel","device":1}"#));
        assert_eq!(waits.devices(&gap), Some(Devices::Several));
    }

    #[test]
    fn a_gap_that_says_whose_it_is_lies_there_whatever_else_is_known() {
        let waits = Waits::default();
        let gap = |kind, args| Record {
            args: Some(args),
            ..row(kind, "memory", 0, 10)
        };
        let devices = |kind, args| waits.devices(&gap(kind, args));
        assert_eq!(devices(Kind::DeviceIdle, r#"{"device":1}"#), Some(Devices::One(1)));
        assert_eq!(devices(Kind::Idle, r#"{"device":0}"#), Some(Devices::One(0)));
        assert_eq!(devices(Kind::Idle, r#"{"devices":2}"#), Some(Devices::Several));
    }
}
