//! Where figures come from, as the configuration asks: probes, NVML, neither.

use super::reserving::Reserving;
use crate::command::prepare;
use crate::device::telemetry::Sampler;
use crate::filter::{Filter, Roles};
use crate::output::say;
use crate::owner::{Directory, Kubelet, Wanted};
use crate::probe;
use crate::refusal::Usage;
use crate::rows::{RunRows, Wish};
use crate::serve::carry::{self, Carry};
use crate::serve::config::Config;
use crate::serve::metric::{Collector, Sample};
#[cfg(feature = "otlp")]
use crate::serve::otlp;
use crate::serve::{Exchange, exposition, http};
use crate::tracer::{Scope, Tracer};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// For records of memory, and as much for those of work, that wait for their reader: ten thousand.
const RING: u32 = 2 << 20;
/// The same where their reader also has every call to take in.
const LONG_RING: u32 = 16 << 20;

/// Of calls that copy or wait, of all processes together.
const STACKS_PER_SECOND: u32 = 5000;

/// Starts what asks NVML; `None`: nobody wants to know.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn sampler(config: &Config) -> Result<Option<Arc<Sampler>>> {
    let wants = [Collector::Nvml, Collector::Reserved, Collector::Xid, Collector::Memory]
        .map(|collector| config.collect.contains(&collector));
    let state = state_folder();
    let start = || Sampler::remembering(config.nvml_interval, state.as_deref()).map(Sampler::share);
    wants.contains(&true).then(start).transpose()
}

/// What is kept over restarts; `None`: nothing is.
pub(super) fn state_folder() -> Option<PathBuf> {
    // as systemd names the folder that it makes for a service
    let state = std::env::var_os("STATE_DIRECTORY").filter(|folder| !folder.is_empty());
    state.map(PathBuf::from)
}

/// What the last gpuscope had counted, and since when. What cannot be read is said, and begins anew.
pub(super) fn carried(config: &Config) -> (Carry, SystemTime) {
    let taken = state_folder()
        .filter(|_| config.needs_probes())
        .map(|folder| carry::take(&folder, config.retain));
    let left = match taken.transpose() {
        Ok(left) => left.unwrap_or_default(),
        Err(error) => {
            say(format_args!("gpuscope: counters begin anew: {error:#}"));
            carry::Left::default()
        }
    };
    if left.not_understood > 0 {
        say(format_args!(
            "gpuscope: counters of the last run that begin anew: {}",
            left.not_understood
        ));
    }
    let since = left.since.unwrap_or_else(SystemTime::now);
    let collected = |sample: &Sample| config.collect.contains(&sample.metric.collector);
    let carry = Carry::from(left.samples.into_iter().filter(collected).collect());
    if carry.series() > 0 {
        say(format_args!(
            "gpuscope: counters go on from the last run: {} series",
            carry.series()
        ));
    }
    (carry, since)
}

/// Attaches what the collectors need, to the processes of `scope`.
///
/// # Errors
/// What the kernel refuses.
pub(super) fn tracer(
    config: &Config,
    directory: Directory,
    sampler: Option<&Arc<Sampler>>,
    scope: &Scope,
) -> Result<Tracer> {
    let mut catalog = prepare::catalog(&config.hooks)?;
    if config.collect.contains(&Collector::Driver) {
        catalog.add_driver(probe::driver::dialect()).map_err(Usage)?;
    }
    let rows = RunRows::new(catalog, filter(config)?, wish(config), prepare::SPARE_ROWS);
    let keeps = config.keep.time.is_some();
    let mut setup = prepare::fleet_setup(if keeps { LONG_RING } else { RING }, scope)?;
    setup.sites.stacks_per_second = match config.collect.contains(&Collector::Sites) {
        true => config.stacks_per_second.max(STACKS_PER_SECOND),
        false => config.stacks_per_second,
    };
    if keeps {
        setup.ring_bytes = prepare::CALL_RING as u32;
    }
    let mut tracer = Tracer::start(rows, setup, scope.clone(), || Ok(crate::output::Output::stdout()))?;
    tracer.follow_fleet(directory);
    if let Some(budget) = config.budget {
        tracer.keep_within(budget.of_one(), config.budget_except.clone());
    }
    if let Some(sampler) = sampler {
        tracer.devices_from(Arc::clone(sampler));
    }
    if let Some(reason) = probe::machine::returns_refused() {
        tracer.declare_unseen(format!("results, durations, memory and copies: {reason}"));
    }
    if follows_work(config) && !traces_driver(config) {
        let words = "copies and waits: they are seen in the driver, which --layer leaves out";
        tracer.declare_unseen(words.to_owned());
    }
    attach(&mut tracer, scope)?;
    Ok(tracer)
}

fn attach(tracer: &mut Tracer, scope: &Scope) -> Result<()> {
    match scope {
        Scope::All => {
            tracer.add_installed();
            tracer.add_running();
        }
        Scope::Processes(pids) => {
            tracer.add_family(pids)?;
            tracer.begin_counting();
        }
    }
    Ok(())
}

/// With the kernel driver's calls where these are counted.
fn filter(config: &Config) -> Result<Filter> {
    let filter = functions(config)?;
    Ok(match config.collect.contains(&Collector::Driver) {
        true => filter.with_ioctls(),
        false => filter,
    })
}

