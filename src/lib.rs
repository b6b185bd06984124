//! gpuscope shows what a CUDA program really does, from outside, with eBPF.
//!
//! ```text
//!  catalog/*.toml ─► catalog ─► capture ──────────────┐ what to copy at each row
//!                                                     ▼
//!  application ─► uprobe ─► bpf/calls.bpf.c ─┬─► counting plane: exact totals ──► model::summary ─► sink::summary
//!                   ▲                        │    by function, launches by kernel ──► model::launches ─► sink::kernels
//!                   │                        ├─► event plane: ring ─► decode ─► model::order ─► sink::{text, json}
//!                   │                        ├─► memory plane: ring ─► model::memory ─► sink::memory
//!                   │                        │     call sites ─► stack ──┘    └── device (NVML)
//!                   │                        └─► work plane: ring ─► model::work ─► sink::work
//!   discover, probe::attach ─ elf: which functions lie where in the files that processes map
//!  ioctl ─► tracepoints ─► bpf/driver.bpf.h ─► counting plane; ring ─► driver: decoded ─► model::driver, lines
//!  functions of the kernel, tracepoints ─► bpf/kernel.bpf.h ─► both planes, as any row
//!  kernel log, nvidia_dev_xid ─► driver::xid ─► model::xid ─► lines, summary, serve
//!
//!  calls and what is measured beside them ─► record ─┬─► trace::recorder ─► FILE.arrows ─► trace::reader ─┐
//!                                                    └─► findings ◄──────────────────────── records ──┤
//!                                                        report, timeline, export, diff ◄─────────────┘
//!
//!  all planes ─► model::fleet: sums by owner ─► serve ─► Prometheus, OpenTelemetry, a screen
//!                  owner: who is who ──┘          ├─► top ─► a live screen, JSON lines
//!                                                 └── device::telemetry (NVML)
//! ```
//!
//! Counts are exact under any load; events may be lost and are then counted. What changes who holds memory has a ring
//! of its own, so that a balance does not depend on chatter. What all
//! planes come through is an [`engine`], and of these only [`probe`] touches the kernel; [`stack`] reads the
//! memory of traced processes, [`device`] asks the driver; what is right of [`decode`] and [`model`] is pure.
//! [`tracer`] drives one run, [`command`] holds one file per subcommand.

// without all features, some of what they share has no caller
#![cfg_attr(
    not(all(feature = "otlp", feature = "parquet", feature = "top")),
    allow(dead_code, unused_imports)
)]

pub mod cli;
pub mod command;
pub mod rows;
#[cfg(feature = "serve")]
pub mod serve;
pub mod space;
#[cfg(feature = "top")]
pub mod top;
pub(crate) mod tracer;
pub mod version;

pub use gpuscope_catalog::{capture, catalog, decode, driver, filter};
pub(crate) use gpuscope_collect::confine;
#[cfg(feature = "serve")]
pub use gpuscope_collect::reserved;
pub use gpuscope_collect::{activity, device, discover, elf, engine, foreign, inside, owner, probe, stack};
pub use gpuscope_core::{clock, frame, output, refusal, secret, text, user, wire};
pub use gpuscope_state::{findings, model, record, rule, steps};
#[cfg(feature = "record")]
pub use gpuscope_store::trace;
#[cfg(feature = "record")]
pub use gpuscope_view::{export, part, paths, report, timeline};
pub use gpuscope_view::{section, sink};
