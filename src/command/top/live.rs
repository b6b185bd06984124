//! Frames of what happens now.
//!
//! Owns what is gathered, with whose rights, and what is said where some of it is not seen.

use super::closeup;
use crate::cli::TopArgs;
use crate::command::rights;
use crate::command::running::Running;
use crate::command::serve::gatherer::{Gathered, Gatherer};
use crate::device::telemetry::{Sampler, Telemetry};
use crate::discover;
use crate::inside::standby::{self, Standby};
use crate::model::fleet::LongCall;
use crate::model::memory::Wanted;
use crate::owner::began;
use crate::probe::machine;
use crate::refusal;
use crate::serve::config::Config;
use crate::serve::display::Pace;
use crate::serve::metric::Collector;
use crate::serve::{Scrape, Status};
use crate::top::model::{self, Closeup, Frame, Known, OpenCall, Process};
use crate::top::origins::Origins;
use crate::tracer::{Census, Scope, Tracer};
use crate::user;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What processes are told apart by, and what is said of them.
const LABELS: [&str; 9] = [
    "pid",
    "comm",
    "cmdline",
    "env:RANK",
    "namespace",
    "pod",
    "container",
    "unit",
    "slurm_job",
];
/// Processes that have ended are shown for so long.
const RETAIN: Duration = Duration::from_secs(5);
/// NVML takes a while to answer.
const NVML_LEAST: Duration = Duration::from_secs(1);
/// Answers of NVML of which it is said how old they are.
const OLD: Duration = Duration::from_secs(10);
/// Said before anything else: of notes there may be room for one.
const OWN_ALONE: &str =
    "without root (sudo gpuscope top) your own programs that gpuscope preload -- CMD starts are traced";
/// Of a row of which no pace is known.
const LENT: &str = "is traced by one gpuscope at a time: while its calls are looked at, or a recording or report of it is made, its \
    row stands still, and then its memory counts anew";
/// Nobody ends a wait before its time.
const NO_BELL: i32 = -1;
/// Of one process.
const KERNELS: usize = 20;
/// Single allocations that are shown.
const SINGLE: usize = 1000;
/// Of calls that allocate or wait, of all processes together.
const STACKS_PER_SECOND: u32 = 5000;
/// How often it is looked for programs that carry the agent.
const SEEK: Duration = Duration::from_secs(2);

/// Which process is looked at closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Close {
    pub pid: u32,
    /// Its allocations one by one, those that are as old.
    pub older: Option<Duration>,
}

/// A process that others of ours trace.
struct Lent {
    /// What was known of it.
    row: Option<Process>,
    /// When it began: another one may have its number later.
    started: Option<u64>,
}

impl Lent {
    fn is_over(&self, pid: u32) -> bool {
        began(pid).is_none_or(|now| self.started != Some(now))
    }
}

/// Frames of what happens now.
pub(super) struct Live {
    gatherer: Gatherer,
    config: Config,
    pace: Pace,
    origins: Origins,
    /// Calls by function at the look before, of the process that was looked at closely.
    before: (u32, HashMap<String, u64>),
    looked: Instant,
    /// Shown are these and their children; empty: all.
    pids: Vec<u32>,
    /// Why not everything is traced.
    limits: Vec<String>,
    /// Programs that are traced from inside, where only those can be.
    inside: Option<HashSet<u32>>,
    sought: Instant,
    number: u64,
    /// Processes that others of ours trace meanwhile, with what was known of them.
    lent: BTreeMap<u32, Lent>,
    /// Those that are to be left to others, whether they were ours or not.
    wanted: BTreeSet<u32>,
    /// What was known of processes at the last look, where it may be wanted again.
    rows: Vec<Process>,
}

impl Live {
    /// Attaches as far as we may. `sampler` asks NVML.
    ///
    /// # Errors
    /// A process that was asked for is not there.
    pub(super) fn start(args: &TopArgs, sampler: &Asked) -> Result<Live> {
        let running = Running {
            pids: &args.pids,
            all: args.pids.is_empty(),
        };
        let scope = running.scope()?;
        let config = config(args);
        let attached = attached(config, &scope, sampler)?;
        if let Some(tracer) = &attached.0.tracer {
            rights::after_attaching(tracer);
        }
        Ok(Live::of(attached, args))
    }

    /// Without probes, as long as others attach them: what is known at once.
    ///
    /// # Errors
    /// None that anybody has met.
    pub(super) fn unattached(args: &TopArgs, sampler: &Asked) -> Result<Live> {
        let collect = [Collector::Nvml, Collector::Own].into();
        let config = Config {
            collect,
            ..config(args)
        };
        let gatherer = Gatherer::with(sampler.clone(), &config, &Scope::All)?;
        Ok(Live::of((gatherer, config, Vec::new(), None), args))
    }

