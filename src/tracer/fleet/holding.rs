//! What a process holds, and what the driver says of it, as an owner's: by devices of the machine.

use crate::catalog::Holder;
use crate::device::Reconciled;
use crate::model::fleet::{Device, Earlier, Held, Uses};
use crate::model::memory::{HOST, Tally};
use std::sync::Arc;

/// The devices that a process is known to use.
pub(super) fn uses(reading: &[Reconciled]) -> Uses {
    let is_shown = |row: &&Reconciled| row.driver_bytes.is_some();
    let shown = reading.iter().any(|row| is_shown(&row));
    let rows = reading.iter().filter(|row| !shown || is_shown(row));
    let mut devices: Vec<Device> = rows
        .filter_map(|row| row.uuid.as_deref())
        .map(|uuid| Some(uuid.into()))
        .collect();
    devices.sort();
    devices.dedup();
    Uses { devices, shown }
}

/// Adds what a process holds, by devices of the machine where these are known.
pub(super) fn hold(held: &mut Held, tally: &Tally, reading: &[Reconciled]) {
    let device = |ordinal: i16| {
        let row = reading.iter().find(|row| row.ordinal == i32::from(ordinal));
        row.and_then(|row| row.uuid.as_deref()).map(Arc::from)
    };
    for ((family, ordinal), account) in &tally.families {
        let place = (family.holder() == Holder::Device).then(|| device(*ordinal)).flatten();
        let known = held.families.entry((*family, place)).or_default();
        known.0 += account.held_bytes;
        known.1 += account.outstanding;
    }
    for (ordinal, bytes) in tally.peak_bytes.iter().filter(|(ordinal, _)| **ordinal != HOST) {
        let peak = held.peak_bytes.entry(device(*ordinal)).or_default();
        *peak = (*peak).max(*bytes);
    }
    for (sum, more) in held.ages.iter_mut().zip(tally.ages) {
        sum.0 += more.0;
        sum.1 += more.1;
    }
}

/// Adds what the driver counts for a process. `earlier`: it was there before; with the time, CLOCK_MONOTONIC ns.
pub(super) fn hold_by_driver(held: &mut Held, reading: &[Reconciled], mut earlier: Option<(&mut Earlier, u64)>) {
    for row in reading {
        let Some(uuid) = row.uuid.as_deref().map(Arc::<str>::from) else {
            continue;
        };
        if let Some(bytes) = row.driver_bytes {
            *held.driver_bytes.entry(Arc::clone(&uuid)).or_default() += bytes;
        }
        let Some(mut bytes) = row.unattributed_bytes else {
            continue;
        };
        if let Some((earlier, now)) = earlier.as_mut() {
            let (before, since) = earlier.split(row.pid, &uuid, bytes, *now);
            *held.earlier_bytes.entry(Arc::clone(&uuid)).or_default() += before;
            bytes = since;
        }
        *held.unattributed_bytes.entry(uuid).or_default() += bytes;
    }
}
