//! The simulated machine: how many devices, how big, how fast.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use gpusim_common::{settings, shared};

use crate::error::{INVALID_DEVICE, NOT_INITIALIZED, OUT_OF_MEMORY};

pub struct Machine {
    pub devices: Vec<Device>,
    pub kernel_ns: u64,
    pub host_bytes_per_ns: f64,
    pub device_bytes_per_ns: f64,
}

pub struct Device {
    pub memory: u64,
    used: &'static AtomicU64,
    busy: &'static AtomicU64,
}

pub const DRIVER_VERSION: i32 = 13000;
pub const NAME: &std::ffi::CStr = c"Simulated GPU";

/// The machine, as the environment describes it when first asked.
pub fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let memory = settings::bytes("GPUSIM_MEMORY", 8 << 30);
        let count = settings::number("GPUSIM_DEVICES", 1.0) as usize;
        Machine {
            devices: shared::device_slots(count)
                .map(|slot| Device {
                    memory,
                    used: &slot.used,
                    busy: &slot.busy_ns,
                })
                .collect(),
            kernel_ns: (settings::number("GPUSIM_KERNEL_US", 20.0) * 1000.0) as u64,
            host_bytes_per_ns: settings::number("GPUSIM_HOST_GBPS", 25.0).max(0.001),
            device_bytes_per_ns: settings::number("GPUSIM_DEVICE_GBPS", 1000.0).max(0.001),
        }
    })
}

pub fn device(ordinal: i32) -> Result<&'static Device, u32> {
    usize::try_from(ordinal)
        .ok()
        .and_then(|i| machine().devices.get(i))
        .ok_or(INVALID_DEVICE)
}

pub fn uuid(ordinal: i32) -> [u8; 16] {
    let mut uuid = *b"GPUSCOPE-SIM\0\0\0\0";
    uuid[12..].copy_from_slice(&(ordinal as u32 + 1).to_be_bytes());
    uuid
}

impl Device {
    pub fn charge(&self, bytes: u64) -> Result<(), u32> {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.memory);
        self.used
            .fetch_update(Relaxed, Relaxed, fits)
            .map(drop)
            .map_err(|_| OUT_OF_MEMORY)
    }

    pub fn refund(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }

    /// Notes work given to the device, for those who watch its utilisation.
    pub fn work(&self, ns: u64) {
        self.busy.fetch_add(ns, Relaxed);
    }

    pub fn free(&self) -> u64 {
        self.memory - self.used.load(Relaxed)
    }
}

const FRESH: u32 = 0;
const READY: u32 = 1;
const FORKED: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(FRESH);

/// `cuInit`. A child forked from an initialised process stays unusable, as with the real driver.
pub fn initialise() -> Result<(), u32> {
    match STATE.compare_exchange(FRESH, READY, Relaxed, Relaxed) {
        Err(FORKED) => Err(NOT_INITIALIZED),
        _ => Ok(()),
    }
}

pub fn ready() -> Result<(), u32> {
    if STATE.load(Relaxed) == READY {
        Ok(())
    } else {
        Err(NOT_INITIALIZED)
    }
}

pub fn forked() {
    let _ = STATE.compare_exchange(READY, FORKED, Relaxed, Relaxed);
}