    fn of((gatherer, config, limits, inside): Attached, args: &TopArgs) -> Live {
        Live {
            gatherer,
            config,
            pace: Pace::new(Instant::now()),
            origins: Origins::default(),
            before: (0, HashMap::new()),
            looked: Instant::now(),
            pids: args.pids.clone(),
            limits,
            inside,
            sought: Instant::now(),
            number: 0,
            lent: BTreeMap::new(),
            wanted: BTreeSet::new(),
            rows: Vec::new(),
        }
    }

    /// Handles what has come in, and waits for a moment.
    ///
    /// # Errors
    /// None that would end it.
    pub(super) fn step(&mut self) -> Result<()> {
        self.seek();
        self.gatherer.step(NO_BELL)
    }

    /// Leaves `wanted` to others of ours, where a process is traced by one of us at a time, and takes back what they have done with.
    /// Whether that is so.
    pub(super) fn lend(&mut self, wanted: &BTreeSet<u32>) -> bool {
        let before = std::mem::replace(&mut self.wanted, wanted.clone());
        let tracer = self.gatherer.tracer.as_mut().filter(|tracer| tracer.traces_alone());
        let Some(tracer) = tracer else { return false };
        before.difference(wanted).for_each(|pid| tracer.take_again(*pid));
        for pid in wanted {
            if !self.lent.contains_key(pid) && tracer.leave_to_others(*pid) {
                let row = self.rows.iter().find(|process| process.pid == *pid).cloned();
                let started = began(*pid);
                self.lent.insert(*pid, Lent { row, started });
            }
        }
        let mut is_back = |pid: u32| !tracer.is_leaving(pid) && tracer.add_process(pid).is_ok();
        // who has it still has to leave first: then it is tried again
        self.lent
            .retain(|pid, lent| !lent.is_over(*pid) && (wanted.contains(pid) || !is_back(*pid)));
        true
    }

    /// Everything as it is now, with a close look at one process.
    pub(super) fn look(&mut self, close: Option<Close>) -> Frame {
        let gathered = self.gatherer.gather(&self.config, Vec::new(), Vec::new());
        self.number += 1;
        let missing = self.missing(&gathered);
        let scrape = Scrape {
            at: gathered.at,
            number: self.number,
            samples: gathered.samples,
            status: Status {
                missing,
                ..Status::default()
            },
        };
        let open = gathered.census.map(open_calls).unwrap_or_default();
        self.frame(&scrape, open, close)
    }

    /// What is not seen, and why.
    fn missing(&mut self, gathered: &Gathered) -> Vec<String> {
        let mut missing = self.limits.clone();
        missing.extend(gathered.census.iter().flat_map(|census| census.unseen.iter().cloned()));
        missing.extend(self.gatherer.troubles());
        if self.gatherer.has_no_device() {
            missing.push("this machine shows no NVIDIA device".to_owned());
        }
        if self.gatherer.awaits_nvml() {
            missing.push("NVML has not answered yet: nothing is known of devices".to_owned());
        }
        if let Some(telemetry) = gathered.telemetry.as_deref() {
            let absent = telemetry.absent.iter();
            missing.extend(absent.map(|absent| absent.to_string().replace('\n', "; ")));
            missing.extend(old(telemetry));
            missing.extend(telemetry.notes.iter().cloned());
        }
        missing
    }

    fn frame(&mut self, scrape: &Scrape, open: HashMap<u32, OpenCall>, close: Option<Close>) -> Frame {
        let owners = scrape.samples.iter().filter_map(|sample| sample.owner.as_deref());
        let pids: HashSet<u32> = owners.map(model::pid_of).filter(|pid| *pid > 0).collect();
        self.origins.look_at(pids.into_iter());
        let closeup = close.and_then(|close| self.closeup(close));
        let rates = self.pace.rates(scrape);
        let from_outside = self.gatherer.tracer.is_some() && self.inside.is_none();
        let mut frame = model::frame(Known {
            scrape,
            rates: &rates,
            origins: &self.origins,
            at: crate::clock::clock_now().start_unix_ns as f64 / 1e9,
            traces_all: from_outside && self.pids.is_empty(),
            traces: if from_outside { &self.pids } else { &[] },
            closeup,
            open,
        });
        frame.partial = self.gatherer.tracer.is_none() || self.inside.is_some();
        self.keep_lent(&mut frame);
        if !self.pids.is_empty() {
            let is_wanted = |pid: &u32| self.pids.contains(pid);
            frame
                .processes
                .retain(|process| is_wanted(&process.pid) || process.ancestors.iter().any(is_wanted));
        }
        frame
    }

    /// Rows of processes that others trace stand still.
    fn keep_lent(&mut self, frame: &mut Frame) {
        for (pid, lent) in &self.lent {
            let place = frame.processes.iter().position(|process| process.pid == *pid);
            let now = place.map(|place| frame.processes.remove(place));
            let row = lent.row.clone().or_else(|| now.clone());
            frame.processes.extend(row.map(|row| row.lent(now)));
            frame.notes.insert(0, format!("process {pid} {LENT}"));
            // what it gives them and takes of them is not seen
            for device in &mut frame.devices {
                (device.busy_at_most, device.tracked_bytes, device.unattributed_bytes) = (None, None, None);
            }
        }
        if self.gatherer.tracer.as_ref().is_some_and(Tracer::traces_alone) {
            self.rows.clone_from(&frame.processes);
        }
    }

