//! What crosses between the kernel programs and user space: `crates/collect/src/bpf/wire.h` in Rust.
//!
//! Owns the layout, not the meaning: `capture` says what a row's words are, `decode` reads them. `generated` is made of
//! the header by `scripts/wire.py`; it compiles only where sizes and offsets are C's, and `crates/collect/src/probe/`
//! holds it against the BPF object. What is written by hand beside it is what these structures do.

mod bytes;
mod call;
mod cgroup;
mod generated;
mod hook;
mod inbox;
mod launch;
mod range;
mod record;
mod spec;
mod total;

pub use bytes::*;
pub use call::*;
pub use cgroup::cgroups;
pub use generated::*;
pub use inbox::Inbox;
pub use launch::{KernelEvent, KernelStream};
pub use range::*;
pub use record::DRIVER_BYTES;
pub use total::BEYOND_CAPACITY;
