//! What is found wrong with programs that have exactly one thing wrong with them, and with one that has nothing.
//!
//! The programs run with real-time priority where that is allowed: what is found is then theirs and not that of a busy
//! machine.

mod defects;
mod outputs;
mod places;
pub mod program;
mod recorded;

use crate::support;
