//! What the driver says of the processes that hold memory, asked now and then while they live.
//!
//! Owns the readings; what was tracked is [`super::memory`]'s.

use crate::catalog::Family;
use crate::device::{Access, Certainty, Device, Environment, Ordinals, ProcessMemory, Reconciled, Tracked, reconcile};
use crate::model::memory::{Book, DeviceReport, ProcessReport, UNKNOWN_DEVICE};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

const ASK_EVERY: Duration = Duration::from_millis(500);

/// What was said of one process, and when (CLOCK_MONOTONIC ns).
struct Reading {
    at: u64,
    rows: Vec<Reconciled>,
    inferred: BTreeSet<i32>,
}

/// See the module.
#[derive(Default)]
pub(super) struct DevicePlane {
    access: Access,
    asked: Option<Instant>,
    answer: (Vec<Device>, Vec<ProcessMemory>),
    environments: HashMap<u32, Environment>,
    readings: HashMap<u32, Reading>,
    names: BTreeMap<String, String>,
    notes: BTreeSet<String>,
}

impl DevicePlane {
    /// Asks, unless it was asked a moment ago; whether there is an answer to be compared.
    pub(super) fn ask(&mut self, book: &Book) -> bool {
        let recently = |asked: Instant| asked.elapsed() < ASK_EVERY;
        if book.alive().next().is_none() || self.asked.is_some_and(recently) {
            return false;
        }
        self.asked = Some(Instant::now());
        let (devices, processes) = match self.access.devices(Instant::now()) {
            Ok(nvml) => (nvml.list(), nvml.processes()),
            Err(absent) => {
                self.notes.insert(absent.to_string());
                return false;
            }
        };
        self.notes.extend(devices.notes.into_iter().chain(processes.notes));
        self.learn_names(&devices.items);
        self.answer = (devices.items, processes.items);
        true
    }

    /// Compares the answer with what is held.
    pub(super) fn compare(&mut self, book: &Book, now: u64) {
        let pids: Vec<u32> = book.alive().collect();
        let (devices, processes) = std::mem::take(&mut self.answer);
        self.read(book, &pids, &devices, &processes, now);
    }

    fn learn_names(&mut self, devices: &[Device]) {
        for device in devices {
            self.names.insert(device.uuid.clone(), device.name.clone());
            for part in device.parts() {
                self.names.insert(part.uuid.clone(), part.name.clone());
            }
        }
    }

    fn read(&mut self, book: &Book, pids: &[u32], devices: &[Device], processes: &[ProcessMemory], now: u64) {
        let held: Vec<Tracked> = pids.iter().flat_map(|pid| tracked(book, *pid)).collect();
        let ordinals: BTreeMap<u32, Ordinals> = pids
            .iter()
            .map(|pid| (*pid, self.ordinals(book, *pid, &held, devices, processes)))
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
        book: &Book,
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
        Ordinals::new(&environment, devices, &book.uuids(pid)).settled(&used, pid, processes)
    }

    /// The number of an ended process may be given to another.
    pub(super) fn forget(&mut self, pid: u32) {
        self.environments.remove(&pid);
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

fn tracked(book: &Book, pid: u32) -> impl Iterator<Item = Tracked> {
    book.held(pid).into_iter().map(move |(device, bytes)| Tracked {
        pid,
        ordinal: i32::from(device),
        bytes,
    })
}
