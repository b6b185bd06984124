//! gpuscope shows what a CUDA program really does, from outside, with eBPF.
//!
//! ```text
//!  catalog/*.toml ─► catalog ─► capture ──────────────┐ what to copy at each row
//!                                                     ▼
//!  application ─► uprobe ─► bpf/calls.bpf.c ─┬─► counting plane: exact totals ──► model::summary ─► sink::summary
//!                   ▲                        └─► event plane: ring ─► decode ─► model::order ─► sink::{text, json}
//!   probe::{discover, attach} ─ elf: which functions lie where in the files that processes map
//! ```
//!
//! Counts are exact under any load; events may be lost and are then counted. Only [`probe`] touches the kernel;
//! everything right of [`decode`] is pure. [`device`] asks the driver, through NVML, who holds memory. [`tracer`] drives one run, [`command`] holds one file per subcommand.

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
