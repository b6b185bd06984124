//! When activities of a process were recorded, where that was in windows and not all the time.
//!
//! Owns which time lies within. Between windows nothing is known of devices, neither that they worked nor that they did not.

use crate::activity::shared::{ACTIVITY_WINDOW, ActivityRecord, TURN_LATE, TURN_OPENED};

/// Recording begins, or ends for a while, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Opened(u64),
    Closed(u64),
    /// It begins once and for all, in a program that has run before.
    Late(u64),
}

impl Turn {
    /// What a record says; `None`: it is no turn.
    #[must_use]
    pub fn of(record: &ActivityRecord) -> Option<Turn> {
        (record.kind == ACTIVITY_WINDOW).then_some(match record.bytes {
            TURN_OPENED => Turn::Opened(record.begin),
            TURN_LATE => Turn::Late(record.begin),
            _ => Turn::Closed(record.end),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    opened: u64,
    /// `MAX`: it is open.
    closed: u64,
}

/// Of one process, ascending; empty: it is recorded all the time.
#[derive(Debug, Clone, Default)]
pub(super) struct Windows(Vec<Window>);

impl Windows {
    pub(super) fn turn(&mut self, turn: Turn) {
        let is_first = self.is_empty();
        let last = self.0.last_mut().filter(|last| last.closed == u64::MAX);
        match (turn, last) {
            (Turn::Closed(at), Some(last)) => last.closed = at.max(last.opened),
            (Turn::Closed(at), None) if is_first => self.0.push(Window { opened: 0, closed: at }),
            (Turn::Closed(_), None) => {}
            (Turn::Opened(at) | Turn::Late(at), last) => {
                if let Some(last) = last {
                    last.closed = at;
                }
                let after = self.0.last().map_or(0, |last| last.closed);
                self.0.push(Window {
                    opened: at.max(after),
                    closed: u64::MAX,
                });
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether what began at that time is recorded.
    pub(super) fn hold(&self, at: u64) -> bool {
        let next = self.0.partition_point(|window| window.opened <= at);
        self.is_empty() || next.checked_sub(1).is_some_and(|window| at < self.0[window].closed)
    }

    /// The number of the window of that time, from 0.
    pub(super) fn number(&self, at: u64) -> usize {
        self.0.partition_point(|window| window.closed <= at)
    }

    /// When that window is closed; `MAX`: it is open, or recorded all the time.
    pub(super) fn closes(&self, number: usize) -> u64 {
        self.0.get(number).map_or(u64::MAX, |window| window.closed)
    }

    /// What of an interval lies within.
    pub(super) fn parts(&self, begin: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let whole = self.is_empty().then_some((begin, end));
        let first = self.number(begin);
        let windows = self.0[first..].iter().take_while(move |window| window.opened < end);
        let parts = windows.map(move |window| (begin.max(window.opened), end.min(window.closed)));
        whole.into_iter().chain(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows() -> Windows {
        let mut windows = Windows::default();
        for turn in [
            Turn::Opened(10),
            Turn::Closed(20),
            Turn::Opened(50),
            Turn::Closed(60),
            Turn::Opened(90),
        ] {
            windows.turn(turn);
        }
        windows
    }

    fn parts(windows: &Windows, begin: u64, end: u64) -> Vec<(u64, u64)> {
        windows.parts(begin, end).collect()
    }

    #[test]
    fn what_runs_on_beyond_a_window_counts_within_each() {
        assert_eq!(parts(&windows(), 5, 12), [(10, 12)]);
        assert_eq!(parts(&windows(), 15, 95), [(15, 20), (50, 60), (90, 95)]);
        assert_eq!(parts(&windows(), 20, 50), []);
        assert_eq!(
            parts(&Windows::default(), 20, 50),
            [(20, 50)],
            "it is recorded all the time"
        );
    }

    #[test]
    fn what_was_recorded_all_the_time_is_known_until_that_ends() {
        let mut windows = Windows::default();
        windows.turn(Turn::Closed(20));
        assert_eq!(parts(&windows, 5, 50), [(5, 20)]);
        assert_eq!([0, 19, 20].map(|at| windows.hold(at)), [true, true, false]);
    }

    #[test]
    fn a_call_is_recorded_where_a_window_was_open_when_it_was_entered() {
        let windows = windows();
        let held: Vec<bool> = [9, 10, 19, 20, 49, 50, 99].map(|at| windows.hold(at)).into();
        assert_eq!(held, [false, true, true, false, false, true, true]);
        assert!(Windows::default().hold(7));
    }
}
