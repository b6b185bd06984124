//! The running exporter: gathers when somebody asks.

use super::display::Display;
use super::faults::Faults;
use super::hardware::Hardware;
use super::sources;
use super::status::Known;
use crate::cli::ServeArgs;
use crate::clock::clock_now;
use crate::confine::{self, Capability, Keep};
use crate::device::telemetry::{Sampler, Telemetry};
use crate::output::say;
use crate::owner::Directory;
use crate::probe;
use crate::refusal;
use crate::serve::config::{self, Config};
use crate::serve::gather::{self, Own, Traced};
use crate::serve::http::Server;
use crate::serve::limit::Limit;
use crate::serve::metric::{Collector, Sample};
use crate::serve::{Doing, Exchange, Scrape};
use crate::tracer::{Census, Tracer, own_usage};
use anyhow::Result;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "otlp")]
type Pusher = crate::serve::otlp::Pusher;
#[cfg(not(feature = "otlp"))]
type Pusher = super::sources::NoPusher;

/// Without probes there is nothing to be followed between two questions.
const IDLE: Duration = Duration::from_millis(500);
/// How often a supervisor is told that we live.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// For names of owners: environments and roots of others' processes, files of container runtimes; the web config.
const NAMES: &[Capability] = &[Capability::SysPtrace, Capability::DacReadSearch];
/// And to attach to files that programs map later, and to let go of them before they are overwritten.
const ATTACHING: &[Capability] = &[
    Capability::SysPtrace,
    Capability::DacReadSearch,
    Capability::Bpf,
    Capability::Perfmon,
    Capability::Lease,
    Capability::CheckpointRestore,
];
/// And where that takes perf events, one for each probe: kernels that restrict these want the first, old ones the other.
const SINGLE_EVENTS: &[Capability] = &[
    Capability::SysPtrace,
    Capability::DacReadSearch,
    Capability::Bpf,
    Capability::Perfmon,
    Capability::Lease,
    Capability::CheckpointRestore,
    Capability::SysAdmin,
    Capability::SysResource,
];

/// See the module.
pub(super) struct Exporter {
    config: Config,
    exchange: Arc<Exchange>,
    server: Server,
    sampler: Option<Arc<Sampler>>,
    hardware: Hardware,
    tracer: Option<Tracer>,
    /// `None`: nobody wants to know of Xids.
    faults: Option<Faults>,
    /// Of processes that are not traced, where none is.
    directory: Option<Directory>,
    pusher: Option<Pusher>,
    display: Option<Display>,
    limit: Limit,
    started: Instant,
    /// Seconds since 1970.
    started_at: f64,
    /// Of the last scrape.
    number: u64,
    reported: Instant,
}

impl Exporter {
    /// Listens first, so that an address in use is told before anything is attached.
    ///
    /// # Errors
    /// The address, the web configuration, or what the kernel refuses.
    pub(super) fn start(config: Config, exchange: Arc<Exchange>, verbose: bool) -> Result<Exporter> {
        probe::route_messages(verbose);
        let server = Server::start(sources::web(&config), Arc::clone(&exchange))?;
        let sampler = sources::sampler(&config)?;
        let mut directory = Some(sources::directory(&config)?);
        let mut tracer = None;
        if let Some(directory) = directory.take_if(|_| config.needs_probes()) {
            tracer = Some(sources::tracer(&config, directory, sampler.as_ref())?);
        }
        if let Some(tracer) = tracer.as_mut() {
            tracer.listen_to(exchange.bell());
        }
        let watch = || Faults::watch(tracer.as_mut());
        let faults = config.collect.contains(&Collector::Xid).then(watch).transpose()?;
        Ok(Exporter {
            faults,
            pusher: sources::pusher(&config, &exchange)?,
            display: config.display_interval.map(Display::new),
            limit: Limit::new(config.max_series),
            config,
            exchange,
            server,
            sampler,
            hardware: Hardware::default(),
            tracer,
            directory,
            started: Instant::now(),
            started_at: clock_now().start_unix_ns as f64 / 1e9,
            number: 0,
            reported: Instant::now(),
        })
    }

