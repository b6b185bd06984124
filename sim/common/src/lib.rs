//! What the simulated libraries share: the ledger of what really happened, the failures asked
//! for, and the simulated clock.

pub mod book;
pub mod clock;
pub mod fail;
pub mod ledger;
pub mod settings;
pub mod shared;

pub use ledger::Ledger;

/// Of each simulated device.
pub const MULTIPROCESSORS: i32 = 132;
