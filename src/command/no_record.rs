//! In place of `record` in a build without it.

use crate::cli::{Options, RecordArgs};
use crate::refusal::Usage;
use crate::tracer::{Scope, Tracer};
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::process::ExitCode;

const MISSING: &str =
    "record: this build writes no recordings\nhint: cargo build with the feature record, which is on by default";

/// Refuses.
///
/// # Errors
/// Names the missing feature.
pub fn run(_: &RecordArgs) -> Result<ExitCode> {
    bail!(Usage(MISSING.to_owned()))
}

/// Refuses.
///
/// # Errors
/// Names the missing feature.
pub(crate) fn tracer_of_file(_: &Options, _: Scope, _: &[OsString]) -> Result<Tracer> {
    bail!(Usage(MISSING.to_owned()))
}
