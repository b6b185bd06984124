//! How often each function was called, a line each.

use crate::record::{Encoder, Ending, Kind, Record};
use std::collections::BTreeMap;
use std::io::Write;

/// See the module.
#[derive(Debug, Default)]
pub struct Tally(BTreeMap<String, u64>);

impl Encoder for Tally {
    fn take(&mut self, record: &Record<'_>, _out: &mut Vec<u8>) {
        if record.kind == Kind::Call {
            *self.0.entry(record.name.to_owned()).or_default() += record.count;
        }
    }

    fn finish(&mut self, _ending: &Ending<'_>, out: &mut Vec<u8>) {
        for (name, count) in &self.0 {
            let _ = writeln!(out, "{count} {name}");
        }
    }
}
