//! `gpuscope trace`: running processes, until Ctrl-C.

use super::prepare::{self, Subject};
use super::running::Running;
use super::traced;
use crate::cli::TraceArgs;
use crate::refusal::Usage;
use crate::tracer::Tracer;
use anyhow::{Result, bail};
use std::process::ExitCode;
use std::time::Instant;

/// Traces until a signal, the time limit, the end of all traced processes, or until nobody reads the output.
///
/// # Errors
/// What could not be traced, and why.
pub(crate) fn run(args: TraceArgs) -> Result<ExitCode> {
    if args.pids.is_empty() && !args.all {
        let words = "nothing to trace\nhint: -p PID, or --all for every process; gpuscope run -- CMD starts one";
        bail!(Usage(words.to_owned()));
    }
    let running = Running {
        pids: &args.pids,
        all: args.all,
    };
    let mut tracer = traced::tracer(&args.options, &Subject::Running(running.scope()?))?;
    let stop = prepare::stop_flag()?;
    running.attach_and(&mut tracer, |tracer| {
        prepare::watch_gpu_of(tracer, args.gpu, &args.options)
    })?;
    let deadline = args.duration.map(|time| Instant::now() + time);
    let over = |tracer: &Tracer| {
        stop.is_set()
            || deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || tracer.output_closed()
            || running.are_over(tracer)
    };
    let mut failure = Ok(());
    while failure.is_ok() && !over(&tracer) {
        failure = tracer.step();
    }
    let (summary, written) = tracer.finish()?;
    prepare::print_summary(args.options.summary, &summary);
    failure.and(written)?;
    let matches = prepare::matches(&args.options.fail_on, &summary);
    Ok(prepare::status(&matches))
}
