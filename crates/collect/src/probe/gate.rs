//! Lets a program wait at its dynamic linker until probes are in place, so that no first call is missed.
//!
//! A thread that has mapped a library waits in the kernel program for a moment. If nothing new was mapped it goes
//! on at once. Otherwise it is held ([`super::hold`]) while we attach: a thread that waits in the kernel keeps
//! its CPU and the locks that attaching needs, for two seconds at most. As attaching keeps us busy, a thread of its own
//! attends to those that arrive meanwhile. Where every process of the machine is watched, only those wait that have mapped
//! what nobody had before (`files`), and they are held as soon as they arrive.
//! What is new and where to attach is [`super::attach`]'s business.

use super::Session;
use super::control::Control;
use super::hold::Holder;
use super::ring;
use crate::engine::poll::{empty, event_descriptor, ring as ring_bell, wait_readable};
use crate::engine::{Arrival, Arrivals, Keep};
use crate::foreign::longest_hold;
use crate::refusal::NO_THREAD;
use crate::wire::{self, Notice};
use anyhow::{Context, Result};
use libbpf_rs::RingBuffer;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the attending thread shows that we live while we attach.
const HEARTBEAT_MS: i32 = 100;
/// The same otherwise: the gate's owner shows it, too, unless something keeps it for a moment, as a slow output.
const SELDOM_MS: i32 = 300;
/// Who has waited for so long was overlooked: the gate's owner is at something else.
const OVERLOOKED_NS: u64 = wire::WAIT_NS / 4;

/// Until then a thread surely waits in the kernel, if it does at all.
const STILL_WAITS_NS: u64 = wire::WAIT_NS * 3 / 4;
/// Until then a process that has become another program has hardly begun: later, to hold it would keep nothing from
/// being missed, and would disturb whatever it does.
const HARDLY_BEGUN_NS: u64 = 10_000_000;
/// Notices that wait to be acted on. Those beyond stay in the kernel's ring, which counts what it has no room for: a storm of
/// processes takes bounded memory, and what comes after it is not acted on minutes later.
const MOST_ARRIVALS: usize = 16_384;
/// How soon the attendant looks again when there are so many.
const RESPITE: Duration = Duration::from_millis(10);

/// What has arrived, in order, and the thread that attends to it.
pub(super) struct Gate {
    shared: Arc<Shared>,
    attendant: Option<JoinHandle<()>>,
}

/// Others run already: what they call meanwhile is missed all the same.
fn may_hold(keep: Keep, notice: &Notice, since_ns: u64) -> bool {
    {
        match notice.kind {
            wire::NOTICE_LIBRARY => notice.waits == wire::WAITS_HERE && since_ns < STILL_WAITS_NS,
            wire::NOTICE_EXEC => keep == Keep::Traced && since_ns < HARDLY_BEGUN_NS,
            _ => false,
        }
    }
}

struct Shared {
    control: Control,
    keep: Keep,
    door: Mutex<Door>,
    /// The owner of the gate attaches and does not look at arrivals.
    busy: AtomicBool,
    closing: AtomicBool,
    /// When the gate's owner was last seen at work, CLOCK_MONOTONIC ns; 0: it has not begun, and nobody waits for it.
    looked_at: AtomicU64,
    /// A gate whose owner has not looked at arrivals for so long lets nobody wait.
    patience_ns: u64,
    /// Counts arrivals that the gate's owner has not been woken for.
    bell: File,
    /// Makes the attendant look at `busy` and `closing`.
    elbow: File,
    epoll: i32,
}

/// What one thread at a time may use.
struct Door {
    notices: RingBuffer<'static>,
    inbox: Arc<Mutex<ring::Notices>>,
    arrivals: VecDeque<Arrival>,
    malformed: u64,
    overdue: u64,
    holder: Option<Holder>,
}

