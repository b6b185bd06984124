//! What crosses between the kernel programs and user space: the Rust mirror of `crates/collect/src/bpf/wire.h`.
//!
//! Owns the layout, not the meaning: `capture` says what a row's words are, `decode` reads
//! them. `crates/collect/src/probe/` asserts at compile time that these structures equal the ones in the BPF object.

mod bytes;
mod call;
mod driver;
mod hook;
mod inbox;
mod launch;
mod memory;
mod place;
mod process;
mod spec;
mod total;
mod word;
mod work;
mod xid;

pub use bytes::*;
pub use call::*;
pub use driver::*;
pub use hook::*;
pub use inbox::{Inbox, Slot};
pub use launch::*;
pub use memory::*;
pub use place::*;
pub use process::*;
pub use spec::*;
pub use total::*;
pub use word::*;
pub use work::*;
pub use xid::*;
