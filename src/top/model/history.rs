//! The last two minutes of each device and process: for sparklines, for how fast memory grows, and for when calls failed last.

use super::Frame;
use super::count::rate;
use super::process::{Failure, Process};
use std::collections::{HashMap, VecDeque};

/// Seconds that are kept.
pub(crate) const SPAN: f64 = 120.0;
/// Memory grows over so many seconds, so that an allocation is not shown as if it went on for ever.
const GROWTH_SPAN: f64 = 10.0;

/// One look at a process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Point {
    pub at: f64,
    pub held_bytes: f64,
    pub launches: f64,
    pub waiting: f64,
    pub idle: f64,
}

/// One look at a device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DevicePoint {
    pub at: f64,
    pub utilization: f64,
}

/// The last two minutes of each device and process.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    processes: HashMap<u32, VecDeque<Point>>,
    devices: HashMap<String, VecDeque<DevicePoint>>,
    /// When calls of a process failed last.
    failed: HashMap<u32, Vec<Failed>>,
}

/// When calls of a function failed in one way last.
#[derive(Debug, Clone, PartialEq)]
struct Failed {
    function: String,
    error: String,
    at: f64,
}

impl History {
    /// Remembers a frame, and sets in it how fast memory grows and when calls failed last.
    pub(crate) fn take(&mut self, frame: &mut Frame) {
        let at = frame.elapsed_seconds;
        let horizon = at - SPAN;
        for process in &mut frame.processes {
            if process.lent {
                // what comes after it does not go on from what was before
                self.processes.remove(&process.pid);
                continue;
            }
            let past = self.processes.entry(process.pid).or_default();
            process.growth_bytes_per_second = growth(past, process, at);
            past.push_back(Point::of(process, at));
            if !process.failures.is_empty() {
                note_failures(self.failed.entry(process.pid).or_default(), &mut process.failures, at);
            }
        }
        let measured = frame
            .devices
            .iter()
            .filter_map(|device| Some((&device.gpu, device.utilization?)));
        for (gpu, utilization) in measured {
            let past = self.devices.entry(gpu.clone()).or_default();
            past.push_back(DevicePoint { at, utilization });
        }
        for past in self.processes.values_mut() {
            while past.front().is_some_and(|point| point.at < horizon) {
                past.pop_front();
            }
        }
        for past in self.devices.values_mut() {
            while past.front().is_some_and(|point| point.at < horizon) {
                past.pop_front();
            }
        }
        self.processes.retain(|_, past| !past.is_empty());
        self.devices.retain(|_, past| !past.is_empty());
        let processes = &self.processes;
        self.failed.retain(|pid, _| processes.contains_key(pid));
    }

    pub(crate) fn process(&self, pid: u32) -> impl DoubleEndedIterator<Item = &Point> {
        self.processes.get(&pid).into_iter().flatten()
    }

    pub(crate) fn device(&self, gpu: &str) -> impl DoubleEndedIterator<Item = &DevicePoint> {
        self.devices.get(gpu).into_iter().flatten()
    }
}

impl Point {
    fn of(process: &Process, at: f64) -> Point {
        Point {
            at,
            held_bytes: process.held_bytes.or(process.driver_bytes).unwrap_or(0.0),
            launches: rate(process.launches).unwrap_or(0.0),
            waiting: rate(process.waiting_seconds).unwrap_or(0.0),
            idle: rate(process.idle_at_least_seconds).unwrap_or(0.0),
        }
    }
}

fn note_failures(known: &mut Vec<Failed>, failures: &mut [Failure], at: f64) {
    for failure in failures {
        let mut all = known.iter_mut();
        let before = all.find(|one| one.function == failure.function && one.error == failure.error);
        let is_new = rate(Some(failure.count)).is_some_and(|rate| rate > 0.0);
        let last = match (before, is_new) {
            (Some(before), true) => {
                before.at = at;
                Some(at)
            }
            (Some(before), false) => Some(before.at),
            (None, true) => {
                let (function, error) = (failure.function.clone(), failure.error.clone());
                known.push(Failed { function, error, at });
                Some(at)
            }
            (None, false) => None,
        };
        failure.last_seconds = last.map(|last| at - last);
    }
}

fn growth(past: &VecDeque<Point>, process: &Process, at: f64) -> Option<f64> {
    let now = process.held_bytes?;
    let then = past.iter().find(|point| point.at >= at - GROWTH_SPAN)?;
    let seconds = at - then.at;
    (seconds > 0.0).then(|| (now - then.held_bytes) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(at: f64, held: f64) -> Frame {
        Frame {
            elapsed_seconds: at,
            processes: vec![Process {
                pid: 7,
                held_bytes: Some(held),
                ..Process::default()
            }],
            ..Frame::default()
        }
    }

    #[test]
    fn memory_grows_by_what_was_held_seconds_ago() {
        let mut history = History::default();
        let mut growth = |at: f64, held: f64| {
            let mut frame = frame(at, held);
            history.take(&mut frame);
            frame.processes[0].growth_bytes_per_second
        };
        assert_eq!(growth(0.0, 100.0), None, "nothing was seen before");
        assert_eq!(growth(10.0, 300.0), Some(20.0));
        assert_eq!(growth(20.0, 200.0), Some(-10.0), "it gave some back");
    }

    #[test]
    fn it_is_known_when_a_call_failed_last() {
        let mut history = History::default();
        let mut last = |at: f64, per_second: f64| {
            let mut frame = frame(at, 0.0);
            frame.processes[0].failures = vec![Failure {
                function: "cuMemAlloc".to_owned(),
                count: crate::top::model::Count {
                    total: 9.0,
                    per_second: Some(per_second),
                },
                ..Failure::default()
            }];
            history.take(&mut frame);
            frame.processes[0].failures[0].last_seconds
        };
        assert_eq!(last(1.0, 0.0), None, "before the first look");
        assert_eq!(last(2.0, 5.0), Some(0.0));
        assert_eq!(last(7.0, 0.0), Some(5.0));
        assert_eq!(last(8.0, 1.0), Some(0.0));
    }

    #[test]
    fn two_minutes_are_kept_and_who_is_gone_is_forgotten() {
        let mut history = History::default();
        (0..300).for_each(|second| history.take(&mut frame(f64::from(second), 1.0)));
        assert_eq!(history.process(7).count(), 121);
        history.take(&mut Frame {
            elapsed_seconds: 500.0,
            ..Frame::default()
        });
        assert!(history.processes.is_empty());
    }
}
