//! `gpuscope report`: what a recording says.

use super::prepare::{self, Subject};
use super::progress::Progress;
use super::reading::{self, Asked};
use super::rights;
use super::running::Running;
use super::screen::columns;
use super::writer::Page;
use crate::cli::{Colour, Content, Options, ReportArgs};
use crate::clock::clock_now;
use crate::output::{Output, say};
use crate::record::Meta;
use crate::refusal::Usage;
use crate::report::gate::Gate;
use crate::report::{Live, Report, html, json, load, markdown, text};
use crate::rule::Rule;
use crate::trace::Files;
use anyhow::{Result, bail};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Reads, adds up, writes.
///
/// # Errors
/// The recording cannot be read, or the report cannot be written.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let gates = gates(&args.fail_on, false)?;
    let page = page(args)?;
    let report = match &args.file {
        Some(file) => {
            let files = Files::open(file)?;
            rights::for_reading();
            read(&files, asked(args))?
        }
        None => live(args)?,
    };
    warn(&report);
    write(args, page, &report)?;
    status(&gates, &report, Vec::new())
}

fn asked(args: &ReportArgs) -> Asked<'_> {
    Asked {
        range: args.range.as_deref(),
        step: args.step,
    }
}

/// Reads what is asked for of a recording, and shows how far it has come.
pub(super) fn read(files: &Files, asked: Asked<'_>) -> Result<Report> {
    let (part, _) = reading::locate(files, asked)?.unwrap_or_default();
    let mut progress = Progress::of(format!("reading {}", files.path().display()));
    load(files, &part, &mut |done, all| progress.show(done, all))
}

/// Traces until a signal, the time limit, or the end of all traced processes.
fn live(args: &ReportArgs) -> Result<Report> {
    if args.pids.is_empty() && !args.all {
        let words = "nothing to trace\nhint: --live -p PID, or --live --all for every process";
        bail!(Usage(words.to_owned()));
    }
    let running = Running {
        pids: &args.pids,
        all: args.all,
    };
    let options = Options {
        stacks: Some(args.stacks),
        verbose: args.verbose,
        ..Options::defaults()
    };
    let mut tracer = prepare::begin(&options, &Subject::Running(running.scope()?), None, || {
        Ok(Output::stdout())
    })?;
    tracer.leave_findings_to_others();
    let rows = Live::default();
    let meta = Meta::here(clock_now(), Vec::new(), tracer.tier().to_owned());
    tracer.write_to(rows.taker(&meta), &meta);
    tracer.watch_ranges();
    let stop = prepare::stop_flag()?;
    running.attach(&mut tracer)?;
    let deadline = args.duration.map(|time| Instant::now() + time);
    let mut failure = Ok(());
    while failure.is_ok() && !stop.is_set() && !running.are_over(&tracer) {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break;
        }
        failure = tracer.step();
    }
    let (_, written) = tracer.finish()?;
    failure.and(written)?;
    Ok(rows.report(whom(args)))
}

/// `process 1234`, `processes 1234, 1300`, `all processes`.
fn whom(args: &ReportArgs) -> String {
    let pids: Vec<String> = args.pids.iter().map(u32::to_string).collect();
    match args.pids.len() {
        _ if args.all => "all processes".to_owned(),
        1 => format!("process {}", pids.join("")),
        _ => format!("processes {}", pids.join(", ")),
    }
}

/// What `--fail-on` says. `changes`: of two recordings.
pub(super) fn gates(rules: &[String], changes: bool) -> Result<Vec<Gate>> {
    let parse = |rule: &String| {
        let said = |why| Usage(format!("--fail-on {rule}: {why}"));
        Gate::parse(rule, changes).map_err(|why| anyhow::Error::new(said(why)))
    };
    rules.iter().map(parse).collect()
}

/// The page says so as well; who looks at a file of JSON or HTML should know at once.
pub(super) fn warn(report: &Report) {
    if let Some(why) = &report.source.cut {
        let until = report.source.until.map(|until| format!("; {until}"));
        let until = until.unwrap_or_default();
        say(format_args!(
            "gpuscope: {} was cut off: {why}{until}",
            report.source.name
        ));
    }
}

/// Where a page of HTML goes, if one is asked for; `-` is stdout.
fn page(args: &ReportArgs) -> Result<Option<Page>> {
    let Some(path) = &args.html else { return Ok(None) };
    Content::Page.check(Some(path), "--html FILE.html")?;
    Page::begin(path).map(Some)
}

fn write(args: &ReportArgs, page: Option<Page>, report: &Report) -> Result<()> {
    if let (Some(page), Some(path)) = (page, &args.html) {
        page.write(&html::page(report))?;
        if path != Path::new("-") {
            say(format_args!("gpuscope: wrote {}", path.display()));
        }
        return Ok(());
    }
    let page = match (args.json, args.md) {
        (true, _) => json::to_line(report),
        (_, true) => markdown::page(report),
        _ => text::page(report, coloured(args.paint.color), columns(&std::io::stdout())),
    };
    put(Output::stdout(), &page)
}

pub(super) fn coloured(colour: Colour) -> bool {
    prepare::coloured(colour, std::io::stdout().is_terminal())
}

/// Writes a page.
pub(super) fn put(mut output: Output, page: &str) -> Result<()> {
    output.write(page.as_bytes());
    output.check()
}

/// The exit status, after what was demanded and is not so was said; `more` of it is known already.
pub(super) fn status(gates: &[Gate], report: &Report, more: Vec<String>) -> Result<ExitCode> {
    let mut matches = more;
    for gate in gates {
        match gate.matches(report) {
            Ok(lines) => matches.extend(lines),
            Err(why) => bail!(why),
        }
    }
    prepare::say_matches(&matches);
    Ok(match matches.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(Rule::STATUS),
    })
}
