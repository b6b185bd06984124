//! `gpuscope preload`: programs that can be traced later.

use super::launched::FAILED;
use super::stdout::closed_is_fine;
use crate::activity;
use crate::cli::PreloadArgs;
use crate::inside::standby;
use crate::output::say;
use crate::probe::launch::StartError;
use crate::refusal;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Becomes the command, prints what a command needs, or answers an agent.
///
/// # Errors
/// There is no folder for the agent, or the environment cannot be printed.
pub(crate) fn run(args: &PreloadArgs) -> Result<ExitCode> {
    if let (Some(fd), Some(folder)) = (args.plan, &args.folder) {
        let paths: Vec<PathBuf> = args.command.iter().map(PathBuf::from).collect();
        standby::plan(fd, folder, &paths)?;
        return Ok(ExitCode::SUCCESS);
    }
    let environment = standby::environment(args.folder.as_deref(), std::env::var_os("LD_PRELOAD"));
    let Some((program, words)) = args.command.split_first() else {
        print(&environment?)?;
        return Ok(ExitCode::SUCCESS);
    };
    Ok(ExitCode::from(match environment {
        Ok(environment) => become_command(program, words, environment),
        Err(error) => {
            say(format_args!("gpuscope: {}", refusal::message(&error)));
            FAILED
        }
    }))
}

/// As `env` and containers take it.
fn print(environment: &[(OsString, OsString)]) -> Result<()> {
    let mut out = io::stdout().lock();
    let mut lines = environment
        .iter()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes(), b"\n"].concat());
    closed_is_fine(lines.try_for_each(|line| out.write_all(&line)))
}

/// Returns only where that fails: the exit status.
fn become_command(program: &OsStr, words: &[OsString], environment: Vec<(OsString, OsString)>) -> u8 {
    let mut command = Command::new(program);
    command.args(words).envs(environment);
    if activity::is_refused_by(program) {
        command.env_remove(activity::INJECTION);
    }
    let failure = command.exec();
    let error = StartError::of(program.to_owned(), failure);
    say(format_args!("gpuscope: {error}"));
    error.exit_status()
}
