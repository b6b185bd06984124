//! Everything that is known, as samples: what is traced, what devices say, what gpuscope itself takes.
//!
//! Owns the sources of samples and their order. Who asks for them, and what becomes of them, is others' business: the
//! exporter serves them, `top` shows them.

use super::faults::Faults;
use super::hardware::Hardware;
use super::keeping::Keeping;
use super::reserving::Reserving;
use super::sources;
use crate::clock::clock_now;
use crate::device::telemetry::{Sampler, Telemetry};
use crate::output::say;
use crate::owner::Directory;
use crate::probe;
use crate::serve::config::Config;
use crate::serve::gather::{self, KnownGpus, Own, Traced};
use crate::serve::keep::Asks;
use crate::serve::metric::{Collector, Sample};
use crate::tracer::{Census, Scope, Tracer, own_usage};
use anyhow::Result;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Without probes there is nothing to be followed between two questions.
const IDLE: Duration = Duration::from_millis(500);

/// Everything that is known.
pub(in crate::command) struct Gatherer {
    pub tracer: Option<Tracer>,
    /// Of processes that are not traced, where none is.
    pub directory: Option<Directory>,
    sampler: Option<Arc<Sampler>>,
    hardware: Hardware,
    /// `None`: nobody wants to know of Xids.
    faults: Option<Faults>,
    /// `None`: nobody wants to know what is reserved.
    reserving: Option<Reserving>,
    /// `None`: nothing is kept.
    keeping: Option<Keeping>,
    gpus: KnownGpus,
    /// Seconds since 1970.
    started_at: f64,
}

/// What was known at one time.
pub(in crate::command) struct Gathered {
    pub at: Instant,
    /// `None`: nothing is traced, or it could not be told.
    pub census: Option<Census>,
    /// `None` also where there is no device.
    pub telemetry: Option<Arc<Telemetry>>,
    pub samples: Vec<Sample>,
}

