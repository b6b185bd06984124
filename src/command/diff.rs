//! `gpuscope diff`: what changed between two recordings.

use super::reading::Asked;
use super::report::{coloured, gates, put, read, status, warn};
use super::rights;
use super::screen::columns;
use crate::cli::DiffArgs;
use crate::output::Output;
use crate::report::diff;
use crate::trace::Files;
use anyhow::Result;
use std::process::ExitCode;

/// Reads both, compares, writes.
///
/// # Errors
/// A recording cannot be read, or nothing can be written.
pub(crate) fn run(args: &DiffArgs) -> Result<ExitCode> {
    let gates = gates(&args.fail_on, true)?;
    let asked = Asked {
        step: args.step,
        ..Asked::default()
    };
    let (before, after) = (Files::open(&args.before)?, Files::open(&args.after)?);
    rights::for_reading();
    let (before, after) = (read(&before, asked)?, read(&after, asked)?);
    warn(&before);
    warn(&after);
    let diff = diff::diff(&before, &after);
    let page = match (args.json, args.md) {
        (true, _) => diff::to_line(&diff),
        (_, true) => diff::markdown(&diff),
        _ => diff::page(&diff, coloured(args.paint.color), columns(&std::io::stdout())),
    };
    put(Output::stdout(), &page)?;
    let worse = gates.iter().flat_map(|gate| gate.regressions(&diff)).collect();
    status(&gates, &after, worse)
}
