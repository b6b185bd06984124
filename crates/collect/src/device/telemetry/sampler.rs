//! The thread that asks.

use super::inhabitants::Inhabitants;
use super::pace::{Pace, Reopening};
use super::round::{Rounds, Told};
use super::{Telemetry, xid};
use crate::device::{Absent, Access, Devices};
use anyhow::{Context, Result};
use nvml_wrapper::error::NvmlError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

/// How long after the end of its [`Sampler`] the thread may still wait for events.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// A wait that ends sooner, without an event, did not wait.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Asks NVML until it is dropped. Dropping does not wait for a question that hangs.
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Thread,
}

/// The one that whoever wants one takes.
static SHARED: Mutex<Weak<Sampler>> = Mutex::new(Weak::new());

#[derive(Default)]
struct Shared {
    latest: Mutex<Option<Arc<Telemetry>>>,
    ended: AtomicBool,
}

impl Sampler {
    /// Asks at this interval.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn start(every: Duration) -> Result<Sampler> {
        Sampler::at(Pace::every(every))
    }

    /// The one of this process, whatever its interval is; if there is none, one that asks at this interval. Two at the same time
    /// take GPM's buffers from one another, and the library crashes.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn shared(every: Duration) -> Result<Arc<Sampler>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = shared.upgrade() {
            return Ok(there);
        }
        let new = Arc::new(Sampler::start(every)?);
        *shared = Arc::downgrade(&new);
        Ok(new)
    }

    /// Has [`Sampler::shared`] give out this one, as long as it lives.
    #[must_use]
    pub fn share(self) -> Arc<Sampler> {
        let own = Arc::new(self);
        *SHARED.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&own);
        own
    }

    /// Asks at this interval; the folder `state` is where it remembers the GPUs that there are.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn remembering(every: Duration, state: Option<&Path>) -> Result<Sampler> {
        Sampler::with(Pace::every(every), Inhabitants::new(Path::new("/"), state))
    }

    /// Asks at this pace.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn at(pace: Pace) -> Result<Sampler> {
        Sampler::with(pace, Inhabitants::new(Path::new("/"), None))
    }

    fn with(pace: Pace, known: Inhabitants) -> Result<Sampler> {
        let shared = Arc::new(Shared::default());
        let mut asker = Asker::new(pace, known, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("nvml".to_owned());
        let thread = thread.spawn(move || asker.run());
        let thread = thread.context("failed to start the thread that asks NVML; hint: ulimit -u, TasksMax")?;
        Ok(Sampler {
            shared,
            thread: thread.thread().clone(),
        })
    }

    /// The last complete answers; `None`: none yet. [`Telemetry::at`] says how old they are.
    #[must_use]
    pub fn latest(&self) -> Option<Arc<Telemetry>> {
        self.shared
            .latest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// What outlives an opened NVML.
struct Asker {
    pace: Pace,
    shared: Arc<Shared>,
    access: Access,
    reopening: Reopening,
    known: Inhabitants,
    errors: BTreeMap<u32, u64>,
    xids: xid::History,
}

impl Asker {
    fn new(pace: Pace, known: Inhabitants, shared: Arc<Shared>) -> Asker {
        Asker {
            access: Access::retrying(pace.retry),
            reopening: Reopening::new(Instant::now()),
            known,
            errors: BTreeMap::new(),
            xids: xid::History::default(),
            pace,
            shared,
        }
    }

    fn run(&mut self) {
        while !self.has_ended() {
            let mut access = std::mem::take(&mut self.access);
            let start = Instant::now();
            match access.devices(start) {
                Ok(devices) => {
                    self.ask(devices);
                    access.close();
                }
                Err(absent) => {
                    self.publish(start, Some(absent.clone()), None, Told::default());
                    self.sleep(self.pace.every);
                }
            }
            self.access = access;
        }
    }

    /// Round after round, until NVML is to be opened anew.
    fn ask(&mut self, devices: &Devices) {
        let driver = devices.versions().driver;
        let mut rounds = Rounds::new(devices, self.pace.every);
        let (mut watch, mut notes) = rounds.watch();
        let mut most = usize::MAX;
        while !self.has_ended() {
            let start = Instant::now();
            let mut told = rounds.ask();
            told.notes.extend(notes.iter().cloned());
            let (trouble, count) = (told.trouble, told.gpus.len());
            self.publish(start, None, driver.clone(), told);
            if self.reopening.is_due(trouble, Instant::now()) {
                return self.sleep(self.pace.rest(start.elapsed()));
            }
            let until = Instant::now() + self.pace.rest(start.elapsed());
            let waited = watch.as_ref().map(|watch| self.wait(watch, until));
            if matches!(waited, Some(Err(_))) || count > most {
                (watch, notes) = rounds.watch();
            }
            most = if most == usize::MAX { count } else { most.max(count) };
            if let Some(Err(error)) = waited {
                notes.push(format!("NVML: Xid events cannot be waited for: {error}"));
            }
            self.sleep(until.saturating_duration_since(Instant::now()));
        }
    }

    /// Takes events until then.
    fn wait(&mut self, watch: &xid::Watch, until: Instant) -> Result<(), NvmlError> {
        loop {
            let start = Instant::now();
            let left = until.saturating_duration_since(start);
            let event = watch.next(left.min(LONGEST_WAIT));
            match event {
                Ok(Some((gpu, code))) => self.xids.add(&gpu, code, SystemTime::now()),
                Ok(None) if left.is_zero() || self.has_ended() => return Ok(()),
                Ok(None) if start.elapsed() < SHORTEST_WAIT => return Ok(()),
                Ok(None) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn publish(&mut self, start: Instant, absent: Option<Absent>, driver: Option<String>, mut told: Told) {
        for (gpu, errors) in &told.errors {
            *self.errors.entry(*gpu).or_default() += errors;
        }
        self.known.note_all(told.gpus.iter().map(|gpu| &gpu.identity));
        let lost = self
            .known
            .missing(|place| told.gpus.iter().any(|gpu| gpu.identity.pci_bus_id == place));
        told.notes.extend(self.known.trouble().cloned());
        let at = Instant::now();
        let telemetry = Telemetry {
            at,
            took: at - start,
            every: self.pace.every,
            absent,
            driver,
            lost,
            gpus: told.gpus,
            devices: told.devices,
            processes: told.processes,
            listed: told.listed,
            work: told.work,
            xids: self.xids.all(),
            errors: self.errors.clone(),
            notes: told.notes,
        };
        *self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(telemetry));
    }

    fn has_ended(&self) -> bool {
        self.shared.ended.load(Ordering::Acquire)
    }

    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.has_ended() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }
}
