//! Between the thread that looks and the one that draws: neither waits for the other.

use super::live::Close;
use crate::top::model::Frame;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What who draws wants to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    /// Of that process everything.
    pub(crate) close: Option<Close>,
    pub(crate) delay: Duration,
    /// At once.
    pub now: bool,
    /// Processes that others of ours trace meanwhile, who may have to be alone with them.
    pub(crate) lent: BTreeSet<u32>,
}

/// What was done about processes that are to be left to others.
#[derive(Debug, Clone, Copy, Default)]
struct Answer {
    /// Of the wish that it is an answer to.
    number: u64,
    /// A process is traced by one of us at a time.
    alone: bool,
}

/// What both know.
#[derive(Debug)]
struct Shared {
    /// With a number that changes with the processes to be left to others.
    wish: Mutex<(u64, Wish)>,
    answer: Mutex<Answer>,
    ends: AtomicBool,
}

/// Of the thread that looks.
pub(super) struct Looker {
    shared: Arc<Shared>,
    frames: Sender<Frame>,
}

/// Of who shows something before the one that looks can.
pub(super) struct Early {
    shared: Arc<Shared>,
    frames: Sender<Frame>,
}

/// Of the thread that draws; the other one ends with it.
pub(super) struct Drawer {
    shared: Arc<Shared>,
    frames: Receiver<Frame>,
    /// A frame of who looks was taken: those of before are old.
    attached: bool,
}

/// Both ends of it.
pub(super) fn handover(delay: Duration) -> (Looker, Drawer) {
    let wish = Wish {
        close: None,
        delay,
        now: true,
        lent: BTreeSet::new(),
    };
    let shared = Arc::new(Shared {
        wish: Mutex::new((1, wish)),
        answer: Mutex::default(),
        ends: AtomicBool::new(false),
    });
    let (give, take) = channel();
    let looker = Looker {
        shared: Arc::clone(&shared),
        frames: give,
    };
    let drawer = Drawer {
        shared,
        frames: take,
        attached: false,
    };
    (looker, drawer)
}

impl Looker {
    /// What is wanted, with its number; that it is wanted at once is told one time.
    pub(super) fn take_wish(&self) -> (u64, Wish) {
        let mut wish = self.shared.wish.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = wish.clone();
        wish.1.now = false;
        taken
    }

    /// What wish `number` wants to be left to others is left to them. `alone`: otherwise it could not be traced by them.
    pub(super) fn lent(&self, number: u64, alone: bool) {
        *self.shared.answer.lock().unwrap_or_else(PoisonError::into_inner) = Answer { number, alone };
    }

    /// For who looks before this one can.
    pub(super) fn early(&self) -> Early {
        Early {
            shared: Arc::clone(&self.shared),
            frames: self.frames.clone(),
        }
    }

    pub(super) fn give(&self, frame: Frame) {
        // nobody is there to take it where both end
        let _ = self.frames.send(frame);
    }

    pub(super) fn ends(&self) -> bool {
        self.shared.ends.load(Ordering::Acquire)
    }
}

impl Early {
    pub(super) fn give(&self, frame: Frame) {
        // as above
        let _ = self.frames.send(Frame {
            attaching: true,
            ..frame
        });
    }

    pub(super) fn ends(&self) -> bool {
        self.shared.ends.load(Ordering::Acquire)
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
    }
}

impl Drawer {
    /// The newest frame that was not taken yet. Early ones may come late.
    pub(super) fn take_frame(&mut self) -> Option<Frame> {
        let mut newest = None;
        for frame in self.frames.try_iter() {
            if !frame.attaching || !self.attached {
                self.attached |= !frame.attaching;
                newest = Some(frame);
            }
        }
        newest
    }

    pub(super) fn want(&self, wish: Wish) {
        let mut own = self.shared.wish.lock().unwrap_or_else(PoisonError::into_inner);
        let number = own.0 + u64::from(own.1.lent != wish.lent);
        *own = (number, wish);
    }

    /// Whether all that was wished last is left to others.
    pub(super) fn has_lent(&self) -> bool {
        let number = self.shared.wish.lock().unwrap_or_else(PoisonError::into_inner).0;
        self.answer().number == number
    }

    /// Whether a process is traced by one of us at a time.
    pub(super) fn traces_alone(&self) -> bool {
        self.answer().alone
    }

    fn answer(&self) -> Answer {
        *self.shared.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the other one has ended.
    pub(super) fn is_alone(&self) -> bool {
        self.shared.ends.load(Ordering::Acquire)
    }
}

impl Drop for Drawer {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_frame_is_taken_and_a_wish_for_now_is_told_once() {
        let (looker, mut drawer) = handover(Duration::from_secs(1));
        assert!(looker.take_wish().1.now && !looker.take_wish().1.now);
        assert!(drawer.take_frame().is_none());
        for at in [1.0, 2.0] {
            looker.give(Frame { at, ..Frame::default() });
        }
        assert_eq!(drawer.take_frame().map(|frame| frame.at), Some(2.0));
    }

    #[test]
    fn an_answer_to_an_older_wish_is_none() {
        let (looker, drawer) = handover(Duration::from_secs(1));
        let wish = |pids: &[u32]| Wish {
            lent: pids.iter().copied().collect(),
            ..looker.take_wish().1
        };
        drawer.want(wish(&[7]));
        let (number, _) = looker.take_wish();
        assert!(!drawer.has_lent());
        looker.lent(number, true);
        assert!(drawer.has_lent() && drawer.traces_alone());
        drawer.want(wish(&[7]));
        assert!(drawer.has_lent(), "the same processes");
        drawer.want(wish(&[]));
        drawer.want(wish(&[7]));
        assert!(!drawer.has_lent(), "it may have been taken back in between");
    }

    #[test]
    fn what_is_known_early_is_shown_until_there_is_more() {
        let (looker, mut drawer) = handover(Duration::from_secs(1));
        let early = looker.early();
        early.give(Frame::default());
        assert_eq!(drawer.take_frame().map(|frame| frame.attaching), Some(true));
        looker.give(Frame::default());
        early.give(Frame::default());
        assert_eq!(drawer.take_frame().map(|frame| frame.attaching), Some(false));
        early.give(Frame::default());
        assert!(drawer.take_frame().is_none(), "it came late");
    }

    #[test]
    fn who_is_left_alone_knows_it() {
        let (looker, drawer) = handover(Duration::from_secs(1));
        drop(drawer);
        assert!(looker.ends());
        let (looker, drawer) = handover(Duration::from_secs(1));
        drop(looker);
        assert!(drawer.is_alone());
    }
}
