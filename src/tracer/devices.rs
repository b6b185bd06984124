//! What the driver says of the processes that hold memory, asked now and then while they live.
//!
//! Owns the readings; what was tracked is [`super::memory`]'s.

use crate::catalog::Family;
use crate::device::telemetry::Sampler;
use crate::device::{Access, Certainty, Device, Environment, Ordinals, ProcessMemory, Reconciled, Tracked, reconcile};
use crate::model::memory::{DeviceReport, Ledgers, ProcessReport, UNKNOWN_DEVICE};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ASK_EVERY: Duration = Duration::from_millis(500);

/// What was said of one process, and when (CLOCK_MONOTONIC ns).
struct Reading {
    at: u64,
    rows: Vec<Reconciled>,
    inferred: BTreeSet<i32>,
}

/// Who asks NVML.
enum Source {
    /// This thread.
    Own(Box<Access>),
    /// Another one, which may hang without harm here.
    Sampler(Arc<Sampler>),
}

impl Default for Source {
    fn default() -> Source {
        Source::Own(Box::new(Access::new()))
    }
}

/// One answer.
#[derive(Default)]
struct Answer {
    devices: Vec<Device>,
    processes: Vec<ProcessMemory>,
    /// `None`: just now.
    at: Option<Instant>,
}

/// What the driver says of the processes that hold memory, asked now and then while they live.
#[derive(Default)]
pub(super) struct DevicePlane {
    source: Source,
    asked: Option<Instant>,
    answer: Answer,
    environments: HashMap<u32, Environment>,
    readings: HashMap<u32, Reading>,
    names: BTreeMap<String, String>,
    notes: BTreeSet<String>,
}

impl DevicePlane {
    /// Asks, unless it was asked a moment ago; whether there is an answer to be compared.
    pub(super) fn ask(&mut self, ledgers: &Ledgers) -> bool {
        let recently = |asked: Instant| asked.elapsed() < ASK_EVERY;
        if ledgers.alive().next().is_none() || self.asked.is_some_and(recently) {
            return false;
        }
        self.asked = Some(Instant::now());
        let (answer, notes) = match &mut self.source {
            Source::Own(access) => ask(access),
            Source::Sampler(sampler) => take(sampler, self.answer.at),
        };
        self.notes.extend(notes);
        self.answer.at = answer.as_ref().map_or(self.answer.at, |answer| answer.at);
        let Some(answer) = answer else { return false };
        self.learn_names(&answer.devices);
        self.answer = answer;
        true
    }

    /// Takes what `sampler` was told from here on.
    pub(super) fn listen_to(&mut self, sampler: Arc<Sampler>) {
        self.source = Source::Sampler(sampler);
    }

    /// Compares the answer, which was given at `now` (CLOCK_MONOTONIC ns) or earlier, with what is held.
    pub(super) fn compare(&mut self, ledgers: &Ledgers, now: u64) {
        let pids: Vec<u32> = ledgers.alive().collect();
        let devices = std::mem::take(&mut self.answer.devices);
        let processes = std::mem::take(&mut self.answer.processes);
        let age = self.answer.at.map_or(Duration::ZERO, |at| at.elapsed());
        let at = now.saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        if matches!(self.source, Source::Sampler(_)) {
            // who listens runs for months, with ever new processes
            self.notes.clear();
            let alive: BTreeSet<u32> = pids.iter().copied().collect();
            self.readings.retain(|pid, _| alive.contains(pid));
        }
        self.read(ledgers, &pids, &devices, &processes, at);
    }

    fn learn_names(&mut self, devices: &[Device]) {
        for device in devices {
            self.names.insert(device.uuid.clone(), device.name.clone());
            for part in device.parts() {
                self.names.insert(part.uuid.clone(), part.name.clone());
            }
        }
    }

    fn read(&mut self, ledgers: &Ledgers, pids: &[u32], devices: &[Device], processes: &[ProcessMemory], now: u64) {
        let held: Vec<Tracked> = pids.iter().flat_map(|pid| tracked(ledgers, *pid)).collect();
        let ordinals: BTreeMap<u32, Ordinals> = pids
            .iter()
            .map(|pid| (*pid, self.ordinals(ledgers, *pid, &held, devices, processes)))
            .collect();
        for (pid, known) in &ordinals {
            self.notes
                .extend(known.problem().map(|problem| format!("process {pid}: {problem}")));
        }
        let rows = reconcile(&held, processes, &ordinals);
        for pid in pids {
            let inferred = ordinals[pid].iter();
            let inferred = inferred.filter(|(_, known)| known.certainty == Certainty::Inferred);
            let reading = Reading {
                at: now,
                rows: rows.iter().filter(|row| row.pid == *pid).cloned().collect(),
                inferred: inferred
                    .filter_map(|(ordinal, _)| i32::try_from(ordinal).ok())
                    .collect(),
            };
            self.readings.insert(*pid, reading);
        }
    }