    fn closeup(&mut self, close: Close) -> Option<Closeup> {
        let pid = close.pid;
        let wanted = close.older.map(|older| Wanted {
            older_ns: u64::try_from(older.as_nanos()).unwrap_or(u64::MAX),
            most: SINGLE,
        });
        let seen = self.gatherer.tracer.as_mut()?.closeup(pid, wanted).ok()?;
        let seconds = self.looked.elapsed().as_secs_f64();
        let before = (self.before.0 == pid).then(|| std::mem::take(&mut self.before.1));
        self.looked = Instant::now();
        let calls = seen.functions.iter().map(|one| (one.name.clone(), one.calls));
        self.before = (pid, calls.collect());
        Some(closeup::told(pid, seen, before.as_ref(), seconds))
    }

    /// Programs of ours that carry the agent and were not known yet.
    fn seek(&mut self) {
        let Some(known) = self.inside.as_mut().filter(|_| self.sought.elapsed() >= SEEK) else {
            return;
        };
        self.sought = Instant::now();
        // their numbers may come again
        known.retain(|pid| !discover::has_ended(*pid));
        let Some(tracer) = self.gatherer.tracer.as_mut() else {
            return;
        };
        for pid in carriers().into_iter().filter(|pid| !self.wanted.contains(pid)) {
            // one that cannot be woken is not asked again
            if known.insert(pid) {
                drop(tracer.add_process(pid));
            }
        }
    }
}

/// Who asks NVML, from before anything is attached.
pub(super) fn sampler(args: &TopArgs) -> Result<Asked> {
    Gatherer::sampler(&config(args))
}

/// Of each process the call that has not returned for longest.
fn open_calls(census: Census) -> HashMap<u32, OpenCall> {
    let told = |(pid, call): (u32, LongCall)| {
        let open = OpenCall {
            function: call.function,
            seconds: call.ns as f64 / 1e9,
        };
        (pid, open)
    };
    census.long_calls.into_iter().map(told).collect()
}

fn config(args: &TopArgs) -> Config {
    let mut usual = Config::default();
    // of what nobody uses there is no line
    usual.collect.remove(&Collector::Reserved);
    // these know how many calls were timed, which a mean needs
    usual.collect.insert(Collector::Buckets);
    usual.collect.insert(Collector::Sites);
    Config {
        labels: LABELS.map(str::to_owned).to_vec(),
        nvml_interval: args.delay.max(NVML_LEAST),
        retain: RETAIN,
        top_kernels: KERNELS,
        stacks_per_second: STACKS_PER_SECOND,
        ..usual
    }
}

/// Who asks NVML; `None`: nobody wants to know.
pub(super) type Asked = Option<Arc<Sampler>>;
type Attached = (Gatherer, Config, Vec<String>, Option<HashSet<u32>>);

/// From outside where we may, else from inside what carries the agent; else nothing is traced.
fn attached(config: Config, scope: &Scope, sampler: &Asked) -> Result<Attached> {
    let start = |config: &Config, scope: &Scope| Gatherer::with(sampler.clone(), config, scope);
    let refused = match start(&config, scope) {
        Ok(gatherer) => return Ok((gatherer, config, Vec::new(), None)),
        Err(refused) => refusal::message(&refused).replace('\n', "; "),
    };
    if machine::programs_refused().is_some() && *scope == Scope::All {
        let own = carriers();
        let inside = start(&config, &Scope::Processes(own.clone()));
        if let Ok(gatherer) = inside {
            let words = format!("{OWN_ALONE}, of all others only what NVML says is seen ({refused})");
            return Ok((gatherer, config, vec![words], Some(own.into_iter().collect())));
        }
    }
    let collect = [Collector::Nvml, Collector::Xid, Collector::Own].into();
    let untraced = Config { collect, ..config };
    let gatherer = start(&untraced, scope)?;
    let words =
        format!("nothing is traced, only what NVML says is seen; sudo gpuscope top traces every process ({refused})");
    Ok((gatherer, untraced, vec![words], None))
}

/// What is said of answers that nobody gives any more.
fn old(telemetry: &Telemetry) -> Option<String> {
    let age = telemetry.at.elapsed();
    let words = "NVML does not answer: what it said of devices is";
    (age >= OLD.max(3 * telemetry.every)).then(|| format!("{words} {} s old", age.as_secs()))
}

/// Our processes that can be traced from inside.
fn carriers() -> Vec<u32> {
    let own = user::effective();
    let is_ours = |pid: &u32| std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|folder| folder.uid() == own);
    let ours = discover::processes().into_iter().filter(is_ours);
    ours.filter(|pid| standby::of(*pid) == Standby::Ready).collect()
}