impl Gatherer {
    /// Attaches what the collectors need, to the processes of `scope`.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(in crate::command) fn start(config: &Config, scope: &Scope) -> Result<Gatherer> {
        Gatherer::with(sources::sampler(config)?, config, scope)
    }

    /// Who asks NVML, for [`Self::with`]; `None`: nobody wants to know.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(in crate::command) fn sampler(config: &Config) -> Result<Option<Arc<Sampler>>> {
        sources::sampler(config)
    }

    /// The same, where NVML is asked already.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(in crate::command) fn with(sampler: Option<Arc<Sampler>>, config: &Config, scope: &Scope) -> Result<Gatherer> {
        let mut directory = Some(sources::directory(config)?);
        let mut tracer = None;
        if let Some(directory) = directory.take_if(|_| config.needs_probes()) {
            tracer = Some(sources::tracer(config, directory, sampler.as_ref(), scope)?);
        }
        let watch = || Faults::watch(tracer.as_mut());
        let faults = config.collect.contains(&Collector::Xid).then(watch).transpose()?;
        let keeping = tracer.as_mut().map(|tracer| Keeping::start(config, tracer));
        Ok(Gatherer {
            tracer,
            directory,
            sampler,
            hardware: Hardware::default(),
            faults,
            reserving: sources::reserving(config),
            keeping: keeping.transpose()?.flatten(),
            gpus: KnownGpus::default(),
            started_at: clock_now().start_unix_ns as f64 / 1e9,
        })
    }

    /// Handles what has come in; waits for it for a moment, or until `bell` is readable.
    ///
    /// # Errors
    /// None that would end it.
    pub(in crate::command) fn step(&mut self, bell: RawFd) -> Result<()> {
        match self.tracer.as_mut() {
            Some(tracer) => tracer.step()?,
            None => probe::wait_for(bell, IDLE),
        }
        if let Some(faults) = self.faults.as_mut() {
            faults.take_in(self.tracer.as_mut(), self.directory.as_mut());
        }
        self.look_at_reserved();
        Ok(())
    }

    /// Looks after the last moments of programs; `asks`: requests for these.
    pub(super) fn keep(&mut self, asks: &Asks) {
        let news = self.faults.as_mut().map(Faults::take_news).unwrap_or_default();
        if let (Some(keeping), Some(tracer)) = (self.keeping.as_mut(), self.tracer.as_mut()) {
            asks.open();
            let latest = self.sampler.as_ref().and_then(|sampler| sampler.latest());
            keeping.step(tracer, news, asks.take(), latest.as_deref());
        }
    }

    fn look_at_reserved(&mut self) {
        let traced = self.tracer.as_mut().and_then(Tracer::directory);
        let directory = traced.or(self.directory.as_mut());
        let latest = self.sampler.as_ref().and_then(|sampler| sampler.latest());
        if let (Some(reserving), Some(directory), Some(telemetry)) = (self.reserving.as_mut(), directory, latest) {
            reserving.look(directory, &telemetry);
        }
    }

    /// Samples of the collectors of `config`, with those of `others`, which are its own business.
    pub(in crate::command) fn gather(
        &mut self,
        config: &Config,
        requests: Vec<(u16, u64)>,
        others: Vec<Sample>,
    ) -> Gathered {
        let at = Instant::now();
        let census = self.census(config);
        let latest = self.sampler.as_ref().and_then(|sampler| sampler.latest());
        let telemetry = latest.filter(|telemetry| self.hardware.of(Some(telemetry)).is_some());
        telemetry.iter().for_each(|telemetry| self.gpus.note(telemetry));
        let mut samples = self.traced(config, census.as_ref());
        if let Some(telemetry) = telemetry.as_deref() {
            samples.extend(self.device_samples(telemetry));
        }
        if let Some(reserving) = self.reserving.as_mut() {
            samples.extend(reserving.samples(self.gpus.all(), config));
        }
        let faults = self.faults.iter();
        samples.extend(faults.flat_map(|faults| faults.xids().samples(telemetry.as_deref())));
        samples.extend(others);
        samples.extend(self.keeping.iter().flat_map(Keeping::samples));
        samples.extend(gather::own(&self.own(at, requests)));
        samples.retain(|sample| sample.metric.is_of(&config.collect));
        Gathered {
            at,
            census,
            telemetry,
            samples,
        }
    }

    fn census(&mut self, config: &Config) -> Option<Census> {
        let census = self.tracer.as_mut()?.census(config.top_kernels, config.retain);
        census
            .inspect_err(|error| say(format_args!("gpuscope: {error:#}")))
            .ok()
    }

    fn traced(&self, config: &Config, census: Option<&Census>) -> Vec<Sample> {
        let Some((census, tracer)) = census.zip(self.tracer.as_ref()) else {
            return Vec::new();
        };
        let traced = Traced {
            census,
            catalog: tracer.catalog(),
            gpus: self.gpus.all(),
        };
        let mut samples = traced.samples(&config.collect);
        samples.extend(gather::tracing(census));
        samples
    }

    fn device_samples(&mut self, telemetry: &Telemetry) -> Vec<Sample> {
        if let Some(directory) = self.directory.as_mut() {
            // nobody tells of ends where nothing is traced
            directory.sweep();
        }
        let traced = self.tracer.as_mut().and_then(Tracer::directory);
        let Some(directory) = traced.or(self.directory.as_mut()) else {
            return Vec::new();
        };
        let mut owner_of = |pid| directory.settled(pid);
        gather::device::samples(telemetry, Instant::now(), &mut owner_of)
    }

    fn own(&self, begun: Instant, requests: Vec<(u16, u64)>) -> Own {
        let (cpu_seconds, rss_bytes) = own_usage();
        Own {
            cpu_seconds,
            rss_bytes,
            open_fds: std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64),
            started_at: self.started_at,
            requests,
            gathered_at: clock_now().start_unix_ns as f64 / 1e9 - begun.elapsed().as_secs_f64(),
            gathered_in: begun.elapsed(),
        }
    }

    /// Whether NVML has been asked and has not said anything so far.
    pub(in crate::command) fn awaits_nvml(&self) -> bool {
        let sampler = self.sampler.as_ref();
        sampler.is_some_and(|sampler| sampler.latest().is_none())
    }

    /// Whether it has been found that the machine has no device.
    pub(in crate::command) fn has_no_device(&self) -> bool {
        self.hardware.is_none()
    }

    /// Xids that the kernel's log had when we came.
    pub(super) fn past_xids(&self) -> Option<usize> {
        self.faults.as_ref().map(Faults::past)
    }

    /// Why Xids are missing.
    pub(super) fn unseen_xids(&self) -> Vec<String> {
        let faults = self.faults.iter();
        faults
            .flat_map(|faults| faults.troubles(self.tracer.as_ref()))
            .collect()
    }

    /// Why something beside tracing does not work.
    pub(in crate::command) fn troubles(&mut self) -> Vec<String> {
        let directory = self.tracer.as_mut().and_then(Tracer::directory);
        let naming = directory.map(|directory| directory.trouble());
        let naming = naming.or_else(|| self.directory.as_ref().map(Directory::trouble));
        let of_tracer = |tracer: &Tracer| [tracer.stuck(), tracer.unguarded()].concat();
        let stuck = self.tracer.as_ref().map(of_tracer).unwrap_or_default();
        let naming = naming.into_iter().flatten();
        let reserving = self.reserving.iter().flat_map(Reserving::troubles);
        naming.chain(self.unseen_xids()).chain(reserving).chain(stuck).collect()
    }
}
