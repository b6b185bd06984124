//! One subcommand per file.

mod coverage;
#[cfg(feature = "record")]
pub(crate) mod diff;
pub(crate) mod doctor;
mod explain;
#[cfg(feature = "record")]
pub(crate) mod export;
#[cfg(feature = "serve")]
mod fleet;
pub(crate) mod functions;
#[cfg(feature = "serve")]
mod job_report;
pub mod launched;
pub(crate) mod leaks;
pub(crate) mod man;
mod preload;
pub(crate) mod prepare;
#[cfg(feature = "record")]
mod progress;
#[cfg(feature = "record")]
mod reading;
#[cfg_attr(not(feature = "record"), path = "no_record.rs")]
pub(crate) mod record;
#[cfg(feature = "record")]
pub(crate) mod report;
mod rights;
pub(crate) mod run;
pub(crate) mod running;
mod screen;
#[cfg(feature = "serve")]
pub(crate) mod serve;
mod stdout;
#[cfg(feature = "record")]
pub(crate) mod timeline;
#[cfg(feature = "top")]
pub(crate) mod top;
pub(crate) mod trace;
mod traced;
#[cfg(any(feature = "record", feature = "serve"))]
mod whole_file;
#[cfg(any(feature = "record", feature = "serve"))]
pub mod writer;

use crate::cli::{Cli, Command};
use anyhow::Result;
use clap::CommandFactory;
use std::process::ExitCode;

/// Runs the subcommand that was asked for.
///
/// # Errors
/// What it could not do, and why.
pub fn execute(cli: Cli) -> Result<ExitCode> {
    // errors say what libbpf's words mean; -v asks for them
    crate::probe::route_messages(false);
    crate::probe::survive_file_size();
    match cli.command {
        Command::Run(args) => run::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Record(args) => record::run(&args),
        Command::Leaks(args) => leaks::run(&args),
        Command::Report(args) => report(&args),
        Command::Diff(args) => diff(&args),
        Command::Serve(args) => serve(&args),
        Command::JobReport(args) => job_report(&args),
        Command::Fleet(args) => fleet(&args),
        Command::Top(args) => top(&args),
        Command::Timeline(args) => timeline(&args),
        Command::Export(args) => export(&args),
        Command::Preload(args) => preload::run(&args),
        Command::Functions(args) => functions::run(&args),
        Command::Doctor(args) => doctor::run(args.pid, args.json),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "gpuscope", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Man => man::run(),
    }
}

#[cfg(feature = "serve")]
use serve::run as serve;

#[cfg(not(feature = "serve"))]
fn serve(_: &crate::cli::ServeArgs) -> Result<ExitCode> {
    let words = "serve: this build has no exporter\nhint: cargo build with the feature serve, which is on by default";
    anyhow::bail!(crate::refusal::Usage(words.to_owned()))
}

#[cfg(feature = "serve")]
use job_report::run as job_report;

#[cfg(not(feature = "serve"))]
fn job_report(_: &crate::cli::JobReportArgs) -> Result<ExitCode> {
    let words =
        "job-report: this build has no exporter\nhint: cargo build with the feature serve, which is on by default";
    anyhow::bail!(crate::refusal::Usage(words.to_owned()))
}

#[cfg(feature = "serve")]
use fleet::run as fleet;

#[cfg(not(feature = "serve"))]
fn fleet(_: &crate::cli::FleetArgs) -> Result<ExitCode> {
    let words = "fleet: this build has no exporter\nhint: cargo build with the feature serve, which is on by default";
    anyhow::bail!(crate::refusal::Usage(words.to_owned()))
}

#[cfg(feature = "top")]
use top::run as top;

#[cfg(not(feature = "top"))]
fn top(_: &crate::cli::TopArgs) -> Result<ExitCode> {
    let words = "top: this build has no screen\nhint: cargo build with the feature top, which is on by default";
    anyhow::bail!(crate::refusal::Usage(words.to_owned()))
}

#[cfg(feature = "record")]
use {diff::run as diff, export::run as export, report::run as report, timeline::run as timeline};

#[cfg(not(feature = "record"))]
fn export(_: &crate::cli::ExportArgs) -> Result<ExitCode> {
    without_record("export")
}

#[cfg(not(feature = "record"))]
fn timeline(_: &crate::cli::TimelineArgs) -> Result<ExitCode> {
    without_record("timeline")
}

#[cfg(not(feature = "record"))]
fn report(_: &crate::cli::ReportArgs) -> Result<ExitCode> {
    without_record("report")
}

#[cfg(not(feature = "record"))]
fn diff(_: &crate::cli::DiffArgs) -> Result<ExitCode> {
    without_record("diff")
}

#[cfg(not(feature = "record"))]
fn without_record(command: &str) -> Result<ExitCode> {
    let words = "this build reads no recordings\nhint: cargo build with the feature record, which is on by default";
    anyhow::bail!(crate::refusal::Usage(format!("{command}: {words}")))
}
