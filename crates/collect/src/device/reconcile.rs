//! What was tracked beside what the driver says. Pure.

use super::{Certainty, Ordinals, ProcessMemory};
use std::collections::BTreeMap;

/// The ordinal of memory whose device is not known.
const NOT_KNOWN: i32 = -1;

/// What the allocations that were seen come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// The process.
    pub pid: u32,
    /// The device as the process numbers it; -1: not known.
    pub ordinal: i32,
    /// Held now.
    pub bytes: u64,
}

/// One process on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciled {
    /// The process.
    pub pid: u32,
    /// The device as the process numbers it; -1: not known.
    pub ordinal: i32,
    /// UUID of the GPU, or of the MIG device; `None`: not known which it is.
    pub uuid: Option<String>,
    /// Held by the allocations that were seen.
    pub tracked_bytes: u64,
    /// Held as the driver counts; `None`: not told, or told in another row of the same device.
    pub driver_bytes: Option<u64>,
    /// What no allocation explains: contexts, code, workspaces, what was before attaching.
    pub unattributed_bytes: Option<u64>,
    /// What is to be known of these figures.
    pub notes: Vec<String>,
}

/// One row for each process and device of `tracked`, and one for each device on which NVML shows a process of
/// `ordinals` that nothing was tracked on. Each figure of the driver is in exactly one row.
pub fn reconcile(
    tracked: &[Tracked],
    processes: &[ProcessMemory],
    ordinals: &BTreeMap<u32, Ordinals>,
) -> Vec<Reconciled> {
    let mut told = told(processes, ordinals);
    let mut rows: Vec<Reconciled> = placed(summed(tracked), &told, ordinals)
        .into_iter()
        .map(|((pid, ordinal), bytes)| row(pid, ordinal, bytes, ordinals.get(&pid), &mut told))
        .collect();
    rows.extend(told.into_iter().map(|((pid, uuid), bytes)| {
        let ordinal = ordinals.get(&pid).and_then(|ordinals| ordinals.of_device(&uuid));
        let ordinal = ordinal
            .and_then(|ordinal| i32::try_from(ordinal).ok())
            .unwrap_or(NOT_KNOWN);
        compared(
            Reconciled {
                uuid: Some(uuid),
                ..empty(pid, ordinal, 0)
            },
            Some(bytes),
        )
    }));
    rows.sort_by(|a, b| (a.pid, a.ordinal, &a.uuid).cmp(&(b.pid, b.ordinal, &b.uuid)));
    note_unknown(&mut rows);
    rows
}

type Told = BTreeMap<(u32, String), Option<u64>>;

fn told(processes: &[ProcessMemory], ordinals: &BTreeMap<u32, Ordinals>) -> Told {
    let mut told = Told::new();
    for process in processes {
        if let Some(pid) = process.pid.filter(|pid| ordinals.contains_key(pid)) {
            let bytes = told.entry((pid, process.device.clone())).or_insert(None);
            *bytes = (*bytes).max(process.bytes);
        }
    }
    // Listed by MPS for a device that it does not use.
    told.retain(|_, bytes| *bytes != Some(0));
    told
}

/// Bytes by process and ordinal.
type Sums = BTreeMap<(u32, i32), u64>;

fn summed(tracked: &[Tracked]) -> Sums {
    let mut sums = Sums::new();
    for one in tracked {
        let ordinal = one.ordinal.max(NOT_KNOWN);
        let sum = sums.entry((one.pid, ordinal)).or_default();
        *sum = sum.saturating_add(one.bytes);
    }
    sums
}

/// The device of memory whose place is not known is known where the process holds memory on one device alone.
fn placed(mut sums: Sums, told: &Told, ordinals: &BTreeMap<u32, Ordinals>) -> Sums {
    let lost: Vec<u32> = sums
        .keys()
        .filter(|(_, ordinal)| *ordinal == NOT_KNOWN)
        .map(|(pid, _)| *pid)
        .collect();
    for pid in lost {
        let ordinal = sole(told, pid).and_then(|uuid| ordinals.get(&pid)?.of_device(uuid));
        if let Some(ordinal) = ordinal.and_then(|ordinal| i32::try_from(ordinal).ok()) {
            let bytes = sums.remove(&(pid, NOT_KNOWN)).unwrap_or(0);
            let sum = sums.entry((pid, ordinal)).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    sums
}

fn sole(told: &Told, pid: u32) -> Option<&str> {
    let mut devices = told.keys().filter(|(other, _)| *other == pid);
    let (_, uuid) = devices.next()?;
    devices.next().is_none().then_some(uuid)
}

fn empty(pid: u32, ordinal: i32, tracked_bytes: u64) -> Reconciled {
    Reconciled {
        pid,
        ordinal,
        uuid: None,
        tracked_bytes,
        driver_bytes: None,
        unattributed_bytes: None,
        notes: Vec::new(),
    }
}

fn row(pid: u32, ordinal: i32, bytes: u64, ordinals: Option<&Ordinals>, told: &mut Told) -> Reconciled {
    let mut row = empty(pid, ordinal, bytes);
    let known = u32::try_from(ordinal).ok().and_then(|ordinal| ordinals?.get(ordinal));
    let uuid = known.map(|known| known.uuid.as_str());
    let Some(uuid) = uuid.or_else(|| sole(told, pid).filter(|_| ordinal == NOT_KNOWN)) else {
        row.notes.push("it is not known which device this is".to_owned());
        return row;
    };
    row.uuid = Some(uuid.to_owned());
    if let Some(known) = known.filter(|known| known.certainty == Certainty::Inferred) {
        row.notes.push(format!("device inferred: {}", known.reason));
    }
    let driver = told.remove(&(pid, uuid.to_owned()));
    compared(row, driver)
}

/// `None`: NVML does not list the process on this device; `Some(None)`: it does, without telling the bytes.
fn compared(mut row: Reconciled, driver: Option<Option<u64>>) -> Reconciled {
    match driver {
        None => row
            .notes
            .push("NVML does not list the process on this device".to_owned()),
        Some(None) => row.notes.push("NVML does not tell what the process holds".to_owned()),
        Some(Some(driver)) => {
            row.driver_bytes = Some(driver);
            row.unattributed_bytes = Some(driver.saturating_sub(row.tracked_bytes));
            if let Some(more @ 1..) = row.tracked_bytes.checked_sub(driver) {
                row.notes.push(format!(
                    "{more} bytes more are tracked than the driver counts: managed memory that is not on the device, \
                     or allocations between the two readings"
                ));
            }
        }
    }
    row
}

/// Memory of unknown place is somewhere, perhaps here.
fn note_unknown(rows: &mut [Reconciled]) {
    let mut unplaced: BTreeMap<u32, u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.uuid.is_none() && row.tracked_bytes > 0) {
        let sum = unplaced.entry(row.pid).or_default();
        *sum = sum.saturating_add(row.tracked_bytes);
    }
    for row in rows
        .iter_mut()
        .filter(|row| row.unattributed_bytes.is_some_and(|bytes| bytes > 0))
    {
        if let Some(bytes) = unplaced.get(&row.pid) {
            row.notes.push(format!(
                "up to {bytes} of these may be tracked bytes whose device is not known"
            ));
        }
    }
}
