//! One subcommand per file.

mod coverage;
pub mod doctor;
pub mod functions;
pub mod launched;
pub mod leaks;
pub mod man;
pub mod prepare;
pub mod run;
pub mod running;
pub mod trace;

use crate::cli::{Cli, Command};
use anyhow::Result;
use clap::CommandFactory;
use std::process::ExitCode;

/// Runs the subcommand that was asked for.
///
/// # Errors
/// What it could not do, and why.
pub fn execute(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Command::Run(args) => run::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Leaks(args) => leaks::run(&args),
        Command::Functions(args) => functions::run(&args),
        Command::Doctor(args) => doctor::run(args.pid, args.json),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "gpuscope", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Man => man::run(),
    }
}
