//! The last two minutes of each device and process: for sparklines, and for how fast memory grows.

use super::Frame;
use super::count::rate;
use super::process::Process;
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
}

impl History {
    /// Remembers a frame, and sets in it how fast memory grows.
    pub(crate) fn take(&mut self, frame: &mut Frame) {
        let at = frame.elapsed_seconds;
        let horizon = at - SPAN;
        for process in &mut frame.processes {
            let past = self.processes.entry(process.pid).or_default();
            process.growth_bytes_per_second = growth(past, process, at);
            past.push_back(Point::of(process, at));
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
