//! Between the thread that knows and those that show: who asks, and the last answer.

use super::heartbeat::Heartbeat;
use super::keep::Asks;
use super::metric::Sample;
use anyhow::{Context, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// An answer of this age is given again.
const FRESH: Duration = Duration::from_millis(200);
/// Who waits longer gets the last answer, which says how old it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was known at one time.
#[derive(Debug, Clone)]
pub struct Scrape {
    /// When its gathering began.
    pub at: Instant,
    /// Differs from scrape to scrape.
    pub number: u64,
    /// In the order of the table of metrics; samples of one metric stand together.
    pub samples: Vec<Sample>,
    pub status: Status,
}

/// What the pages beside the metrics say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Probes are in place, and the first scrape was gathered.
    pub ready: bool,
    /// What is not seen, and why; one sentence each, with its cure.
    pub missing: Vec<String>,
    /// Name and value of what the landing page shows.
    pub facts: Vec<(String, String)>,
}

/// Who asks, and the last answer.
#[derive(Debug)]
pub struct Exchange {
    wanted: AtomicBool,
    bell: OwnedFd,
    answer: watch::Sender<Arc<Scrape>>,
    /// Of the thread that gathers.
    pub heart: Heartbeat,
    /// Who wants recordings of the last moments.
    pub(crate) asks: Asks,
}

impl Exchange {
    /// Nothing is known yet.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn new() -> Result<Exchange> {
        // SAFETY: makes a descriptor, which nobody else owns
        let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if bell < 0 {
            return Err(std::io::Error::last_os_error()).context("failed to make an eventfd");
        }
        let nothing = Scrape {
            at: Instant::now(),
            number: 0,
            samples: Vec::new(),
            status: Status::default(),
        };
        Ok(Exchange {
            wanted: AtomicBool::new(true),
            // SAFETY: just made
            bell: unsafe { OwnedFd::from_raw_fd(bell) },
            answer: watch::Sender::new(Arc::new(nothing)),
            heart: Heartbeat::default(),
            asks: Asks::default(),
        })
    }

    /// Readable while somebody asks.
    pub(crate) fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Whether somebody has asked since this was last called.
    pub fn take_wish(&self) -> bool {
        let mut count = 0u64;
        // first: who asks from here on rings again
        // SAFETY: reads eight bytes into a number of ours; with nothing to be read it fails and changes nothing
        unsafe { libc::read(self.bell(), (&raw mut count).cast(), size_of::<u64>()) };
        self.wanted.swap(false, Ordering::AcqRel)
    }

    /// Gives everybody who has asked an answer.
    pub fn publish(&self, scrape: Scrape) {
        self.answer.send_replace(Arc::new(scrape));
    }

    /// The last answer.
    pub fn latest(&self) -> Arc<Scrape> {
        Arc::clone(&self.answer.borrow())
    }

    /// An answer that is no older than a moment; after some seconds the last one, whatever its age.
    pub(crate) async fn fresh(&self) -> Arc<Scrape> {
        let mut answers = self.answer.subscribe();
        let last = Arc::clone(&answers.borrow_and_update());
        if last.number > 0 && last.at.elapsed() < FRESH {
            return last;
        }
        let asked = Instant::now();
        self.ask();
        // one that is being gathered already may miss what has just happened; the sender is ours and lives
        let newer = answers.wait_for(|scrape| scrape.at >= asked);
        let _ = tokio::time::timeout(PATIENCE, newer).await;
        self.latest()
    }

    /// Has a scrape gathered.
    pub fn ask(&self) {
        self.wanted.store(true, Ordering::Release);
        self.ring();
    }

    /// Wakes the thread that gathers, without asking for anything.
    pub(crate) fn ring(&self) {
        let one = 1u64;
        // SAFETY: writes eight bytes of ours; it fails only where the bell rings already
        unsafe { libc::write(self.bell(), (&raw const one).cast(), size_of::<u64>()) };
    }
}
