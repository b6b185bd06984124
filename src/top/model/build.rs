//! Puts a frame together.

use super::busy;
use super::count::rate;
use super::device::{self, Device};
use super::process::{OpenCall, Process};
use super::{Closeup, Frame};
use crate::owner::Owner;
use crate::serve::Scrape;
use crate::serve::display::owners::who;
use crate::serve::display::{Rates, notes};
use crate::serve::metric::Sample;
use crate::top::origins::Origins;
use std::collections::{BTreeMap, HashMap};

/// What a frame is made of.
pub(crate) struct Known<'a> {
    pub scrape: &'a Scrape,
    pub rates: &'a Rates<'a>,
    pub origins: &'a Origins,
    /// Seconds since 1970.
    pub at: f64,
    /// Calls of every process are seen.
    pub traces_all: bool,
    /// Calls of these and of their children are seen.
    pub traces: &'a [u32],
    pub closeup: Option<Closeup>,
    /// Of processes with a call that does not return, the longest.
    pub open: HashMap<u32, OpenCall>,
}

/// Labels that a row has columns of its own for.
const OF_COLUMNS: [&str; 4] = ["pid", "comm", "cmdline", "env_rank"];
/// Of the number of a container.
const SHORT_ID: usize = 12;

/// Of a process that has not called: it may hang.
const BEFORE: &str = "a call that began before gpuscope came is not seen";

/// Everything as it is now; growth is not known yet.
pub(crate) fn frame(mut known: Known) -> Frame {
    let open = std::mem::take(&mut known.open);
    let (samples, rates) = (&known.scrape.samples, known.rates);
    let mut processes = processes(&known);
    for process in &mut processes {
        process.longest_call = open.get(&process.pid).cloned();
    }
    share_cost(&mut processes, samples, rates);
    let mut devices = device::devices(samples, rates);
    settle_parts(&mut devices, &mut processes);
    busy::bound(&mut devices, &processes, rates.over_seconds.is_some(), known.traces_all);
    let closeup = known.closeup.map(|closeup| doubted(closeup, &processes));
    let said = notes::xids(samples, rates)
        .into_iter()
        .chain(notes::lost(samples, rates));
    let said = said.map(|(_, words)| words);
    Frame {
        attaching: false,
        partial: false,
        at: known.at,
        elapsed_seconds: rates.at_seconds,
        over_seconds: rates.over_seconds,
        devices,
        processes,
        notes: said.chain(known.scrape.status.missing.iter().cloned()).collect(),
        cost: notes::cost(samples, rates).map(|(_, words)| words),
        closeup,
        findings: None,
        calls: None,
    }
}

/// What probes have cost all programs together, by the calls of each.
fn share_cost(processes: &mut [Process], samples: &[Sample], rates: &Rates) {
    let mut of_probes = samples
        .iter()
        .filter(|sample| sample.metric.name == "gpuscope_probe_seconds_total");
    let Some(seconds) = of_probes.next().and_then(|sample| rates.per_second(sample)) else {
        return;
    };
    let calls: f64 = processes.iter().filter_map(|process| rate(process.calls)).sum();
    for process in processes.iter_mut().filter(|_| calls > 0.0) {
        process.probe_share = rate(process.calls).map(|own| seconds * own / calls);
    }
}

/// Says what is not seen of a process that seems to do nothing.
fn doubted(mut closeup: Closeup, processes: &[Process]) -> Closeup {
    let is_quiet = |process: &Process| process.pid == closeup.pid && process.quiet;
    if processes.iter().any(is_quiet) {
        closeup.in_progress_unseen.get_or_insert_with(|| BEFORE.to_owned());
    }
    closeup
}

/// Whose process is in which part.
fn settle_parts(devices: &mut [Device], processes: &mut [Process]) {
    for process in processes.iter_mut().filter(|process| !process.mig_uuids.is_empty()) {
        for device in devices.iter_mut() {
            for part in &mut device.parts {
                if process.mig_uuids.contains(&part.uuid) {
                    part.processes += 1;
                    process.parts.insert(format!("{}/{}", device.gpu, part.gpu_instance));
                }
            }
        }
    }
}

