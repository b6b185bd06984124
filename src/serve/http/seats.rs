//! Who is connected, and who has to leave: those who waste their time, and under a crowd those who wait for nothing.
//!
//! One table and one clock for all limits in time. A client is judged by what it does: it is asking, it is being
//! answered, it takes its answer, or it is idle. Who is being answered is never sent away.

use super::limits::{GRACE, HEADER_TIME, IDLE_TIME, STALL_GRACE, STALL_TIME, TAKE_TIME};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What a connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Since it came, or since the first byte of a request.
    Asking,
    Answered,
    /// Since it last took something of its answer.
    Taking,
    Idle,
}

/// A place at the table.
#[derive(Debug)]
pub(crate) struct Seat {
    doing: Mutex<(Phase, Instant)>,
    /// The scrape whose text is taken, and since when.
    takes: Mutex<Option<(u64, Instant)>>,
    leave: Notify,
}

impl Seat {
    fn new() -> Seat {
        Seat {
            doing: Mutex::new((Phase::Asking, Instant::now())),
            takes: Mutex::new(None),
            leave: Notify::new(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.doing().0
    }

    pub fn set(&self, phase: Phase) {
        if phase != Phase::Taking {
            self.take_of(None);
        }
        *self.doing() = (phase, Instant::now());
    }

    /// An answer begins to be taken: of the text of this scrape, or of something else.
    pub(crate) fn begins_to_take(&self, scrape: u64) {
        self.take_of(Some((scrape, Instant::now())));
        self.set(Phase::Taking);
    }

    fn take_of(&self, scrape: Option<(u64, Instant)>) {
        *self.takes.lock().unwrap_or_else(PoisonError::into_inner) = scrape;
    }

    fn takes(&self) -> Option<(u64, Instant)> {
        *self.takes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When whoever sits here is sent away.
    pub(crate) async fn sent_away(&self) {
        self.leave.notified().await;
    }

    fn doing(&self) -> MutexGuard<'_, (Phase, Instant)> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_late(&self, now: Instant) -> bool {
        let (phase, since) = *self.doing();
        let limit = match phase {
            Phase::Asking => HEADER_TIME,
            Phase::Answered => return false,
            Phase::Taking => STALL_TIME,
            Phase::Idle => IDLE_TIME,
        };
        let takes_too_long = self
            .takes()
            .is_some_and(|(_, began)| now.saturating_duration_since(began) >= TAKE_TIME);
        takes_too_long || now.saturating_duration_since(since) >= limit
    }

    /// How much longer than it must be suffered under a crowd; none: it has its right to stay.
    fn excess(&self, now: Instant) -> Option<Duration> {
        let (phase, since) = *self.doing();
        let grace = match phase {
            Phase::Idle => Duration::ZERO,
            Phase::Asking => GRACE,
            Phase::Taking => STALL_GRACE,
            Phase::Answered => return None,
        };
        now.saturating_duration_since(since).checked_sub(grace)
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Seats {
    most: usize,
    taken: Mutex<Vec<Arc<Seat>>>,
    left: Notify,
}

/// A seat that is free again when this is dropped.
pub struct Taken {
    pub seat: Arc<Seat>,
    seats: Arc<Seats>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.seats.taken().retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        self.seats.left.notify_one();
    }
}

impl Seats {
    /// A table for `most` clients.
    pub(crate) fn of(most: usize) -> Seats {
        Seats {
            most,
            taken: Mutex::default(),
            left: Notify::new(),
        }
    }

    pub fn count(&self) -> usize {
        self.taken().len()
    }

    /// A seat, as soon as there is one.
    pub async fn take(self: &Arc<Seats>) -> Taken {
        loop {
            if let Some(seat) = self.free_seat() {
                let seats = Arc::clone(self);
                return Taken { seat, seats };
            }
            // nobody tells when a grace ends
            let _ = tokio::time::timeout(GRACE / 5, self.left.notified()).await;
        }
    }

    /// Sends away who is over its time.
    pub(crate) fn sweep(&self) {
        self.send_away(Seat::is_late);
    }

    /// Sends away everybody who has no right to stay, as nobody is let in any more.
    pub(crate) fn dismiss(&self) {
        self.send_away(|seat, now| seat.excess(now).is_some());
    }

    fn send_away(&self, goes: impl Fn(&Seat, Instant) -> bool) {
        let now = Instant::now();
        self.taken().retain(|seat| {
            let goes = goes(seat, now);
            if goes {
                seat.leave.notify_one();
            }
            !goes
        });
    }

    /// Makes room by sending away whoever has the least right to stay.
    pub(crate) fn make_room(&self) {
        let mut taken = self.taken();
        let now = Instant::now();
        let excesses = taken.iter().enumerate();
        let excesses = excesses.filter_map(|(place, seat)| Some((seat.excess(now)?, place)));
        if let Some((_, place)) = excesses.max() {
            taken.swap_remove(place).leave.notify_one();
        }
    }

    /// Sends away those who take the text of the oldest scrape; false: nobody takes one.
    pub(crate) fn dismiss_oldest(&self) -> bool {
        let scrape_of = |seat: &Seat| seat.takes().map(|(scrape, _)| scrape).filter(|scrape| *scrape > 0);
        let oldest = self.taken().iter().filter_map(|seat| scrape_of(seat)).min();
        if oldest.is_some() {
            self.send_away(|seat, _| scrape_of(seat) == oldest);
        }
        oldest.is_some()
    }

    fn free_seat(&self) -> Option<Arc<Seat>> {
        if self.count() >= self.most {
            self.make_room();
        }
        let mut taken = self.taken();
        (taken.len() < self.most).then(|| {
            let seat = Arc::new(Seat::new());
            taken.push(Arc::clone(&seat));
            seat
        })
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Arc<Seat>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
