//! Parses, runs, and turns an error into one message and an exit status.

use clap::Parser;
use clap::error::ErrorKind;
use gpuscope::cli::Cli;
use gpuscope::output::say;
use gpuscope::probe::{calibrate, lease, remover};
use gpuscope::refusal::{self, Usage};
use gpuscope::stack;
use gpuscope::{command, foreign, space, version};
use std::io::Write;
use std::process::ExitCode;

const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    remover::enter();
    foreign::worker::enter(&[
        foreign::HANDS,
        stack::NAMER,
        lease::GUARDIAN,
        #[cfg(any(feature = "record", feature = "serve"))]
        command::writer::WRITER,
    ]);
    if calibrate::answer() {
        return ExitCode::SUCCESS;
    }
    if let Err(error) = space::check_starting() {
        say(format_args!("gpuscope: {error}"));
        return match runs_a_program() {
            true => ExitCode::from(command::launched::FAILED),
            false => ExitCode::FAILURE,
        };
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    match command::execute(cli) {
        Ok(status) => status,
        Err(error) => {
            say(format_args!("gpuscope: {}", refusal::message(&error)));
            match error.downcast_ref::<Usage>() {
                Some(_) => ExitCode::from(WRONG_USAGE),
                None => ExitCode::FAILURE,
            }
        }
    }
}

/// `--help` and `--version` come this way, too.
fn refused(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::DisplayVersion && std::env::args_os().any(|word| word == "--verbose" || word == "-v")
    {
        drop(write!(std::io::stdout(), "{}", version::this().long()));
        return ExitCode::SUCCESS;
    }
    match gpuscope::cli::mistakes::explain(error) {
        Some(words) => say(format_args!("gpuscope: {words}")),
        None => drop(error.print()),
    }
    match (error.use_stderr(), runs_a_program()) {
        (false, _) => ExitCode::SUCCESS,
        // other statuses are the command's own
        (true, true) => ExitCode::from(command::launched::FAILED),
        (true, false) => ExitCode::from(WRONG_USAGE),
    }
}

/// Whether the words, which have not been understood, are to run a program, whose statuses are its own.
fn runs_a_program() -> bool {
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(command) if command == "leaks" || command == "record" => words.any(|word| word == "--"),
        command => command.is_some_and(|command| command == "run" || command == "preload"),
    }
}
