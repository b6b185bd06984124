//! Where a call comes from: names for the addresses that the kernel programs collected.
//!
//! ```text
//!  wire::SiteEvent ─► resolver ─┬─► native ─ regions: file and offset of an address
//!                              │            └─ namer ═► naming, a process without rights ─ elf, demangle: its function
//!                              │                           └─ debug_info: its line, and what was inlined (blazesym)
//!                               ├─► code ─ text, lines: a Python code object, read from the process's memory
//!                               └─► merge: one stack of both
//!  process ─► interpreter ─ layout: which Python, and where it keeps its frames (told to the kernel programs, too)
//!  thread of a process ─┬─► unwinder ─ rule: its native stack, by .eh_frame (where an engine looks from outside itself)
//!                       └─► frames: its Python frames
//! ```
//!
//! Owns the reading of other processes' memory. All of it may be anything: each read is bounded and checked, and what
//! cannot be read is said. When a stack is taken is `crates/collect/src/bpf/site.bpf.h`'s business.

pub mod code;
mod debug_info;
pub mod demangle;
pub(crate) mod frames;
mod interpreter;
pub mod layout;
pub mod lines;
mod mapped;
pub mod memory;
mod merge;
mod namer;
mod names;
mod naming;
mod native;
mod prologue;
pub mod regions;
mod resolver;
pub(crate) mod rule;
pub mod text;
pub(crate) mod unwinder;
pub mod wire;

pub use naming::NAMER;
pub use resolver::{Kept, Located, Resolver, Stack};
