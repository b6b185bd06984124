//! Frames of what happens now.
//!
//! Owns what is gathered, with whose rights, and what is said where some of it is not seen.

use crate::cli::TopArgs;
use crate::command::rights;
use crate::command::running::Running;
use crate::command::serve::gatherer::Gatherer;
use crate::discover;
use crate::inside::standby::{self, Standby};
use crate::model::memory::{Allocation, AllocationMap, SiteReport, Wanted};
use crate::probe::machine;
use crate::refusal;
use crate::serve::config::Config;
use crate::serve::display::Pace;
use crate::serve::metric::Collector;
use crate::serve::{Scrape, Status};
use crate::top::model::{self, Allocations, Closeup, Count, Frame, Function, InProgress, Known, Single};
use crate::top::origins::Origins;
use crate::tracer::{self, Scope};
use crate::user;
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
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
/// Nobody ends a wait before its time.
const NO_BELL: i32 = -1;
/// Of one process.
const KERNELS: usize = 20;
/// Single allocations that are shown.
const SINGLE: usize = 1000;
/// Of calls that allocate, of all processes together.
const STACKS_PER_SECOND: u32 = 1000;
/// How often it is looked for programs that carry the agent.
const SEEK: Duration = Duration::from_secs(2);

/// Which process is looked at closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Close {
    pub pid: u32,
    /// Its allocations one by one, those that are as old.
    pub older: Option<Duration>,
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
}

impl Live {
    /// Attaches as far as we may.
    ///
    /// # Errors
    /// A process that was asked for is not there.
    pub(super) fn start(args: &TopArgs) -> Result<Live> {
        let running = Running {
            pids: &args.pids,
            all: args.pids.is_empty(),
        };
        let scope = running.scope()?;
        let config = config(args);
        let (gatherer, config, limits, inside) = attached(config, &scope)?;
        if let Some(tracer) = &gatherer.tracer {
            rights::after_attaching(tracer);
        }
        Ok(Live {
            gatherer,
            config,
            pace: Pace::of_all_counters(Instant::now()),
            origins: Origins::default(),
            before: (0, HashMap::new()),
            looked: Instant::now(),
            pids: args.pids.clone(),
            limits,
            inside,
            sought: Instant::now(),
            number: 0,
        })
    }

    /// Handles what has come in, and waits for a moment.
    ///
    /// # Errors
    /// None that would end it.
    pub(super) fn step(&mut self) -> Result<()> {
        self.seek();
        self.gatherer.step(NO_BELL)
    }

    /// Everything as it is now, with a close look at one process.
    pub(super) fn look(&mut self, close: Option<Close>) -> Frame {
        let gathered = self.gatherer.gather(&self.config, Vec::new(), Vec::new());
        self.number += 1;
        let mut missing = self.limits.clone();
        missing.extend(gathered.census.iter().flat_map(|census| census.unseen.iter().cloned()));
        missing.extend(self.gatherer.troubles());
        if self.gatherer.has_no_device() {
            missing.push("this machine shows no NVIDIA device".to_owned());
        }
        if let Some(telemetry) = gathered.telemetry.as_deref() {
            missing.extend(
                telemetry
                    .absent
                    .iter()
                    .map(|absent| absent.to_string().replace('\n', "; ")),
            );
            missing.extend(telemetry.notes.iter().cloned());
        }
        let scrape = Scrape {
            at: gathered.at,
            number: self.number,
            samples: gathered.samples,
            status: Status {
                missing,
                ..Status::default()
            },
        };
        self.frame(&scrape, close)
    }

    fn frame(&mut self, scrape: &Scrape, close: Option<Close>) -> Frame {
        let rates = self.pace.rates(scrape);
        let owners = scrape.samples.iter().filter_map(|sample| sample.owner.as_deref());
        let pids: HashSet<u32> = owners.map(model::pid_of).filter(|pid| *pid > 0).collect();
        self.origins.look_at(pids.into_iter());
        let closeup = close.and_then(|close| self.closeup(close));
        let mut frame = model::frame(Known {
            scrape,
            rates: &rates,
            origins: &self.origins,
            at: crate::clock::clock_now().start_unix_ns as f64 / 1e9,
            traces_all: self.gatherer.tracer.is_some() && self.inside.is_none() && self.pids.is_empty(),
            closeup,
        });
        if !self.pids.is_empty() {
            let is_wanted = |pid: &u32| self.pids.contains(pid);
            frame
                .processes
                .retain(|process| is_wanted(&process.pid) || process.ancestors.iter().any(is_wanted));
        }
        frame
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
        Some(told(pid, seen, before.as_ref(), seconds))
    }

    /// Programs of ours that carry the agent and were not known yet.
    fn seek(&mut self) {
        let Some(known) = self.inside.as_mut().filter(|_| self.sought.elapsed() >= SEEK) else {
            return;
        };
        self.sought = Instant::now();
        let Some(tracer) = self.gatherer.tracer.as_mut() else {
            return;
        };
        for pid in carriers() {
            // one that cannot be woken is not asked again
            if known.insert(pid) {
                drop(tracer.add_process(pid));
            }
        }
    }
}

