//! The running exporter: gathers when somebody asks.

use super::display::Display;
use super::gatherer::{Gathered, Gatherer};
use super::sources;
use super::status::Known;
use crate::cli::ServeArgs;
use crate::confine::{self, Capability, Keep};
use crate::output::{file, say};
use crate::probe;
use crate::refusal;
use crate::serve::carry::{self, Carry};
use crate::serve::config::{self, Config};
use crate::serve::gather;
use crate::serve::http::Server;
use crate::serve::limit::Limit;
use crate::serve::{Doing, Exchange, Scrape};
use crate::tracer::{Scope, Tracer};
use anyhow::Result;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

#[cfg(feature = "otlp")]
type Pusher = crate::serve::otlp::Pusher;
#[cfg(not(feature = "otlp"))]
type Pusher = super::sources::NoPusher;

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

/// The running exporter.
pub(super) struct Exporter {
    config: Config,
    exchange: Arc<Exchange>,
    server: Server,
    gatherer: Gatherer,
    pusher: Option<Pusher>,
    display: Option<Display>,
    limit: Limit,
    carry: Carry,
    /// Since when counters count.
    since: SystemTime,
    started: Instant,
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
        if config.keep.time.is_some() {
            file::create_folder(&sources::keep_folder(&config)?)?;
        }
        let server = Server::start(sources::web(&config), Arc::clone(&exchange))?;
        let mut gatherer = gatherer(&config)?;
        if let Some(tracer) = gatherer.tracer.as_mut() {
            tracer.listen_to(exchange.bell());
        }
        let (carry, since) = sources::carried(&config);
        Ok(Exporter {
            pusher: sources::pusher(&config, &exchange, since)?,
            carry,
            since,
            display: config.display_interval.map(Display::new).transpose()?,
            limit: Limit::new(config.max_series),
            config,
            exchange,
            server,
            gatherer,
            started: Instant::now(),
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
        if let Some(tracer) = &self.gatherer.tracer {
            let (functions, tier) = (tracer.functions(), tracer.tier());
            match functions {
                0 => {
                    say("gpuscope: no CUDA library is installed or mapped yet; those that programs map are hooked then")
                }
                _ => say(format_args!("gpuscope: tracing {functions} functions by {tier}")),
            }
            if !Capability::SysPtrace.is_held() {
                say(
                    "gpuscope: programs of other users, and those with more rights, are not seen; hint: sudo, or CAP_SYS_PTRACE \
                     and CAP_DAC_READ_SEARCH",
                );
            }
        }
        for trouble in self.gatherer.unseen_xids() {
            say(format_args!("gpuscope: {trouble}"));
        }
        if let Some(past) = self.gatherer.past_xids().filter(|past| *past > 0) {
            say(format_args!(
                "gpuscope: Xids since the boot in the kernel's log: {past}; gpuscope doctor lists them"
            ));
        }
        tell(&[NotifyState::Ready]);
    }

    /// Gives up what is not needed from here on: attaching to what comes, and looking into processes, goes on for ever.
    pub(super) fn confine(&self) {
        confine::this_thread(Keep::Capabilities(match &self.gatherer.tracer {
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
        self.gatherer.step(self.exchange.bell())?;
        self.gatherer.keep(&self.exchange.asks);
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
        let display = new.display_interval.map(Display::new).transpose()?;
        self.server.protect(new.web_config.as_deref())?;
        if new.otlp != self.config.otlp {
            let pusher = sources::pusher(&new, &self.exchange, self.since)?;
            if let Some(old) = std::mem::replace(&mut self.pusher, pusher) {
                old.stop();
            }
        }
        if let Some(directory) = self.gatherer.tracer.as_mut().and_then(Tracer::directory) {
            directory.want(wanted);
        } else if let Some(directory) = self.gatherer.directory.as_mut() {
            directory.want(wanted);
        }
        self.limit.set(new.max_series);
        if new.display_interval != self.config.display_interval {
            self.display = display;
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
        self.leave_counters();
        self.server.begin_stop();
        if let Some(pusher) = self.pusher.as_mut() {
            pusher.begin_stop();
        }
        drop(self.gatherer.tracer.take());
        if let Some(pusher) = self.pusher {
            pusher.stop();
        }
        self.server.stop();
    }

    /// For the next gpuscope: what is told from now on is what it goes on from.
    fn leave_counters(&mut self) {
        let Some(folder) = sources::state_folder() else { return };
        let known = self.known();
        let traced = known.census.is_some();
        let left = traced.then(|| carry::write(&folder, &known.samples, self.since));
        self.publish(known);
        if let Some(Err(error)) = left {
            say(format_args!(
                "gpuscope: counters will begin anew: {}",
                refusal::message(&error)
            ));
        }
    }

    /// Everything, with what was counted before.
    fn known(&mut self) -> Gathered {
        let others = self.pusher.iter().flat_map(Pusher::samples).collect();
        let mut known = self.gatherer.gather(&self.config, self.server.requests(), others);
        if known.census.is_some() {
            self.carry
                .add_to(&mut known.samples, self.config.retain, Instant::now());
        }
        known
    }

    fn gather(&mut self) {
        let known = self.known();
        self.publish(known);
    }

    fn publish(&mut self, mut known: Gathered) {
        if let Some((census, tracer)) = known.census.as_ref().zip(self.gatherer.tracer.as_ref()) {
            gather::leave_out_unseen(&mut known.samples, census, tracer.catalog());
        }
        self.limit.apply(&mut known.samples);
        self.number += 1;
        let troubles = self.troubles();
        let status = Known {
            config: &self.config,
            running: self.started.elapsed(),
            tier: self.gatherer.tracer.as_ref().map(Tracer::tier),
            census: known.census.as_ref(),
            telemetry: known.telemetry.as_deref(),
            no_device: self.gatherer.has_no_device(),
            troubles,
        };
        self.exchange.publish(Scrape {
            at: known.at,
            number: self.number,
            status: status.status(),
            samples: known.samples,
        });
    }

    fn troubles(&mut self) -> Vec<String> {
        let pushing = self.pusher.as_ref().and_then(Pusher::trouble);
        pushing.into_iter().chain(self.gatherer.troubles()).collect()
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

/// Everything that the collectors ask for, of the whole machine.
///
/// # Errors
/// What the kernel refuses, with the cure.
fn gatherer(config: &Config) -> Result<Gatherer> {
    const HINT: &str = "failed to attach\nhint: gpuscope doctor says more; --collect nvml,xid,self needs no probes";
    let started = Gatherer::start(config, &Scope::All);
    match config.needs_probes() {
        true => started.map_err(|error| error.context(HINT)),
        false => started,
    }
}