    /// Says where it serves what, to people and to a supervisor.
    pub(super) fn greet(&self) {
        for warning in self.server.warnings() {
            say(format_args!("gpuscope: {warning}"));
        }
        let scheme = self.server.scheme();
        for address in self.server.addresses() {
            let path = &self.config.telemetry_path;
            say(format_args!(
                "gpuscope: serving {scheme}://{address}{path}; Ctrl-C ends it"
            ));
        }
        for address in self.server.health_addresses() {
            say(format_args!("gpuscope: health alone at http://{address}/healthz"));
        }
        if let Some(tracer) = &self.tracer {
            let (functions, tier) = (tracer.functions(), tracer.tier());
            match functions {
                0 => {
                    say("gpuscope: no CUDA library is installed or mapped yet; those that programs map are hooked then")
                }
                _ => say(format_args!("gpuscope: tracing {functions} functions by {tier}")),
            }
        }
        let troubles = self
            .faults
            .iter()
            .flat_map(|faults| faults.troubles(self.tracer.as_ref()));
        troubles.for_each(|trouble| say(format_args!("gpuscope: {trouble}")));
        if let Some(past) = self.faults.as_ref().map(Faults::past).filter(|past| *past > 0) {
            say(format_args!(
                "gpuscope: Xids since the boot in the kernel's log: {past}; gpuscope doctor lists them"
            ));
        }
        tell(&[NotifyState::Ready]);
    }

    /// Gives up what is not needed from here on: attaching to what comes, and looking into processes, goes on for ever.
    pub(super) fn confine(&self) {
        confine::this_thread(Keep::Capabilities(match &self.tracer {
            None => NAMES,
            Some(tracer) if tracer.makes_single_events() => SINGLE_EVENTS,
            Some(_) => ATTACHING,
        }));
    }

    /// Handles what has come in, and gathers if somebody has asked.
    ///
    /// # Errors
    /// None that would end it.
    pub(super) fn step(&mut self) -> Result<()> {
        self.exchange.heart.beat(Doing::Following);
        match self.tracer.as_mut() {
            Some(tracer) => tracer.step()?,
            None => probe::wait_for(self.exchange.bell(), IDLE),
        }
        if let Some(faults) = self.faults.as_mut() {
            faults.take_in(self.tracer.as_mut(), self.directory.as_mut());
        }
        let shows = self.display.as_mut().is_some_and(Display::is_due);
        if self.exchange.take_wish() || shows {
            self.exchange.heart.beat(Doing::Gathering);
            self.gather();
        }
        if let (true, Some(display)) = (shows, self.display.as_mut()) {
            self.exchange.heart.beat(Doing::Showing);
            display.show(&self.exchange.latest());
        }
        if self.reported.elapsed() >= SIGN_OF_LIFE {
            self.reported = Instant::now();
            tell(&[NotifyState::Watchdog]);
        }
        Ok(())
    }

    /// Reads the configuration again; a wrong one changes nothing.
    pub(super) fn reload(&mut self, args: &ServeArgs) {
        self.exchange.heart.beat(Doing::Reloading);
        tell(&reloading());
        let applied = config::check(args).and_then(|new| self.apply(new));
        match applied {
            Ok(()) => say("gpuscope: the configuration was read again"),
            Err(error) => {
                let words = refusal::message(&error);
                say(format_args!("gpuscope: the configuration stays as it was: {words}"));
            }
        }
        tell(&[NotifyState::Ready]);
    }

    fn apply(&mut self, new: Config) -> Result<()> {
        let restart = self.config.changes_that_need_a_restart(&new);
        let new = self.config.reloaded(new);
        let wanted = sources::wanted(&new)?;
        self.server.protect(new.web_config.as_deref())?;
        if new.otlp != self.config.otlp {
            let pusher = sources::pusher(&new, &self.exchange)?;
            if let Some(old) = std::mem::replace(&mut self.pusher, pusher) {
                old.stop();
            }
        }
        if let Some(directory) = self.tracer.as_mut().and_then(Tracer::directory) {
            directory.want(wanted);
        } else if let Some(directory) = self.directory.as_mut() {
            directory.want(wanted);
        }
        self.limit.set(new.max_series);
        if new.display_interval != self.config.display_interval {
            self.display = new.display_interval.map(Display::new);
        }
        self.config = new;
        for words in restart {
            say(format_args!("gpuscope: {words}"));
        }
        Ok(())
    }

