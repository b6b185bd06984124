//! What commands write to their standard output, which somebody may close.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

const FAILED: &str = "failed to write to stdout";

/// Writes a line; a pipe that was closed, as `| head` does, ends gpuscope.
///
/// # Errors
/// Nothing can be written there.
pub(super) fn line(out: &mut dyn Write, text: &str) -> Result<()> {
    match writeln!(out, "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.context(FAILED),
    }
}

/// Writes what is left; a pipe that was closed is no error.
///
/// # Errors
/// As [`line()`].
pub(super) fn finish(mut out: impl Write) -> Result<()> {
    closed_is_fine(out.flush())
}

/// The same of a result.
///
/// # Errors
/// As [`line()`].
pub(super) fn closed_is_fine(written: std::io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context(FAILED),
    }
}
