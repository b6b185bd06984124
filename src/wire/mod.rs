//! What crosses between the kernel programs and user space: the Rust mirror of `src/bpf/wire.h`.
//!
//! Owns the layout, not the meaning: [`crate::capture`] says what a row's words are, [`crate::decode`] reads
//! them. `src/probe/` asserts at compile time that these structures equal the ones in the BPF object.

mod bytes;
mod call;
mod driver;
mod hook;
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
pub use launch::*;
pub use memory::*;
pub use place::*;
pub use process::*;
pub use spec::*;
pub use total::*;
pub use word::*;
pub use work::*;
pub use xid::*;
