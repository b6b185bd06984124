//! What it means: accounts of memory and work, records, findings, the gate.

pub mod findings;
pub mod model;
pub mod record;
pub mod rule;
pub mod steps;

// What lies below is called as if it were here: where a module lies is said once.
use gpuscope_catalog::{capture, catalog, decode, driver};
use gpuscope_collect::{activity, elf, owner};
use gpuscope_core::{clock, frame, text, wire};