    /// Answers who has asked, and pushes what is known, while it lets go of what was attached.
    pub(super) fn stop(mut self) {
        self.exchange.heart.beat(Doing::Stopping);
        tell(&[NotifyState::Stopping]);
        self.server.begin_stop();
        if let Some(pusher) = self.pusher.as_mut() {
            pusher.begin_stop();
        }
        drop(self.tracer.take());
        if let Some(pusher) = self.pusher {
            pusher.stop();
        }
        self.server.stop();
    }

    fn gather(&mut self) {
        let begun = Instant::now();
        let census = self.census();
        let telemetry = self.sampler.as_ref().and_then(|sampler| sampler.latest());
        let telemetry = self.hardware.of(telemetry.as_deref());
        let mut samples = self.samples(census.as_ref(), telemetry, begun);
        self.limit.apply(&mut samples);
        self.number += 1;
        let troubles = self.troubles();
        let known = Known {
            config: &self.config,
            running: self.started.elapsed(),
            tier: self.tracer.as_ref().map(Tracer::tier),
            census: census.as_ref(),
            telemetry,
            no_device: self.hardware.is_none(),
            troubles,
        };
        self.exchange.publish(Scrape {
            at: begun,
            number: self.number,
            samples,
            status: known.status(),
        });
    }

    fn census(&mut self) -> Option<Census> {
        let tracer = self.tracer.as_mut()?;
        let census = tracer.census(self.config.top_kernels, self.config.retain);
        census
            .inspect_err(|error| say(format_args!("gpuscope: {error:#}")))
            .ok()
    }

    fn samples(&mut self, census: Option<&Census>, telemetry: Option<&Telemetry>, begun: Instant) -> Vec<Sample> {
        let mut samples = Vec::new();
        if let (Some(census), Some(tracer)) = (census, &self.tracer) {
            let traced = Traced {
                census,
                catalog: tracer.catalog(),
                gpus: &telemetry.map(gather::gpus).unwrap_or_default(),
            };
            samples.extend(traced.samples(&self.config.collect));
            samples.extend(gather::tracing(census));
        }
        if let Some(telemetry) = telemetry {
            samples.extend(self.device_samples(telemetry));
        }
        samples.extend(self.faults.iter().flat_map(|faults| faults.xids().samples(telemetry)));
        samples.extend(self.pusher.iter().flat_map(Pusher::samples));
        samples.extend(gather::own(&self.own(begun)));
        samples.retain(|sample| self.config.collect.contains(&sample.metric.collector));
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

    fn own(&self, begun: Instant) -> Own {
        let (cpu_seconds, rss_bytes) = own_usage();
        Own {
            cpu_seconds,
            rss_bytes,
            open_fds: std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64),
            started_at: self.started_at,
            requests: self.server.requests(),
            gathered_at: clock_now().start_unix_ns as f64 / 1e9 - begun.elapsed().as_secs_f64(),
            gathered_in: begun.elapsed(),
        }
    }

    fn troubles(&mut self) -> Vec<String> {
        let pushing = self.pusher.as_ref().and_then(Pusher::trouble);
        let directory = self.tracer.as_mut().and_then(Tracer::directory);
        let naming = directory.map(|directory| directory.trouble());
        let naming = naming.or_else(|| self.directory.as_ref().map(Directory::trouble));
        let faults = self
            .faults
            .iter()
            .flat_map(|faults| faults.troubles(self.tracer.as_ref()));
        let of_tracer = |tracer: &Tracer| [tracer.stuck(), tracer.unguarded()].concat();
        let stuck = self.tracer.as_ref().map(of_tracer).unwrap_or_default();
        let others = pushing.into_iter().chain(naming.flatten()).chain(faults);
        others.chain(stuck).collect()
    }
}

/// Tells systemd, where it has started us.
fn tell(states: &[NotifyState]) {
    // without a supervisor there is nobody to be told
    let _ = sd_notify::notify(states);
}

fn reloading() -> Vec<NotifyState<'static>> {
    let now = NotifyState::monotonic_usec_now().ok();
    std::iter::once(NotifyState::Reloading).chain(now).collect()
}