    fn ordinals(
        &mut self,
        ledgers: &Ledgers,
        pid: u32,
        held: &[Tracked],
        devices: &[Device],
        processes: &[ProcessMemory],
    ) -> Ordinals {
        if !self.environments.contains_key(&pid)
            && let Ok(environment) = Environment::of(pid)
        {
            self.environments.insert(pid, environment);
        }
        let used: Vec<u32> = held
            .iter()
            .filter(|tracked| tracked.pid == pid)
            .filter_map(|tracked| u32::try_from(tracked.ordinal).ok())
            .collect();
        let environment = self.environments.get(&pid).cloned().unwrap_or_default();
        Ordinals::new(&environment, devices, &ledgers.uuids(pid)).settled(&used, pid, processes)
    }

    /// What was last said of a process, by device; empty: nothing.
    pub(super) fn reading(&self, pid: u32) -> &[Reconciled] {
        self.readings.get(&pid).map_or(&[], |reading| &reading.rows)
    }

    /// The number of an ended process may be given to another.
    pub(super) fn forget(&mut self, pid: u32) {
        self.environments.remove(&pid);
    }

    /// Nobody asks for what was said of it any more.
    pub(super) fn forget_reading(&mut self, pid: u32) {
        self.readings.remove(&pid);
    }

    /// Adds what was last said of a process.
    pub(super) fn complete(&self, report: &mut ProcessReport) {
        let Some(reading) = self.readings.get(&report.pid) else {
            return;
        };
        if reading.at < report.first_at {
            return; // of an earlier process of that number
        }
        if let [row] = reading.rows.as_slice() {
            place(report, row.ordinal);
        }
        for row in &reading.rows {
            let ordinal = i16::try_from(row.ordinal).unwrap_or(UNKNOWN_DEVICE);
            let known = report.devices.iter().position(|device| device.device == ordinal);
            let index = known.unwrap_or_else(|| {
                report.devices.push(DeviceReport {
                    device: ordinal,
                    ..DeviceReport::default()
                });
                report.devices.len() - 1
            });
            let device = &mut report.devices[index];
            device.uuid.clone_from(&row.uuid);
            device.name = row.uuid.as_ref().and_then(|uuid| self.names.get(uuid)).cloned();
            device.inferred |= reading.inferred.contains(&row.ordinal);
            device.driver_bytes = row.driver_bytes;
            device.unattributed_bytes = row.unattributed_bytes;
            device.driver_at = Some(reading.at);
            device.notes.clone_from(&row.notes);
        }
    }

    /// What limits these figures.
    pub(super) fn notes(&self) -> impl Iterator<Item = &String> {
        self.notes.iter()
    }
}

/// An answer, and what limits it.
type Reply = (Option<Answer>, Vec<String>);

fn ask(access: &mut Access) -> Reply {
    match access.devices(Instant::now()) {
        Ok(nvml) => {
            let (devices, processes) = (nvml.list(), nvml.processes());
            let answer = Answer {
                devices: devices.items,
                processes: processes.items,
                at: None,
            };
            (Some(answer), devices.notes.into_iter().chain(processes.notes).collect())
        }
        Err(absent) => (None, vec![absent.to_string()]),
    }
}

/// Each answer of a sampler once. Its notes are told elsewhere; they would be ever more here.
fn take(sampler: &Sampler, last: Option<Instant>) -> Reply {
    let Some(telemetry) = sampler.latest().filter(|telemetry| Some(telemetry.at) != last) else {
        return (None, Vec::new());
    };
    if let Some(absent) = &telemetry.absent {
        return (None, vec![absent.to_string()]);
    }
    let answer = Answer {
        devices: telemetry.devices.clone(),
        processes: telemetry.processes.clone(),
        at: Some(telemetry.at),
    };
    (Some(answer), Vec::new())
}

/// Where the driver shows a process on one device alone, memory whose device is not known is there.
fn place(report: &mut ProcessReport, ordinal: i32) {
    let Some(number) = i16::try_from(ordinal).ok().filter(|number| *number >= 0) else {
        return;
    };
    if report.devices.iter().any(|device| device.device == number) {
        return;
    }
    let devices = report.devices.iter_mut();
    for device in devices.filter(|device| device.device == UNKNOWN_DEVICE) {
        device.device = number;
        device.inferred = true;
    }
    let held = |family: Family, device: i16| device == UNKNOWN_DEVICE && family != Family::Reserved;
    for family in report.families.iter_mut().filter(|one| held(one.family, one.device)) {
        family.device = number;
    }
    for site in report.sites.iter_mut().filter(|one| held(one.family, one.device)) {
        site.device = number;
    }
}

fn tracked(ledgers: &Ledgers, pid: u32) -> impl Iterator<Item = Tracked> {
    ledgers.held(pid).into_iter().map(move |(device, bytes)| Tracked {
        pid,
        ordinal: i32::from(device),
        bytes,
    })
}
