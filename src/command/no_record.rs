//! In place of `record` in a build without it.

use super::prepare::Subject;
use crate::cli::{Options, RecordArgs};
use crate::refusal::Usage;
use crate::tracer::Tracer;
use anyhow::{Result, bail};
use std::process::ExitCode;

const MISSING: &str =
    "record: this build writes no recordings\nhint: cargo build with the feature record, which is on by default";

/// Refuses.
///
/// # Errors
/// Names the missing feature.
pub(crate) fn run(_: &RecordArgs) -> Result<ExitCode> {
    bail!(Usage(MISSING.to_owned()))
}

/// Refuses.
///
/// # Errors
/// Names the missing feature.
pub(crate) fn tracer_of_file(_: &Options, _: &Subject) -> Result<Tracer> {
    bail!(Usage(MISSING.to_owned()))
}
