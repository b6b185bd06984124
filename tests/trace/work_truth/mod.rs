//! Reports of work against the simulator's own log: what was copied, when the device can have had nothing to do, what
//! graphs ran and who waited, whatever a program does.
//!
//! The programs take their seeds from the clock, or from `GPUSCOPE_TEST_SEED`; what fails says which.

mod copies;
mod graphs;
mod idle;
mod late;
pub(crate) mod log;
mod loss;
mod run;
mod seed;
mod stacks;
mod told;
mod waits;

use crate::support;