impl Gate {
    /// Opens the ring of notices. Without `holder`, threads only wait in the kernel, which is less sure.
    ///
    /// # Errors
    /// The kernel refuses a ring, an event descriptor or a thread.
    pub(super) fn open(session: &Session, holder: Option<Holder>, keep: Keep) -> Result<Gate> {
        let (notices, inbox) = ring::notices(session)?;
        let shared = Arc::new(Shared {
            control: session.control(),
            keep,
            epoll: notices.epoll_fd(),
            door: Mutex::new(Door {
                notices,
                inbox,
                arrivals: VecDeque::new(),
                malformed: 0,
                overdue: 0,
                holder,
            }),
            busy: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            looked_at: AtomicU64::new(0),
            patience_ns: u64::try_from(longest_hold().as_nanos()).unwrap_or(u64::MAX),
            bell: event_descriptor()?,
            elbow: event_descriptor()?,
        });
        let seen = Arc::clone(&shared);
        let attendant = std::thread::Builder::new()
            .name("gpuscope-gate".to_owned())
            .spawn(move || attend(&seen))
            .context(NO_THREAD)?;
        Ok(Gate {
            shared,
            attendant: Some(attendant),
        })
    }

    /// The gate's owner is at work: those who wait for it do not do so in vain.
    fn show_progress(&self) {
        let now = crate::clock::monotonic_ns();
        self.shared.looked_at.store(now, Ordering::SeqCst);
    }

    fn let_pass(&self, arrival: &Arrival) -> bool {
        if let Some(hold) = arrival.held {
            let mut door = self.shared.door();
            let in_time = door.holder.as_mut().is_some_and(|holder| holder.let_go(hold));
            door.overdue += u64::from(!in_time);
            in_time
        } else {
            self.shared.acknowledge(&arrival.notice);
            // the kernel's program counts those that it could not keep until now
            arrival.notice.waits == wire::WAITS_HERE && since_ns(&arrival.notice) < wire::WAIT_NS
        }
    }
}

impl Arrivals for Gate {
    fn bell(&self) -> RawFd {
        self.shared.bell.as_raw_fd()
    }

    fn next_arrival(&self) -> Option<Arrival> {
        self.show_progress();
        self.shared.take_in().arrivals.pop_front()
    }

    fn foresee(&self, see: &mut dyn FnMut(&Notice)) {
        let door = self.shared.take_in();
        door.arrivals.iter().for_each(|arrival| see(&arrival.notice));
        if !door.arrivals.is_empty() {
            self.ring();
        }
    }

    fn ring(&self) {
        self.show_progress();
        ring_bell(&self.shared.bell);
    }

    fn take_malformed(&self) -> u64 {
        std::mem::take(&mut self.shared.door().malformed)
    }

    fn overdue(&self) -> u64 {
        self.shared.door().overdue
    }

    fn silence(&self) {
        self.show_progress();
        empty(&self.shared.bell);
    }

    fn during(&self, mut arrival: Arrival, work: &mut dyn FnMut()) -> Option<u64> {
        self.shared.busy.store(true, Ordering::SeqCst);
        self.shared.nudge();
        self.shared.hold_all(&mut arrival);
        work();
        self.shared.busy.store(false, Ordering::SeqCst);
        self.pass(&arrival)
    }

    fn pass(&self, arrival: &Arrival) -> Option<u64> {
        // before: afterwards it runs while we may have to wait for a processor
        let now = crate::clock::monotonic_ns();
        self.let_pass(arrival).then_some(now)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.nudge();
        if let Some(attendant) = self.attendant.take() {
            let _ = attendant.join();
        }
    }
}

impl Shared {
    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes new notices out of the ring.
    fn take_in(&self) -> MutexGuard<'_, Door> {
        let mut door = self.door();
        if door.is_full() {
            return door;
        }
        // an interrupted call leaves the rest for the next one
        let _ = door.notices.consume();
        let came = std::mem::take(&mut *door.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        door.malformed += came.malformed;
        for notice in came.notices {
            let mut arrival = Arrival::from(notice);
            if self.is_soon_looked_at() {
                self.hold(&mut door.holder, &mut arrival);
            }
            door.arrivals.push_back(arrival);
        }
        door
    }

    /// Holds this thread and those that arrived before anybody was busy.
    fn hold_all(&self, arrival: &mut Arrival) {
        let mut door = self.door();
        let Door { holder, arrivals, .. } = &mut *door;
        if holder.is_none() {
            return; // nobody is held, however many have arrived
        }
        for arrival in std::iter::once(arrival).chain(arrivals) {
            self.hold(holder, arrival);
        }
    }

