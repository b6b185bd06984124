//! `gpuscope run -- CMD…`: trace a command and its children from their first call.

use super::launched::{self, Launched};
use super::prepare::{self, Subject};
use super::traced;
use crate::cli::RunArgs;
use anyhow::Result;
use std::process::ExitCode;

/// Runs the command; the exit status is the command's own.
///
/// # Errors
/// None that the caller has to print: failures are printed here, because their exit status differs.
pub(crate) fn run(args: RunArgs) -> Result<ExitCode> {
    Ok(launched::status_of(|| command(&args)))
}

fn command(args: &RunArgs) -> Result<u8> {
    let options = &args.options;
    let mut tracer = traced::tracer(options, &Subject::Command(&args.command, &args.start))?;
    prepare::watch_gpu(&mut tracer, args.gpu, options)?;
    let mut launched = match Launched::start(tracer, &args.command, &args.start)? {
        Ok(launched) => launched,
        Err(status) => return Ok(status),
    };
    let (end, outcome) = launched.follow(|_| {})?;
    let (summary, written) = launched.tracer.finish()?;
    prepare::print_summary(options.summary, &summary);
    let matches = prepare::matches(&options.fail_on, &summary);
    Ok(end.conclude(outcome.and(written), &matches))
}
