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

/// What both know.
#[derive(Debug)]
struct Shared {
    wish: Mutex<Wish>,
    /// Those that were left to others.
    lent: Mutex<BTreeSet<u32>>,
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
        wish: Mutex::new(wish),
        lent: Mutex::default(),
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
    /// What is wanted; that it is wanted at once is told one time.
    pub(super) fn take_wish(&self) -> Wish {
        let mut wish = self.shared.wish.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = wish.clone();
        wish.now = false;
        taken
    }

    /// These are left to others.
    pub(super) fn lend(&self, lent: BTreeSet<u32>) {
        *self.shared.lent.lock().unwrap_or_else(PoisonError::into_inner) = lent;
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
        *self.shared.wish.lock().unwrap_or_else(PoisonError::into_inner) = wish;
    }

    /// Whether that process was left to others, as was wished.
    pub(super) fn is_lent(&self, pid: u32) -> bool {
        let lent = self.shared.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.contains(&pid)
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
        assert!(looker.take_wish().now && !looker.take_wish().now);
        assert!(drawer.take_frame().is_none());
        for at in [1.0, 2.0] {
            looker.give(Frame { at, ..Frame::default() });
        }
        assert_eq!(drawer.take_frame().map(|frame| frame.at), Some(2.0));
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
