//! Holds events back for a moment, so that they come out in the order in which calls were entered: a call is known
//! when it returns, after the calls that it made.
//!
//! Owns the bytes of events; does not know what they mean.

use super::activity::Activity;
use super::range::Range;
use super::xid::Report;
use crate::model::beside::{Happening, Measure};
use crate::wire::Inbox;

/// Something that happened to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    pub tgid: u32,
    pub comm: String,
    pub what: Happening,
}

/// What a device has done comes out after calls that were entered so long after its begin: one of them may be its own where clocks
/// are off.
const EARLIEST_NS: u64 = 20_000_000;

/// What is no call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Aside {
    Process(Happened),
    Xid(Report),
    Measure(Measure),
    Activity(Activity),
    Range(Range),
}

impl Aside {
    fn at(&self) -> u64 {
        match self {
            Aside::Process(happened) => happened.at,
            Aside::Xid(report) => report.at,
            Aside::Measure(measure) => measure.at,
            Aside::Activity(activity) => activity.begin.saturating_add(EARLIEST_NS),
            Aside::Range(range) => range.begin,
        }
    }

    fn due(&self) -> Due<'_> {
        match self {
            Aside::Process(happened) => Due::Process(happened),
            Aside::Xid(report) => Due::Xid(report),
            Aside::Measure(measure) => Due::Measure(measure),
            Aside::Activity(activity) => Due::Activity(activity),
            Aside::Range(range) => Due::Range(range),
        }
    }
}

