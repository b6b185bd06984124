//! `gpuscope leaks`: who holds GPU memory, live and at the end.

mod reporter;

use super::launched::{self, Launched};
use super::prepare::{self, Subject};
use super::running::Running;
use crate::cli::LeaksArgs;
use crate::model::memory::Report;
use crate::model::summary::Summary;
use crate::refusal::Usage;
use crate::sink::summary::{engine_text, under_way_text};
use anyhow::{Result, bail};
use reporter::Reporter;
use std::process::ExitCode;
use std::time::Instant;

/// Watches until a signal, the time limit, the end of the processes or of the command, or until nobody reads on.
///
/// # Errors
/// What could not be watched, and why. With a command failures are said here.
pub(crate) fn run(args: &LeaksArgs) -> Result<ExitCode> {
    if !args.command.is_empty() {
        return Ok(launched::status_of(|| watch_command(args)));
    }
    if args.pids.is_empty() && !args.all {
        let words = "nothing to watch\nhint: -p PID, --all for every process, or -- CMD to start one";
        bail!(Usage(words.to_owned()));
    }
    watch_running(args)
}

fn watch_command(args: &LeaksArgs) -> Result<u8> {
    reporter::check(args)?;
    let mut tracer = prepare::memory_tracer(args, &Subject::Command(&args.command, &args.start))?;
    tracer.list_allocations(reporter::wanted(args));
    let mut reporter = Reporter::new(args)?;
    let mut launched = match Launched::start(tracer, &args.command, &args.start)? {
        Ok(launched) => launched,
        Err(status) => return Ok(status),
    };
    let (end, outcome) = launched.follow(|tracer| reporter.follow(tracer))?;
    let (summary, _) = launched.tracer.finish()?;
    let (report, summary) = last(summary);
    let written = reporter.finish(&report, &summary);
    let matches = prepare::leaks(args.fail_on, &report);
    Ok(end.conclude(outcome.and(written), &matches))
}

fn watch_running(args: &LeaksArgs) -> Result<ExitCode> {
    reporter::check(args)?;
    let running = Running {
        pids: &args.pids,
        all: args.all,
    };
    let mut tracer = prepare::memory_tracer(args, &Subject::Running(running.scope()?))?;
    tracer.list_allocations(reporter::wanted(args));
    let mut reporter = Reporter::new(args)?;
    let stop = prepare::stop_flag()?;
    running.attach(&mut tracer)?;
    let deadline = args.duration.map(|time| Instant::now() + time);
    let timed_out = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let mut failure = Ok(());
    while failure.is_ok() && !stop.is_set() && !timed_out() && !reporter.is_closed() && !running.are_over(&tracer) {
        failure = tracer.step().and_then(|()| {
            reporter.follow(&mut tracer);
            reporter.check()
        });
    }
    let (summary, _) = tracer.finish()?;
    let (report, summary) = last(summary);
    let written = reporter.finish(&report, &summary);
    failure.and(written)?;
    Ok(prepare::status(&prepare::leaks(args.fail_on, &report)))
}

/// The report of the end, with what was not seen, and the rest of the summary.
fn last(mut summary: Summary) -> (Report, Summary) {
    let mut report = std::mem::take(&mut summary.memory);
    report.notes.extend(summary.engine.as_ref().map(engine_text));
    let unseen = summary.unseen.iter().map(|what| format!("not seen: {what}"));
    report.notes.extend(unseen);
    let under_way = under_way_text(&summary.under_way);
    report
        .notes
        .extend((!under_way.is_empty()).then(|| under_way.trim_end().to_owned()));
    (report, summary)
}
