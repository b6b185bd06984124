//! Recordings: written, kept, read.

pub mod trace;

// What lies below is called as if it were here: where a module lies is said once.
use gpuscope_catalog::catalog;
use gpuscope_core::{clock, output, refusal, text};
use gpuscope_state::{findings, record};