fn config(args: &TopArgs) -> Config {
    let usual = Config::default();
    Config {
        labels: LABELS.map(str::to_owned).to_vec(),
        nvml_interval: args.delay.max(NVML_LEAST),
        retain: RETAIN,
        top_kernels: KERNELS,
        stacks_per_second: STACKS_PER_SECOND,
        ..usual
    }
}

type Attached = (Gatherer, Config, Vec<String>, Option<HashSet<u32>>);

/// From outside where we may, else from inside what carries the agent; else nothing is traced.
fn attached(config: Config, scope: &Scope) -> Result<Attached> {
    let refused = match Gatherer::start(&config, scope) {
        Ok(gatherer) => return Ok((gatherer, config, Vec::new(), None)),
        Err(refused) => refusal::message(&refused).replace('\n', "; "),
    };
    let hint = "as root every process is traced; without, your own that gpuscope preload -- CMD has started";
    if machine::programs_refused().is_some() && *scope == Scope::All {
        let own = carriers();
        let inside = Gatherer::start(&config, &Scope::Processes(own.clone()));
        if let Ok(gatherer) = inside {
            let words = format!("of others' processes only what NVML says is seen: {refused}; hint: {hint}");
            return Ok((gatherer, config, vec![words], Some(own.into_iter().collect())));
        }
    }
    let collect = [Collector::Nvml, Collector::Xid, Collector::Own].into();
    let untraced = Config { collect, ..config };
    let gatherer = Gatherer::start(&untraced, scope)?;
    let words = format!("nothing is traced, only what NVML says is seen: {refused}; hint: {hint}");
    Ok((gatherer, untraced, vec![words], None))
}

/// Our processes that can be traced from inside.
fn carriers() -> Vec<u32> {
    let own = user::effective();
    let is_ours = |pid: &u32| std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|folder| folder.uid() == own);
    let ours = discover::processes().into_iter().filter(is_ours);
    ours.filter(|pid| standby::of(*pid) == Standby::Ready).collect()
}

/// `before`: calls by function, so many seconds ago.
fn told(pid: u32, seen: tracer::Closeup, before: Option<&HashMap<String, u64>>, seconds: f64) -> Closeup {
    let in_progress = seen.in_progress.into_iter().map(|call| InProgress {
        tid: call.tid,
        thread: call.comm,
        functions: call.functions,
        seconds: call.ns as f64 / 1e9,
    });
    let speed = |name: &str, calls: u64| {
        let old = before?.get(name).copied().unwrap_or(0);
        (seconds > 0.0).then(|| calls.saturating_sub(old) as f64 / seconds)
    };
    let functions = seen.functions.into_iter().map(|one| Function {
        calls: Count {
            total: one.calls as f64,
            per_second: speed(&one.name, one.calls),
        },
        layer: one.layer,
        name: one.name,
        errors: one.errors,
        seconds: one.total_ns.map(|ns| ns as f64 / 1e9),
    });
    Closeup {
        pid,
        functions: functions.collect(),
        in_progress: in_progress.collect(),
        in_progress_unseen: seen.unseen,
        allocations: by_place(seen.sites, &seen.places),
        single_left_out: seen.map.as_ref().map_or(0, |map| map.left_out),
        single: seen.map.map(|map| single(map, &seen.places)),
    }
}

/// Several stacks may lead to one line.
fn by_place(sites: Vec<SiteReport>, places: &HashMap<u64, String>) -> Vec<Allocations> {
    let mut all: Vec<Allocations> = Vec::new();
    for new in sites.into_iter().filter_map(|site| held(site, places)) {
        let is_it = |known: &&mut Allocations| {
            let named = known.place.is_some() && known.place == new.place && known.function == new.function;
            named && known.family == new.family && known.device == new.device
        };
        match all.iter_mut().find(is_it) {
            Some(known) => {
                known.bytes = known.bytes.saturating_add(new.bytes);
                known.count += new.count;
                known.oldest_seconds = known.oldest_seconds.max(new.oldest_seconds);
                known.newest_seconds = known.newest_seconds.min(new.newest_seconds);
            }
            None => all.push(new),
        }
    }
    all.sort_by_key(|held| std::cmp::Reverse(held.bytes));
    all
}

fn single(map: AllocationMap, places: &HashMap<u64, String>) -> Vec<Single> {
    let one = |allocation: Allocation| Single {
        address: allocation.address.map(|address| format!("{address:#x}")),
        bytes: allocation.bytes,
        age_seconds: allocation.age_ns as f64 / 1e9,
        place: places.get(&allocation.site).cloned(),
        function: allocation.function,
        family: allocation.family.name().to_owned(),
        device: (allocation.device >= 0).then_some(allocation.device),
    };
    map.shown.into_iter().map(one).collect()
}

/// `None`: nothing of it is held.
fn held(site: SiteReport, places: &HashMap<u64, String>) -> Option<Allocations> {
    (site.account.held_bytes > 0).then(|| Allocations {
        place: places.get(&site.site).cloned(),
        function: site.function,
        family: site.family.name().to_owned(),
        device: (site.device >= 0).then_some(site.device),
        bytes: site.account.held_bytes,
        count: site.account.outstanding,
        oldest_seconds: site.oldest_ns as f64 / 1e9,
        newest_seconds: site.newest_ns as f64 / 1e9,
    })
}
