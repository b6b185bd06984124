//! gpuscope shows what a CUDA program really does, from outside, with eBPF.
//!
//! ```text
//!  catalog/*.toml ─► catalog ─► capture ──────────────┐ what to copy at each row
//!                                                     ▼
//!  application ─► uprobe ─► bpf/calls.bpf.c ─┬─► counting plane: exact totals ──► model::summary ─► sink::summary
//!                   ▲                        │    by function, launches by kernel ──► model::launches ─► sink::kernels
//!                   │                        ├─► event plane: ring ─► decode ─► model::order ─► sink::{text, json}
//!                   │                        └─► memory plane: ring ─► model::memory ─► sink::memory
//!                   │                              call sites ─► stack ──┘    └── device (NVML)
//!   probe::{discover, attach} ─ elf: which functions lie where in the files that processes map
//! ```
//!
//! Counts are exact under any load; events may be lost and are then counted. What changes who holds memory has a ring
//! of its own, so that a balance does not depend on chatter. Only [`probe`] touches the kernel; [`stack`] reads the
//! memory of traced processes, [`device`] asks the driver; what is right of [`decode`] and [`model`] is pure.
//! [`tracer`] drives one run, [`command`] holds one file per subcommand.

pub mod capture;
pub mod catalog;
pub mod cli;
pub mod command;
pub mod decode;
pub mod device;
pub mod elf;
pub mod filter;
pub mod model;
pub mod output;
pub mod probe;
pub mod refusal;
pub mod rows;
pub mod rule;
pub mod sink;
pub mod stack;
pub mod tracer;
pub mod wire;
