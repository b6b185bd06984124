//! A build that reads no recordings.

use crate::cli::TopArgs;
use crate::refusal::Usage;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;

/// Refuses.
///
/// # Errors
/// Always.
pub(super) fn run(_: &Path, _: &TopArgs) -> Result<ExitCode> {
    let words =
        "--replay: this build reads no recordings\nhint: cargo build with the feature record, which is on by default";
    bail!(Usage(words.to_owned()))
}
