//! The thread that pushes at each interval, and tries again until the next.

use super::convert::{Span, request};
use super::send::{Outcome, Sender, packed};
use super::teller::Teller;
use super::{Notice, Settings, resource};
use crate::confine::{self, Keep};
use crate::serve::metric::{Sample, Value};
use crate::serve::metrics::own::OTLP_EXPORTS;
use crate::serve::{Exchange, Scrape};
use anyhow::{Context, Result};
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender as Stop, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::{Builder, Runtime};

/// Between the first attempt and the second; each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Of the last push, when gpuscope ends.
const LAST_PUSH: Duration = Duration::from_millis(1500);
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
    fn count(&self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Taken => &self.taken,
            Outcome::Partly(_) => &self.partly,
            Outcome::Refused(_) => &self.refused,
            Outcome::Failed(..) => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// Pushes until it is dropped or stopped.
#[derive(Debug)]
pub(crate) struct Pusher {
    tally: Arc<Tally>,
    stop: Option<Stop<()>>,
    /// Closed by the thread when it ends.
    ended: Receiver<()>,
}

impl Pusher {
    /// The first push is after one interval.
    ///
    /// # Errors
    /// The address or a header is none; no thread is left.
    pub(crate) fn start(settings: &Settings, exchange: Arc<Exchange>, notice: Box<Notice>) -> Result<Pusher> {
        let sender = Sender::new(settings)?;
        let teller = Teller::new(notice, &sender.endpoint);
        let (resource, wrong) = resource(Path::new("/"), &|name| std::env::var(name).ok());
        wrong.iter().for_each(|wrong| teller.say(wrong));
        let waiter = Builder::new_current_thread().enable_time().build();
        let (stop, stopped) = channel();
        let (ends, ended) = channel();
        let tally = Arc::new(Tally::default());
        let mut worker = Worker {
            sender,
            teller,
            resource,
            exchange,
            waiter: waiter.context("failed to make a clock for pushing metrics")?,
            interval: settings.interval,
            started: settings.since,
            tally: Arc::clone(&tally),
            stopped,
        };
        let thread = std::thread::Builder::new().name("otlp".to_owned());
        let run = move || {
            // told when it goes out of scope, however it does
            let _ends: Stop<()> = ends;
            confine::this_thread(Keep::NoCapability);
            worker.run();
        };
        thread
            .spawn(run)
            .context("failed to start the thread that pushes metrics")?;
        Ok(Pusher {
            tally,
            stop: Some(stop),
            ended,
        })
    }

    /// `gpuscope_otlp_exports_total`.
    #[must_use]
    pub(crate) fn samples(&self) -> Vec<Sample> {
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
    pub(crate) fn trouble(&self) -> Option<String> {
        self.tally
            .trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Has what is known pushed once more; [`Self::stop`] waits for it.
    pub(crate) fn begin_stop(&mut self) {
        self.stop.take();
    }

    /// Ends once what is known has been pushed, or could not be within 1.5 s: an attempt that is under way is left.
    pub(crate) fn stop(mut self) {
        self.begin_stop();
        let _ = self.ended.recv_timeout(LAST_PUSH);
    }
}

struct Worker {
    sender: Sender,
    teller: Teller,
    resource: Resource,
    exchange: Arc<Exchange>,
    /// Waits for the exchange.
    waiter: Runtime,
    interval: Duration,
    started: SystemTime,
    tally: Arc<Tally>,
    stopped: Receiver<()>,
}

impl Worker {
    fn run(&mut self) {
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
            let outcome = self.sender.send(&self.body(&scrape), Some(LAST_PUSH));
            self.note(&outcome);
        }
    }

    /// Tries until `due`, when there will be something newer.
    fn push(&mut self, scrape: &Scrape, due: Instant) {
        let body = self.body(scrape);
        let mut wait = FIRST_WAIT;
        let outcome = loop {
            let outcome = self.sender.send(&body, None);
            let Outcome::Failed(why, asked) = &outcome else {
                break outcome;
            };
            // it is worth a word before the last attempt: that may be an hour away
            self.tally.set_trouble(Some(self.teller.failed(why)));
            let next = Instant::now() + asked.unwrap_or_else(|| spread(wait));
            if next >= due || !self.wait_until(next) {
                break outcome;
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        };
        self.note(&outcome);
    }

    fn note(&mut self, outcome: &Outcome) {
        let trouble = match outcome {
            Outcome::Taken => {
                self.teller.succeeded();
                None
            }
            Outcome::Partly(why) | Outcome::Refused(why) | Outcome::Failed(why, _) => Some(self.teller.failed(why)),
        };
        self.tally.set_trouble(trouble);
        self.tally.count(outcome);
    }

    fn body(&self, scrape: &Scrape) -> Vec<u8> {
        let end = SystemTime::now().checked_sub(scrape.at.elapsed());
        let span = Span {
            start: self.started,
            end: end.unwrap_or(self.started),
        };
        packed(&request(&scrape.samples, span, self.resource.clone()))
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
