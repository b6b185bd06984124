//! Readers of gpuscope under fuzzing: what is done with an input, by name, and what all of them share.

mod elf;
mod inside;
pub mod memory;
mod number;
pub mod rows;
mod shown;
mod targets;
pub mod watch;
mod world;

pub use elf::{Part, library};
pub use number::Numbers;
pub use shown::is_harmless;
pub use targets::{TARGETS, Target};
pub use world::World;
