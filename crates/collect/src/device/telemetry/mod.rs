//! What NVML says of the whole machine, asked again and again by a thread of its own.
//!
//! Owns the questions, when they are asked, and what is kept from one time to the next: totals of errors, Xid events,
//! the GPUs that were seen. Knows no metric and no probe. NVML may hang: who reads [`Sampler::latest`] never waits for
//! it and sees the age of the last answer grow.
//!
//! ```no_run
//! use gpuscope_collect::device::telemetry::Sampler;
//! use std::time::Duration;
//!
//! # fn main() -> anyhow::Result<()> {
//! let sampler = Sampler::start(Duration::from_secs(1))?;
//! std::thread::sleep(Duration::from_secs(3));
//! if let Some(telemetry) = sampler.latest() {
//!     for gpu in &telemetry.gpus {
//!         println!("{}: {:?} °C, {:?} ago", gpu.identity.uuid, gpu.gpu_celsius, telemetry.at.elapsed());
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! While NVML is open it keeps the driver in use: `rmmod nvidia` waits for who asks to stop.

mod answer;
mod gpm;
mod gpu;
mod inhabitants;
mod kept;
mod link;
mod pace;
mod read;
mod round;
mod sampler;
mod work;
mod xid;

pub use gpu::{GpmReading, Gpu, Identity, REASONS};
pub use pace::Pace;
pub use sampler::Sampler;
pub use work::ProcessWork;
pub(crate) use xid::Xid;

use super::{Absent, Device, ProcessMemory};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What was known at one time.
#[derive(Clone, Debug)]
pub struct Telemetry {
    /// When the answers were complete; counts up once for each round of questions.
    pub at: Instant,
    /// How long the questions took.
    pub took: Duration,
    /// How often they are asked.
    pub every: Duration,
    /// Why NVML cannot be asked; then there are no GPUs here.
    pub absent: Option<Absent>,
    /// Version of the kernel driver.
    pub driver: Option<String>,
    /// The GPUs that answered, in NVML's order.
    pub gpus: Vec<Gpu>,
    /// GPUs that answered earlier, also before we came, or that the bus has, and that do not answer now.
    pub lost: Vec<Identity>,
    /// The same GPUs as [`Self::gpus`], with their MIG devices.
    pub devices: Vec<Device>,
    /// What each process holds of each device.
    pub processes: Vec<ProcessMemory>,
    /// UUIDs of the GPUs of which [`Self::processes`] has all that NVML lists: nobody else has work there.
    pub listed: BTreeSet<String>,
    /// What processes did on each GPU, asked in every other round.
    pub work: Vec<ProcessWork>,
    /// Xid events since the start, by GPU and code.
    pub xids: Vec<Xid>,
    /// Questions that failed since the start, by NVML's number of the GPU; not those that a GPU does not support.
    pub errors: BTreeMap<u32, u64>,
    /// What is missing this time, and why; one line each.
    pub notes: Vec<String>,
}