    /// Whether who has to wait from its arrival on will not do so in vain.
    fn is_soon_looked_at(&self) -> bool {
        let is_attended = self.keep == Keep::New || self.busy.load(Ordering::SeqCst);
        is_attended && self.is_at_work()
    }

    /// Whether who waits does not do so for a gate that nobody opens any more.
    fn is_at_work(&self) -> bool {
        self.since_progress_ns() < self.patience_ns
    }

    fn since_progress_ns(&self) -> u64 {
        crate::clock::monotonic_ns().saturating_sub(self.looked_at.load(Ordering::SeqCst))
    }

    fn nudge(&self) {
        ring_bell(&self.elbow);
    }

    /// Holds those that the gate's owner has not come to yet, though it was at work a moment ago.
    fn hold_overlooked(&self, door: &mut Door) {
        if !self.is_at_work() {
            return;
        }
        let Door { holder, arrivals, .. } = door;
        for arrival in arrivals
            .iter_mut()
            .filter(|arrival| since_ns(&arrival.notice) >= OVERLOOKED_NS)
        {
            self.hold(holder, arrival);
        }
    }

    fn hold(&self, holder: &mut Option<Holder>, arrival: &mut Arrival) {
        let notice = &arrival.notice;
        if arrival.held.is_some() || !may_hold(self.keep, notice, since_ns(notice)) {
            return;
        }
        arrival.held = holder.as_mut().and_then(|holder| holder.hold(notice.tid));
        if arrival.held.is_some() {
            self.acknowledge(notice);
        }
    }

    fn acknowledge(&self, notice: &Notice) {
        if notice.kind == wire::NOTICE_LIBRARY {
            self.control.acknowledge(notice.sequence);
        }
    }
}

/// How long the thread of a notice has waited, or has run.
fn since_ns(notice: &Notice) -> u64 {
    crate::clock::monotonic_ns().saturating_sub(notice.at)
}

impl Door {
    fn is_full(&self) -> bool {
        self.arrivals.len() >= MOST_ARRIVALS
    }
}

/// The attendant: takes in what arrives and rings the bell.
fn attend(shared: &Shared) {
    let mut waiting = false;
    while !shared.closing.load(Ordering::SeqCst) {
        if shared.is_at_work() {
            shared.control.alive(crate::clock::monotonic_ns());
        }
        let often = waiting || shared.is_soon_looked_at() || shared.keep == Keep::New;
        let millis = if often { HEARTBEAT_MS } else { SELDOM_MS };
        wait_readable([shared.epoll, shared.elbow.as_raw_fd()], millis);
        empty(&shared.elbow);
        let mut door = shared.take_in();
        shared.hold_overlooked(&mut door);
        waiting = !door.arrivals.is_empty();
        let is_full = door.is_full();
        drop(door);
        if waiting {
            ring_bell(&shared.bell);
        }
        if is_full {
            std::thread::sleep(RESPITE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(kind: u32, waits: u32) -> Notice {
        Notice {
            kind,
            waits,
            ..Notice::default()
        }
    }

    #[test]
    fn only_those_are_held_that_still_wait_at_their_linker() {
        let waiting = notice(wire::NOTICE_LIBRARY, wire::WAITS_HERE);
        for keep in [Keep::Traced, Keep::AtLinker, Keep::New] {
            assert!(may_hold(keep, &waiting, 1_000));
            assert!(!may_hold(keep, &waiting, wire::WAIT_NS), "it runs by now");
            assert!(!may_hold(
                keep,
                &notice(wire::NOTICE_LIBRARY, wire::WAITS_FOR_NONE),
                1_000
            ));
            assert!(
                !may_hold(keep, &notice(wire::NOTICE_LIBRARY, 0), 1_000),
                "it never waited"
            );
            assert!(!may_hold(keep, &notice(wire::NOTICE_FORK, 0), 1_000));
        }
    }

    #[test]
    fn a_new_program_is_held_at_its_begin_by_who_may_follow_everybody() {
        let new = notice(wire::NOTICE_EXEC, 0);
        assert!(may_hold(Keep::Traced, &new, 1_000));
        assert!(!may_hold(Keep::Traced, &new, HARDLY_BEGUN_NS), "it runs by now");
        assert!(!may_hold(Keep::AtLinker, &new, 1_000) && !may_hold(Keep::New, &new, 1_000));
    }
}
