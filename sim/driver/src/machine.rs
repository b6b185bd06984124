//! The simulated machine: how many devices, how big, how fast.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use gpusim_common::{settings, shared};

use crate::error::{INVALID_DEVICE, NO_DEVICE, NOT_INITIALIZED, OUT_OF_MEMORY};

pub struct Machine {
    pub devices: Vec<Device>,
    kernel_ns: u64,
    host_bytes_per_ns: f64,
    pageable_bytes_per_ns: f64,
    device_bytes_per_ns: f64,
    /// How many kernels may wait in a stream before a launch blocks; 0: any number.
    pub queue: usize,
    /// How long taking or giving back device memory lasts, beside what it waits for.
    pub alloc_ns: u64,
    /// How long loading code lasts.
    pub load_ns: u64,
}

/// What bytes move through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    /// Between host and device.
    Host,
    /// The same, of pageable memory.
    Pageable,
    /// Inside a device.
    Device,
}

pub struct Device {
    /// Its number in the machine, where the process may see others first, or not at all.
    pub place: usize,
    pub memory: u64,
    used: &'static AtomicU64,
    busy: &'static AtomicU64,
}

pub const DRIVER_VERSION: i32 = 13000;
pub const NAME: &std::ffi::CStr = c"Simulated GPU";

/// Bytes a nanosecond: `GPUSIM_COPY_BYTES_PER_US` for all copies (0: they take no time), or else
/// what is set for this kind.
fn copy_speed(name: &str, default: f64) -> f64 {
    match settings::number("GPUSIM_COPY_BYTES_PER_US", -1.0) {
        0.0 => f64::INFINITY,
        speed if speed > 0.0 => speed / 1000.0,
        _ => settings::number(name, default).max(0.001),
    }
}

thread_local! {
    static KERNEL_NS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Sets how long the kernels last that this thread launches or records from now on; `u64::MAX`
/// leaves it to the environment again.
#[unsafe(no_mangle)]
pub extern "C" fn gpusim_driver_kernel_ns(ns: u64) {
    KERNEL_NS.set((ns != u64::MAX).then_some(ns));
}

impl Machine {
    /// How long the calling thread's kernels last.
    pub fn kernel_ns(&self) -> u64 {
        KERNEL_NS.get().unwrap_or(self.kernel_ns)
    }

    /// How long moving `bytes` takes.
    pub fn copy_ns(&self, bytes: u64, bus: Bus) -> u64 {
        let speed = match bus {
            Bus::Host => self.host_bytes_per_ns,
            Bus::Pageable => self.pageable_bytes_per_ns,
            Bus::Device => self.device_bytes_per_ns,
        };
        (bytes as f64 / speed) as u64
    }
}

/// The machine, as the environment describes it when first asked.
pub fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let memory = settings::bytes("GPUSIM_MEMORY", 8 << 30);
        let count = settings::number("GPUSIM_DEVICES", 1.0) as usize;
        let slots: Vec<_> = shared::device_slots(count).collect();
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        let host_gbps = settings::number("GPUSIM_HOST_GBPS", 25.0);
        let us = |name| (settings::number(name, 0.0) * 1000.0) as u64;
        Machine {
            devices: visible_places(visible.as_deref(), slots.len())
                .into_iter()
                .map(|place| Device {
                    place,
                    memory,
                    used: &slots[place].used,
                    busy: &slots[place].busy_ns,
                })
                .collect(),
            kernel_ns: settings::number("GPUSIM_KERNEL_NS", settings::number("GPUSIM_KERNEL_US", 20.0) * 1000.0) as u64,
            host_bytes_per_ns: copy_speed("GPUSIM_HOST_GBPS", 25.0),
            pageable_bytes_per_ns: copy_speed("GPUSIM_PAGEABLE_GBPS", host_gbps),
            device_bytes_per_ns: copy_speed("GPUSIM_DEVICE_GBPS", 1000.0),
            queue: settings::number("GPUSIM_QUEUE", 1024.0) as usize,
            alloc_ns: us("GPUSIM_ALLOC_US"),
            load_ns: us("GPUSIM_LOAD_US"),
        }
    })
}

pub fn device(ordinal: i32) -> Result<&'static Device, u32> {
    usize::try_from(ordinal)
        .ok()
        .and_then(|i| machine().devices.get(i))
        .ok_or(INVALID_DEVICE)
}

/// The devices a process may see, in its order: numbers or the beginnings of UUIDs, up to the
/// first that is none.
fn visible_places(wanted: Option<&str>, count: usize) -> Vec<usize> {
    let Some(wanted) = wanted else {
        return (0..count).collect();
    };
    let place = |text: &str| match text.parse::<usize>() {
        Ok(number) => Some(number).filter(|n| *n < count),
        Err(_) if text.starts_with("GPU-") => (0..count).find(|p| uuid_text(*p).starts_with(text)),
        Err(_) => None,
    };
    wanted.split(',').map(str::trim).map_while(place).collect()
}

fn uuid_of(place: usize) -> [u8; 16] {
    let mut uuid = *b"GPUSCOPE-SIM\0\0\0\0";
    uuid[12..].copy_from_slice(&(place as u32 + 1).to_be_bytes());
    uuid
}

/// As NVML writes it.
fn uuid_text(place: usize) -> String {
    let hex: Vec<String> = uuid_of(place).iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| hex[range].concat();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        part(0..4),
        part(4..6),
        part(6..8),
        part(8..10),
        part(10..16)
    )
}

pub fn uuid(ordinal: i32) -> Result<[u8; 16], u32> {
    Ok(uuid_of(device(ordinal)?.place))
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
    if machine().devices.is_empty() {
        return Err(NO_DEVICE);
    }
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

#[cfg(test)]
mod tests {
    use super::{uuid_text, visible_places};

    #[test]
    fn devices_are_seen_as_the_environment_says() {
        assert_eq!(visible_places(None, 2), [0, 1]);
        assert_eq!(visible_places(Some("1,0"), 2), [1, 0]);
        assert_eq!(visible_places(Some("1,7,0"), 2), [1]);
        assert_eq!(visible_places(Some(""), 2), [0; 0]);
        assert_eq!(visible_places(Some(&uuid_text(2)), 4), [2]);
    }
}
