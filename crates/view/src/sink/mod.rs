//! How records and snapshots look: text, JSON lines, the summary. One output format per file; where bytes go is the business
//! of whoever drives them.

pub(crate) mod activity;
pub(crate) mod aggregate;
pub(crate) mod by_site;
mod causes;
pub mod cost;
pub mod coverage;
pub(crate) mod driver;
pub mod findings;
pub(crate) mod functions;
pub mod json;
pub(crate) mod kernels;
pub mod memory;
pub(crate) mod outside;
mod phases;
#[cfg(test)]
mod read_back_tests;
pub mod sizes;
pub(crate) mod steps;
pub mod summary;
pub mod text;
pub(crate) mod totals;
pub(crate) mod work;
pub(crate) mod xid;

use crate::record::{Encoder, Record};

/// The form that has what tables leave out.
const ALL_IN: &str = "--summary json has all";

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// No line at all: of the calls only sums and findings are wanted.
#[derive(Debug, Clone, Copy)]
pub struct NoLines;

impl Encoder for NoLines {
    fn take(&mut self, _: &Record<'_>, _: &mut Vec<u8>) {}

    fn shows(&self) -> bool {
        false
    }

    fn keeps(&self) -> bool {
        false
    }
}
