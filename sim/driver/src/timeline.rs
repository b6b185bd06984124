//! When work runs: pure arithmetic on times in nanoseconds, without a clock or a lock.
//!
//! The work of a stream runs in order. Between the streams of a context there are only the rules
//! of the legacy default stream, whose work waits for that of all blocking streams and they for
//! its own, and what events add. Streams do not compete: a device runs as many at once as there
//! are. What work is, and whether the host waits for it, is not known here.

use std::collections::VecDeque;

/// What a stream and the legacy default stream of its context wait for in each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The legacy default stream itself.
    Legacy,
    Blocking,
    /// `CU_STREAM_NON_BLOCKING`.
    Free,
}

/// When a piece of work runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub start_ns: u64,
    pub end_ns: u64,
}

/// The ends of what the streams of one context have, also of those destroyed since.
#[derive(Default)]
pub struct Joint {
    legacy_ns: u64,
    blocking_ns: u64,
    all_ns: u64,
}

/// The work of one stream.
pub struct Lane {
    order: Order,
    end_ns: u64,
    /// The ends of kernels that may not be done yet.
    queue: VecDeque<u64>,
}

impl Joint {
    /// When all work of the context is done.
    pub fn end_ns(&self) -> u64 {
        self.all_ns
    }

    fn before(&self, order: Order) -> u64 {
        match order {
            Order::Legacy => self.legacy_ns.max(self.blocking_ns),
            Order::Blocking => self.legacy_ns,
            Order::Free => 0,
        }
    }

    fn note(&mut self, order: Order, end_ns: u64) {
        match order {
            Order::Legacy => self.legacy_ns = self.legacy_ns.max(end_ns),
            Order::Blocking => self.blocking_ns = self.blocking_ns.max(end_ns),
            Order::Free => {}
        }
        self.all_ns = self.all_ns.max(end_ns);
    }
}

impl Lane {
    pub fn new(order: Order) -> Lane {
        Lane {
            order,
            end_ns: 0,
            queue: VecDeque::new(),
        }
    }

    /// Adds work that lasts `ns` and is submitted at `now_ns`.
    pub fn place(&mut self, joint: &mut Joint, now_ns: u64, ns: u64) -> Span {
        let start_ns = now_ns.max(self.end_ns).max(joint.before(self.order));
        let end_ns = start_ns.saturating_add(ns);
        self.end_ns = end_ns;
        joint.note(self.order, end_ns);
        Span { start_ns, end_ns }
    }

    /// Lets later work start no earlier than `at_ns`.
    pub fn not_before(&mut self, joint: &mut Joint, at_ns: u64) {
        self.end_ns = self.end_ns.max(at_ns);
        joint.note(self.order, self.end_ns);
    }

    /// When all that the stream has is done; for the legacy default stream that of the blocking
    /// ones as well.
    pub fn done_ns(&self, joint: &Joint) -> u64 {
        match self.order {
            Order::Legacy => self.end_ns.max(joint.before(Order::Legacy)),
            Order::Blocking | Order::Free => self.end_ns,
        }
    }

    /// Remembers a kernel that takes a place in the queue until it is done.
    pub fn queued(&mut self, end_ns: u64) {
        self.queue.push_back(end_ns);
    }

    /// When there is room for one more kernel in a queue of `places` (0: there always is).
    pub fn room_ns(&mut self, now_ns: u64, places: usize) -> u64 {
        if places == 0 {
            self.queue.clear();
            return now_ns;
        }
        while self.queue.front().is_some_and(|end| *end <= now_ns) {
            self.queue.pop_front();
        }
        match self.queue.len().checked_sub(places) {
            Some(before) => self.queue[before],
            None => now_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Joint, Lane, Order, Span};

    fn span(start_ns: u64, end_ns: u64) -> Span {
        Span { start_ns, end_ns }
    }

    #[test]
    fn work_of_a_stream_runs_in_order() {
        let (mut joint, mut lane) = (Joint::default(), Lane::new(Order::Free));
        assert_eq!(lane.place(&mut joint, 100, 50), span(100, 150));
        assert_eq!(lane.place(&mut joint, 110, 5), span(150, 155));
        assert_eq!(lane.place(&mut joint, 300, 0), span(300, 300));
        assert_eq!(joint.end_ns(), 300);
    }

    #[test]
    fn streams_run_side_by_side() {
        let mut joint = Joint::default();
        let (mut one, mut other) = (Lane::new(Order::Blocking), Lane::new(Order::Blocking));
        assert_eq!(one.place(&mut joint, 0, 100), span(0, 100));
        assert_eq!(other.place(&mut joint, 10, 100), span(10, 110));
    }

    #[test]
    fn the_legacy_stream_waits_for_blocking_streams_and_they_for_it() {
        let mut joint = Joint::default();
        let mut legacy = Lane::new(Order::Legacy);
        let (mut blocking, mut free) = (Lane::new(Order::Blocking), Lane::new(Order::Free));
        blocking.place(&mut joint, 0, 100);
        free.place(&mut joint, 0, 1000);
        assert_eq!(legacy.done_ns(&joint), 100);
        assert_eq!(legacy.place(&mut joint, 5, 10), span(100, 110));
        assert_eq!(blocking.place(&mut joint, 6, 10), span(110, 120));
        assert_eq!(free.place(&mut joint, 7, 10), span(1000, 1010));
        assert_eq!(blocking.done_ns(&joint), 120);
        assert_eq!(joint.end_ns(), 1010);
    }

    #[test]
    fn work_of_a_destroyed_stream_is_still_waited_for() {
        let mut joint = Joint::default();
        Lane::new(Order::Blocking).place(&mut joint, 0, 100);
        assert_eq!(Lane::new(Order::Legacy).place(&mut joint, 1, 1), span(100, 101));
    }

    #[test]
    fn what_waits_for_an_event_starts_no_earlier() {
        let (mut joint, mut lane) = (Joint::default(), Lane::new(Order::Blocking));
        lane.not_before(&mut joint, 500);
        assert_eq!(lane.done_ns(&joint), 500);
        assert_eq!(lane.place(&mut joint, 1, 1), span(500, 501));
        let mut legacy = Lane::new(Order::Legacy);
        assert_eq!(legacy.place(&mut joint, 2, 1), span(501, 502));
    }

    #[test]
    fn a_full_queue_has_room_when_its_oldest_kernel_is_done() {
        let (mut joint, mut lane) = (Joint::default(), Lane::new(Order::Free));
        for _ in 0..3 {
            let end = lane.place(&mut joint, 0, 10).end_ns;
            lane.queued(end);
        }
        assert_eq!(lane.room_ns(0, 4), 0);
        assert_eq!(lane.room_ns(0, 3), 10);
        assert_eq!(lane.room_ns(0, 2), 20);
        assert_eq!(lane.room_ns(10, 3), 10);
        assert_eq!(lane.room_ns(10, 0), 10);
    }
}
