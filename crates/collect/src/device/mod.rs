//! What the machine's driver says, through NVML, of its devices and of who holds their memory.
//!
//! Owns the talking to NVML ([`telemetry`]: by a thread of its own), the merging of its lists, whose its process numbers are, which device a CUDA ordinal of
//! a process is, and the comparison with what was tracked. Knows nothing of probes and of calls. NVML is loaded
//! while running; a machine without it lacks these columns and nothing else.
//!
//! ```no_run
//! # use std::{collections::BTreeMap, time::Instant};
//! use gpuscope_collect::device::{Access, Environment, Ordinals, Tracked, reconcile};
//!
//! # fn main() -> std::io::Result<()> {
//! let mut access = Access::new();
//! match access.devices(Instant::now()) {
//!     Err(absent) => println!("{absent}"), // NVML: libnvidia-ml.so.1 cannot be loaded: …; hint: …
//!     Ok(nvml) => {
//!         let (devices, processes) = (nvml.list(), nvml.processes());
//!         let ordinals = Ordinals::new(&Environment::of(4711)?, &devices.items, &BTreeMap::new());
//!         let ordinals = ordinals.settled(&[0], 4711, &processes.items);
//!         let tracked = [Tracked { pid: 4711, ordinal: 0, bytes: 1 << 30 }];
//!         for row in reconcile(&tracked, &processes.items, &BTreeMap::from([(4711, ordinals)])) {
//!             println!("{:?} of {:?} bytes unattributed", row.unattributed_bytes, row.driver_bytes);
//!         }
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! NVML counts what a process has taken from the device: allocations in whole pages, contexts, code, workspaces.
//! Managed memory counts where it resides; memory of another process that is mapped here counts there.

mod absent;
mod access;
mod ask;
pub mod environment;
mod identifier;
mod inventory;
mod merge;
mod nvml;
mod ordinals;
mod owner;
pub mod presence;
mod reconcile;
mod rest;
pub mod telemetry;
mod visible;

pub(crate) use absent::Absent;
pub use access::Access;
pub use environment::Environment;
pub(crate) use inventory::Memory;
pub use inventory::{Device, Found, MigDevice};
pub use merge::ProcessMemory;
pub use nvml::Devices;
pub use ordinals::{Certainty, Ordinals};
pub use reconcile::{Reconciled, Tracked, reconcile};
pub use rest::Looking;

#[cfg(test)]
mod tests;