/// What comes out.
#[derive(Debug, PartialEq, Eq)]
pub enum Due<'a> {
    Call(&'a [u8]),
    Process(&'a Happened),
    Xid(&'a Report),
    Measure(&'a Measure),
    Activity(&'a Activity),
    Range(&'a Range),
}

/// Events and happenings that are held back.
#[derive(Debug, Default)]
pub struct Window {
    held: Inbox,
    asides: Vec<Aside>,
    /// Bytes of `held` that have come out.
    spent: usize,
}

impl Window {
    /// Takes all events out of `inbox`; the number of its malformed records.
    pub fn take_in(&mut self, inbox: &mut Inbox) -> u64 {
        if self.held.slots.is_empty() {
            self.held.clear();
            self.spent = 0;
            std::mem::swap(&mut self.held.bytes, &mut inbox.bytes);
            std::mem::swap(&mut self.held.slots, &mut inbox.slots);
        } else {
            for slot in &inbox.slots {
                self.held.push(inbox.event(*slot));
            }
        }
        inbox.clear();
        std::mem::take(&mut inbox.malformed)
    }

    /// Adds something that happened to a process.
    pub fn happen(&mut self, happened: Happened) {
        self.asides.push(Aside::Process(happened));
    }

    /// Adds an Xid.
    pub fn report(&mut self, report: Report) {
        self.asides.push(Aside::Xid(report));
    }

    /// Adds what was measured.
    pub fn measure(&mut self, measure: Measure) {
        self.asides.push(Aside::Measure(measure));
    }

    /// Adds what a device has done.
    pub fn run(&mut self, activity: Activity) {
        self.asides.push(Aside::Activity(activity));
    }

    /// Adds what the program calls a phase of its own.
    pub fn annotate(&mut self, range: Range) {
        self.asides.push(Aside::Range(range));
    }

    /// Bytes of calls that are held back.
    pub fn held_bytes(&self) -> usize {
        self.held.bytes.len() - self.spent
    }

    /// Of calls that were entered at `horizon` or later.
    pub fn held_bytes_from(&self, horizon: u64) -> usize {
        let younger = self.held.slots.iter().filter(|slot| slot.entered >= horizon);
        younger.map(|slot| slot.length as usize).sum()
    }

    /// Gives `emit` what is older than `horizon`, in order.
    pub fn release(&mut self, horizon: u64, mut emit: impl FnMut(Due<'_>)) {
        self.held.slots.sort_by_key(|slot| slot.entered);
        self.asides.sort_by_key(Aside::at);
        let ready = self.held.slots.partition_point(|slot| slot.entered < horizon);
        let mut asides = self.asides.iter().take_while(|aside| aside.at() < horizon).peekable();
        let mut shown = 0;
        for slot in &self.held.slots[..ready] {
            while let Some(aside) = asides.next_if(|aside| aside.at() <= slot.entered) {
                emit(aside.due());
                shown += 1;
            }
            emit(Due::Call(self.held.event(*slot)));
            self.spent += slot.length as usize;
        }
        for aside in asides {
            emit(aside.due());
            shown += 1;
        }
        self.asides.drain(..shown);
        self.held.slots.drain(..ready);
        self.compact();
    }

    /// Moves what is left to the front once most of it has come out.
    fn compact(&mut self) {
        if self.spent * 2 < self.held.bytes.len() {
            return;
        }
        let mut kept = Inbox::default();
        for slot in &self.held.slots {
            kept.push(self.held.event(*slot));
        }
        self.held = kept;
        self.spent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn event(entered: u64) -> Vec<u8> {
        let mut bytes = vec![0; crate::wire::SMALL_BYTES];
        bytes[..8].copy_from_slice(&entered.to_le_bytes());
        bytes
    }

    fn exit(at: u64) -> Happened {
        Happened {
            at,
            tgid: 1,
            comm: "x".to_owned(),
            what: Happening::Exited,
        }
    }

    fn released(window: &mut Window, horizon: u64) -> Vec<(u64, bool)> {
        let mut out = Vec::new();
        window.release(horizon, |due| {
            out.push(match due {
                Due::Call(bytes) => (crate::wire::u64_at(bytes, 0), true),
                Due::Process(happened) => (happened.at, false),
                Due::Xid(report) => (report.at, false),
                Due::Measure(measure) => (measure.at, false),
                Due::Activity(activity) => (activity.begin, false),
                Due::Range(range) => (range.begin, false),
            });
        });
        out
    }

    #[test]
    fn a_process_ends_after_its_calls() {
        let mut window = Window::default();
        let mut inbox = Inbox::default();
        window.happen(exit(7));
        inbox.push(&event(5));
        window.take_in(&mut inbox);
        assert_eq!(released(&mut window, 6), [(5, true)]);
        assert_eq!(released(&mut window, 8), [(7, false)]);
        assert_eq!(window.held_bytes(), 0);
    }

    #[test]
    fn records_that_are_too_short_are_counted() {
        let (mut window, mut inbox) = (Window::default(), Inbox::default());
        inbox.push(&[1, 2, 3]);
        assert_eq!(window.take_in(&mut inbox), 1);
        assert_eq!(released(&mut window, u64::MAX), []);
    }

    proptest! {
        #[test]
        fn everything_comes_out_once_and_in_order_up_to_each_horizon(
            batches in vec((vec(0..1000u64, 0..20), vec(0..1000u64, 0..3), 0..1200u64), 1..12),
        ) {
            let (mut window, mut came, mut out) = (Window::default(), Vec::new(), Vec::new());
            for (calls, exits, horizon) in batches {
                let mut inbox = Inbox::default();
                for entered in calls {
                    inbox.push(&event(entered));
                    came.push((entered, true));
                }
                for at in exits {
                    window.happen(exit(at));
                    came.push((at, false));
                }
                window.take_in(&mut inbox);
                let now = released(&mut window, horizon);
                prop_assert!(now.iter().all(|(at, _)| *at < horizon));
                prop_assert!(now.is_sorted_by_key(|(at, _)| *at));
                prop_assert_eq!(window.held_bytes_from(horizon), window.held_bytes());
                out.extend(now);
            }
            out.extend(released(&mut window, u64::MAX));
            prop_assert_eq!(window.held_bytes(), 0);
            came.sort_unstable();
            out.sort_unstable();
            prop_assert_eq!(came, out);
        }
    }
}