/// Every function where calls are counted by class, else those that the collectors follow.
fn functions(config: &Config) -> Result<Filter> {
    let collects = |collector| config.collect.contains(&collector);
    if collects(Collector::Getters) {
        return Filter::parse(&[], &config.layer);
    }
    if [Collector::Api, Collector::Buckets, Collector::Errors]
        .into_iter()
        .any(collects)
    {
        return Ok(Filter::parse(&[], &config.layer)?.without_getters());
    }
    let roles = Roles {
        memory: collects(Collector::Memory),
        work: follows_work(config),
        launches: collects(Collector::Launches),
        ioctls: false,
    };
    Filter::of_roles(roles, &config.layer)
}

/// Whether it is followed what GPUs are given to do.
fn follows_work(config: &Config) -> bool {
    [Collector::Copies, Collector::Sync, Collector::Sites]
        .into_iter()
        .any(|collector| config.collect.contains(&collector))
}

fn traces_driver(config: &Config) -> bool {
    config.layer.iter().any(|layer| layer == "driver" || layer == "all")
}

fn wish(config: &Config) -> Wish {
    let collects = |collector| config.collect.contains(&collector);
    let returns = probe::machine::returns_refused().is_none();
    let memory = returns && collects(Collector::Memory);
    let work = returns && traces_driver(config) && follows_work(config);
    Wish {
        events: config.keep.time.is_some(),
        chatty: false,
        returns,
        results: false,
        // what a copy's addresses stand for follows from it
        memory: memory || work,
        stacks: memory && config.stacks_per_second > 0,
        kernels: collects(Collector::Launches),
        work,
        launch_stacks: false,
        sync_stacks: work && collects(Collector::Sites),
    }
}

/// Where recordings go.
///
/// # Errors
/// Nobody has said where.
pub(super) fn keep_folder(config: &Config) -> Result<PathBuf> {
    let usual = || state_folder().map(|state| state.join("kept"));
    let words = "--keep: there is no folder for recordings\nhint: --keep-folder DIR, or $STATE_DIRECTORY";
    let folder = config.keep.folder.clone().or_else(usual);
    folder.ok_or_else(|| Usage(words.to_owned()).into())
}

/// Who asks schedulers what they have given away; `None`: nobody wants to know.
pub(super) fn reserving(config: &Config) -> Option<Reserving> {
    let wanted = config.collect.contains(&Collector::Reserved);
    wanted.then(|| Reserving::new(config.pod_resources.as_deref(), Path::new("/"), config.max_owners))
}

/// Who is counted for whom, on this machine.
///
/// # Errors
/// A label that does not exist, with those that do; the address of a kubelet that is none.
pub(super) fn directory(config: &Config) -> Result<Directory> {
    let mut directory = Directory::new(wanted(config)?, Path::new("/"));
    if let Some(url) = &config.kubelet {
        directory.ask_also(Some(Box::new(Kubelet::start(url)?)));
    }
    Ok(directory)
}

/// The labels of processes.
///
/// # Errors
/// One that does not exist, with those that do.
pub(super) fn wanted(config: &Config) -> Result<Wanted> {
    let labels = config.labels.iter().map(|text| text.parse());
    let labels = labels.collect::<Result<Vec<_>, _>>()?;
    Ok(Wanted::new(labels, config.max_owners)?)
}

/// What the web server is started with.
pub(super) fn web(config: &Config) -> http::Settings {
    http::Settings {
        listen: config.listen.clone(),
        health: config.health_listen.clone(),
        telemetry_path: config.telemetry_path.clone(),
        render: renderer(),
        web_config: config.web_config.clone(),
        notice: Box::new(|words| say(format_args!("gpuscope: {words}"))),
    }
}

/// Copies what has not changed since the last scrape.
fn renderer() -> Box<http::Render> {
    let kept = Mutex::new(exposition::Kept::default());
    Box::new(move |scrape, format| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.render(&scrape.samples, format)
    })
}

/// Starts what pushes metrics; `None`: nobody wants it.
///
/// # Errors
/// An address that is none, or no thread.
#[cfg(feature = "otlp")]
pub(super) fn pusher(config: &Config, exchange: &Arc<Exchange>, since: SystemTime) -> Result<Option<otlp::Pusher>> {
    let Some(to) = &config.otlp else { return Ok(None) };
    let settings = otlp::Settings {
        url: to.url.clone(),
        interval: to.interval,
        timeout: to.timeout,
        headers: to.headers.clone(),
        since,
    };
    let notice = Box::new(|words: &str| say(format_args!("gpuscope: {words}")));
    otlp::Pusher::start(&settings, Arc::clone(exchange), notice).map(Some)
}

/// A build without OTLP.
#[cfg(not(feature = "otlp"))]
pub(super) struct NoPusher;

#[cfg(not(feature = "otlp"))]
impl NoPusher {
    pub(super) fn samples(&self) -> Vec<crate::serve::metric::Sample> {
        Vec::new()
    }

    pub(super) fn trouble(&self) -> Option<String> {
        None
    }

    pub(super) fn begin_stop(&mut self) {}

    pub(super) fn stop(self) {}
}

/// Refuses what this build cannot do.
///
/// # Errors
/// Metrics are to be pushed.
#[cfg(not(feature = "otlp"))]
pub(super) fn pusher(config: &Config, _: &Arc<Exchange>, _: SystemTime) -> Result<Option<NoPusher>> {
    match config.otlp {
        None => Ok(None),
        Some(_) => anyhow::bail!(
            "--otlp: this build cannot push metrics\nhint: cargo build with the feature otlp, which is on by default"
        ),
    }
}
