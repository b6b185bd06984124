//! The thread that pushes at each interval, and tries again until the next.

use super::convert::{Span, request};
use super::send::{Outcome, Sender, packed};
use super::{Settings, resource};
use crate::serve::metric::{Sample, Value};
use crate::serve::metrics::own::OTLP_EXPORTS;
use crate::serve::{Exchange, Scrape};
use anyhow::{Context, Result};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender as Stop, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::{Builder, Runtime};

/// Between the first attempt and the second; each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What became of pushes.
#[derive(Debug, Default)]
struct Tally {
    taken: AtomicU64,
    partly: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Tally {
    fn note(&self, outcome: &Outcome, endpoint: &str) {
        let (count, trouble) = match outcome {
            Outcome::Taken => (&self.taken, None),
            Outcome::Partly(why) => (&self.partly, Some(why)),
            Outcome::Refused(why) => (&self.refused, Some(why)),
            Outcome::Failed(why, _) => (&self.failed, Some(why)),
        };
        count.fetch_add(1, Ordering::Relaxed);
        let trouble = trouble.map(|why| format!("failed to push metrics to {endpoint}: {why}"));
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// Pushes until it is dropped or stopped.
#[derive(Debug)]
pub struct Pusher {
    tally: Arc<Tally>,
    stop: Option<Stop<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pusher {
    /// The first push is after one interval.
    ///
    /// # Errors
    /// The address or a header is none; no thread is left.
    pub fn start(settings: &Settings, exchange: Arc<Exchange>) -> Result<Pusher> {
        let sender = Sender::new(settings)?;
        let waiter = Builder::new_current_thread().enable_time().build();
        let (stop, stopped) = channel();
        let tally = Arc::new(Tally::default());
        let worker = Worker {
            sender,
            exchange,
            waiter: waiter.context("failed to make a clock for pushing metrics")?,
            interval: settings.interval,
            started: SystemTime::now(),
            tally: Arc::clone(&tally),
            stopped,
        };
        let thread = std::thread::Builder::new().name("otlp".to_owned());
        let thread = thread
            .spawn(move || worker.run())
            .context("failed to start the thread that pushes metrics")?;
        Ok(Pusher {
            tally,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// `gpuscope_otlp_exports_total`.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let tally = &self.tally;
        let results = [
            ("taken", &tally.taken),
            ("partly", &tally.partly),
            ("refused", &tally.refused),
            ("failed", &tally.failed),
        ];
        let sample = |(result, count): (&'static str, &AtomicU64)| {
            Sample::new(
                &OTLP_EXPORTS,
                vec![result.into()],
                Value::Integer(count.load(Ordering::Relaxed)),
            )
        };
        results.map(sample).into()
    }

    /// Why the last push did not succeed; `None`: it did, or there was none.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.tally
            .trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Pushes what is known once more and ends; takes no longer than the timeout of an attempt under way and another.
    pub fn stop(mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    sender: Sender,
    exchange: Arc<Exchange>,
    /// Waits for the exchange.
    waiter: Runtime,
    interval: Duration,
    started: SystemTime,
    tally: Arc<Tally>,
    stopped: Receiver<()>,
}

impl Worker {
    fn run(&self) {
        let mut due = Instant::now() + self.interval;
        let mut last = 0;
        while self.wait_until(due) {
            due = next_after(due, self.interval);
            let scrape = self.waiter.block_on(self.exchange.fresh());
            if scrape.number != 0 {
                last = scrape.number;
                self.push(&scrape, due);
            }
        }
        let scrape = self.exchange.latest();
        if scrape.number != last {
            self.tally
                .note(&self.sender.send(&self.body(&scrape)), &self.sender.endpoint);
        }
    }

    /// Tries until `due`, when there will be something newer.
    fn push(&self, scrape: &Scrape, due: Instant) {
        let body = self.body(scrape);
        let mut wait = FIRST_WAIT;
        let outcome = loop {
            let outcome = self.sender.send(&body);
            let Outcome::Failed(_, asked) = &outcome else {
                break outcome;
            };
            let next = Instant::now() + asked.unwrap_or_else(|| spread(wait));
            if next >= due || !self.wait_until(next) {
                break outcome;
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        };
        self.tally.note(&outcome, &self.sender.endpoint);
    }

    fn body(&self, scrape: &Scrape) -> Vec<u8> {
        let end = SystemTime::now().checked_sub(scrape.at.elapsed());
        let span = Span {
            start: self.started,
            end: end.unwrap_or(self.started),
        };
        packed(&request(&scrape.samples, span, resource(Path::new("/"))))
    }

    /// Whether to go on.
    fn wait_until(&self, time: Instant) -> bool {
        let wait = time.saturating_duration_since(Instant::now());
        self.stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
    }
}

/// The next multiple of `interval` after `due` that is still to come.
fn next_after(due: Instant, interval: Duration) -> Instant {
    let next = due + interval;
    if next > Instant::now() {
        return next;
    }
    Instant::now() + interval
}

/// Between half of `wait` and one and a half, so that many do not come back at once.
fn spread(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(Instant::now());
    wait / 2 + wait * u32::from(random.to_le_bytes()[0]) / u32::from(u8::MAX)
}
