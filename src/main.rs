//! Parses, runs, and turns an error into one message and an exit status.

use clap::Parser;
use gpuscope::cli::Cli;
use gpuscope::command;
use gpuscope::output::say;
use std::process::ExitCode;

fn main() -> ExitCode {
    match command::execute(Cli::parse()) {
        Ok(status) => status,
        Err(error) => {
            say(format_args!("gpuscope: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