/// By number. What a process did before it executed another program is its own, too.
fn processes(known: &Known) -> Vec<Process> {
    let mut all: BTreeMap<u32, (Process, &Owner)> = BTreeMap::new();
    for sample in &known.scrape.samples {
        let Some(owner) = sample.owner.as_deref() else { continue };
        let entry = all.entry(pid_of(owner)).or_insert_with(|| (Process::default(), owner));
        // who was gone before it was looked at has fewer
        if owner.labels.len() > entry.1.labels.len() {
            entry.1 = owner;
        }
        entry.0.take(sample, known.rates);
    }
    let name = |(pid, (mut process, owner)): (u32, (Process, &Owner))| {
        process.pid = pid;
        process.settle(owner);
        describe(&mut process, owner, known.origins);
        let is_traced = |pid: &u32| known.traces.contains(pid);
        process.traced |= known.traces_all || is_traced(&pid) || process.ancestors.iter().any(is_traced);
        process.quiet = process.traced && process.calls.is_none();
        process
    };
    all.into_iter()
        .map(name)
        .filter(|process| !process.is_past_and_empty())
        .collect()
}

/// What owners do, whose processes may not be told apart; `command` is what each is called.
pub(crate) fn owners(samples: &[Sample], rates: &Rates) -> Vec<Process> {
    let mut all: HashMap<&Owner, Process> = HashMap::new();
    for sample in samples {
        if let Some(owner) = sample.owner.as_deref() {
            all.entry(owner).or_default().take(sample, rates);
        }
    }
    let has_failures = samples
        .iter()
        .any(|sample| sample.metric.name == "gpuscope_api_errors_total");
    let name = |(owner, mut process): (&Owner, Process)| {
        process.settle(owner);
        process.command = who(owner);
        // calls may not be counted
        process.traced |=
            process.launches.is_some() || process.held_bytes.is_some() || process.waiting_seconds.is_some();
        process.errors = process.errors.filter(|_| has_failures);
        process
    };
    all.into_iter().map(name).collect()
}

/// Devices, and how busy they can have been by what `owners` gave them, where that is collected.
pub(crate) fn devices_of(samples: &[Sample], rates: &Rates, owners: &[Process]) -> Vec<Device> {
    let mut devices = device::devices(samples, rates);
    if owners.iter().any(|owner| owner.busy_at_most_seconds.is_some()) {
        busy::bound(&mut devices, owners, rates.over_seconds.is_some(), false);
    }
    devices
}

/// 0: it is none of those that are told apart.
pub(crate) fn pid_of(owner: &Owner) -> u32 {
    owner.get("pid").and_then(|pid| pid.parse().ok()).unwrap_or_default()
}

fn describe(process: &mut Process, owner: &Owner, origins: &Origins) {
    let get = |name| owner.get(name).unwrap_or_default().to_owned();
    process.comm = get("comm");
    process.command = get("cmdline");
    process.place = place(owner);
    let origin = origins.get(process.pid);
    process.user = origin.map(|origin| origin.user.clone());
    process.ancestors = origin.map(|origin| origin.ancestors.clone()).unwrap_or_default();
    process.ended = process.pid != 0 && origin.is_none_or(|origin| origin.ended);
    if process.pid == 0 {
        process.comm = "other processes".to_owned();
    } else if process.comm.is_empty() {
        process.comm = "?".to_owned();
    }
    if process.command.is_empty() {
        process.command.clone_from(&process.comm);
    }
}

/// Where it runs, shortest first: of a pod its name, of a container its number, of a service its unit.
fn place(owner: &Owner) -> String {
    let get = |name: &str| owner.get(name).filter(|value| !value.is_empty());
    let pod: Vec<&str> = ["namespace", "pod", "container"].into_iter().filter_map(get).collect();
    if !pod.is_empty() {
        return pod.join("/");
    }
    if let Some(id) = get("container_id") {
        return id.chars().take(SHORT_ID).collect();
    }
    let job = get("slurm_job").map(|job| format!("job {job}"));
    let others = owner
        .labels
        .iter()
        .filter(|(name, _)| !OF_COLUMNS.contains(&name.as_str()) && !["unit", "slurm_job"].contains(&name.as_str()));
    let others = others.map(|(name, value)| format!("{name}={value}"));
    let words: Vec<String> = job
        .into_iter()
        .chain(get("unit").map(str::to_owned))
        .chain(others)
        .collect();
    words.join(" ")
}
