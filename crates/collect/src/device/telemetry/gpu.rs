//! What is said of one GPU. Plain data; what NVML does not tell of a model is absent, never 0.

use crate::device::Memory;
use std::time::SystemTime;

/// Names a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// NVML's number; no CUDA ordinal.
    pub index: u32,
    /// `GPU-` and sixteen bytes in hexadecimal.
    pub uuid: String,
    /// `00000000:17:00.0`: domain, bus, device, function.
    pub pci_bus_id: String,
}

/// One GPU at one time. Totals are NVML's own: they begin anew when the driver is loaded, ECC errors only when they
/// are reset by hand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpu {
    pub identity: Identity,
    /// When all else was read.
    pub read_at: Option<SystemTime>,
    /// When energy, replays of PCIe and bytes of NVLink were read; `None`: never.
    pub totals_at: Option<SystemTime>,
    /// When errors of NVLink were read.
    pub links_at: Option<SystemTime>,
    /// Share of the last sample period (1/6 s to 1 s, by model) with a kernel running.
    pub gpu_percent: Option<u32>,
    /// Share of it in which device memory was read or written.
    pub memory_percent: Option<u32>,
    pub encoder_percent: Option<u32>,
    pub decoder_percent: Option<u32>,
    pub memory: Option<Memory>,
    pub free_bytes: Option<u64>,
    pub gpu_celsius: Option<u32>,
    /// Of the memory; not told by all models.
    pub memory_celsius: Option<u32>,
    /// Average of a second since Ampere, of a moment before.
    pub power_mw: Option<u32>,
    /// The lowest of all limits.
    pub power_limit_mw: Option<u32>,
    /// Since the driver was loaded.
    pub energy_mj: Option<u64>,
    pub clocks: Vec<Clock>,
    /// Why clocks are not higher: bits of [`REASONS`].
    pub clock_reasons: Option<u64>,
    /// Of all fans the fastest, in percent of the highest speed.
    pub fan_percent: Option<u32>,
    /// 0 is the fastest.
    pub performance_state: Option<u32>,
    pub ecc_corrected: Option<u64>,
    pub ecc_uncorrected: Option<u64>,
    pub remapped_rows: Option<RemappedRows>,
    pub pcie: Pcie,
    pub nvlink: NvLink,
    /// One for the GPU, or one for each GPU instance in MIG mode; none without GPM (before Hopper).
    pub gpm: Vec<GpmReading>,
}

/// A clock domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// `graphics`, `sm`, `memory`, `video`.
    pub domain: &'static str,
    pub now_mhz: Option<u32>,
    pub highest_mhz: Option<u32>,
}

/// Bits of NVML's clock event reasons, and what they are called.
pub const REASONS: [(u64, &str); 9] = [
    (0x1, "gpu_idle"),
    (0x2, "applications_clocks_setting"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
];

/// Rows of memory that were replaced by spare ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemappedRows {
    /// For errors that ECC corrected.
    pub corrected: u32,
    /// For errors that it could not.
    pub uncorrected: u32,
    /// More are to be replaced at the next reset.
    pub pending: bool,
    /// One could not be replaced.
    pub failed: bool,
}

/// The link to the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pcie {
    /// Sent by the GPU: between two rounds where it has GPM, else in 20 ms.
    pub sent_bytes_per_second: Option<f64>,
    pub received_bytes_per_second: Option<f64>,
    pub replays: Option<u64>,
    pub generation: Option<u32>,
    pub lanes: Option<u32>,
}

/// All NVLinks of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NvLink {
    /// Payload over all links.
    pub sent_bytes: Option<u64>,
    pub received_bytes: Option<u64>,
    pub errors: Vec<LinkError>,
}

/// One counter of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    pub link: u32,
    /// `replay`, `recovery`, `crc`.
    pub kind: &'static str,
    pub count: u64,
}

/// GPU performance monitoring, between two rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpmReading {
    /// `None`: the whole GPU.
    pub gpu_instance: Option<u32>,
    pub sm_percent: Option<f64>,
    pub occupancy_percent: Option<f64>,
    pub dram_percent: Option<f64>,
    /// Name of the pipe (`tensor`, `fp64`, `fp32`, `fp16`, `integer`) and percent.
    pub pipes: Vec<(&'static str, f64)>,
    pub(crate) pcie_sent_bytes_per_second: Option<f64>,
    pub(crate) pcie_received_bytes_per_second: Option<f64>,
}
