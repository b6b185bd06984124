//! What signals want of the exporter, taken by a thread of its own: who gathers may stand still and is ended all the same.
//!
//! SIGINT and SIGTERM end it, a second one at once; SIGHUP has the configuration read again. They are blocked in every
//! other thread: the kernel gives a signal to the main thread first, also where that sleeps in a file that never answers.

use super::standstill::Standstill;
use crate::confine::{self, Keep};
use crate::output::say;
use crate::serve::Exchange;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Who is asked to end and does not begin to within this time is ended.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How often somebody looks whether the main thread stands still.
const LOOK: Duration = Duration::from_secs(1);
/// Of a process that did not let go of everything itself.
const FORCED: i32 = 1;

/// What signals want of the exporter, taken by a thread of its own.
pub(super) struct Signals(Arc<Wishes>);

#[derive(Default)]
struct Wishes {
    end: AtomicBool,
    /// The main thread has begun to end.
    ends: AtomicBool,
    hangup: AtomicBool,
}

impl Signals {
    /// Before any other thread is there: threads begin with the mask of who starts them.
    ///
    /// # Errors
    /// No thread is left.
    pub(super) fn catch(exchange: Arc<Exchange>) -> Result<Signals> {
        let set = block();
        let wishes = Arc::new(Wishes::default());
        let taker = Taker {
            wishes: Arc::clone(&wishes),
            standstill: Standstill::of_this_thread(Arc::clone(&exchange)),
            exchange,
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread
            .spawn(move || taker.run(&set))
            .context("failed to start the thread that takes signals")?;
        Ok(Signals(wishes))
    }

    pub(super) fn end(&self) -> bool {
        self.0.end.load(Ordering::Acquire)
    }

    /// The main thread ends what it has begun.
    pub(super) fn ending(&self) {
        self.0.ends.store(true, Ordering::Release);
    }

    pub(super) fn take_hangup(&self) -> bool {
        self.0.hangup.swap(false, Ordering::AcqRel)
    }
}

struct Taker {
    wishes: Arc<Wishes>,
    exchange: Arc<Exchange>,
    standstill: Standstill,
}

impl Taker {
    fn run(mut self, set: &libc::sigset_t) {
        confine::this_thread(Keep::NoCapability);
        let mut asked: Option<Instant> = None;
        loop {
            let left = asked.map_or(LOOK, |asked| PATIENCE.saturating_sub(asked.elapsed()));
            let signal = taken(set, left);
            match signal {
                Some(libc::SIGHUP) => self.wishes.hangup.store(true, Ordering::Release),
                Some(signal) if asked.is_some() => at_once(128 + signal),
                Some(_) => {
                    asked = Some(Instant::now());
                    self.wishes.end.store(true, Ordering::Release);
                }
                None => {}
            }
            if signal.is_some() {
                self.exchange.ring();
            }
            self.standstill.look();
            match asked {
                Some(_) if self.wishes.ends.load(Ordering::Acquire) => return again(set),
                Some(asked) if asked.elapsed() >= PATIENCE => self.force(),
                _ => {}
            }
        }
    }

    /// The kernel takes probes, links and leases back with the descriptors of a process that ends.
    fn force(&self) -> ! {
        let doing = self.standstill.words();
        say(format_args!(
            "gpuscope: asked to end, and {doing}: ended without it; the kernel takes the probes back"
        ));
        at_once(FORCED)
    }
}

/// The main thread takes its time to let go: whoever asks again does not want to wait for that.
fn again(set: &libc::sigset_t) {
    loop {
        match taken(set, LOOK) {
            None | Some(libc::SIGHUP) => {}
            Some(signal) => at_once(128 + signal),
        }
    }
}

fn at_once(status: i32) -> ! {
    // SAFETY: ends the process; nothing of ours is to be written any more
    unsafe { libc::_exit(status) }
}

/// Blocks the signals that [`taken`] takes, in this thread and those that it starts.
fn block() -> libc::sigset_t {
    // SAFETY: fills a set of ours, and changes the mask of this thread alone
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    }
}

/// A signal that comes within `wait`.
fn taken(set: &libc::sigset_t, wait: Duration) -> Option<i32> {
    let wait = libc::timespec {
        tv_sec: wait.as_secs().cast_signed(),
        tv_nsec: i64::from(wait.subsec_nanos()),
    };
    // SAFETY: reads a set and a time of ours
    let signal = unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &raw const wait) };
    (signal > 0).then_some(signal)
}
