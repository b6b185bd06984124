//! `gpuscope run -- CMD…`: trace a command and its children from their first call.

use super::prepare::{self, StopFlag};
use crate::cli::RunArgs;
use crate::output::say;
use crate::probe::launch::{Held, shell_status};
use crate::refusal::message;
use crate::tracer::{Scope, Tracer};
use anyhow::Result;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, ExitCode, ExitStatus};

/// gpuscope itself failed; every other status may be the command's.
pub const FAILED: u8 = 125;

/// Runs the command; the exit status is the command's own.
///
/// # Errors
/// None that the caller has to print: failures are printed here, because their exit status differs.
pub fn run(args: RunArgs) -> Result<ExitCode> {
    let status = traced(args).unwrap_or_else(|error| {
        say(format_args!("gpuscope: {}", message(&error)));
        FAILED
    });
    Ok(ExitCode::from(status))
}

fn traced(args: RunArgs) -> Result<u8> {
    let options = args.options;
    let mut tracer = prepare::tracer(&options, Scope::Processes(Vec::new()), &args.command)?;
    let stop = prepare::stop_flag()?;
    if let Some(program) = args.command.first().and_then(|name| find_program(name)) {
        tracer.add_program(&program);
    }
    let held = Held::fork(&args.command)?;
    let pid = held.pid();
    tracer.add_process(pid)?;
    tracer.step()?;
    let mut child = match held.release() {
        Ok(child) => child,
        Err(error) => {
            say(format_args!("gpuscope: {error}"));
            return Ok(error.exit_status());
        }
    };
    let (status, failure) = follow(&mut tracer, &mut child, &stop)?;
    let (summary, written) = tracer.finish()?;
    prepare::print_summary(options.summary, &summary);
    match failure.map_or(written, Err) {
        Ok(()) => Ok(shell_status(status)),
        Err(error) => {
            say(format_args!("gpuscope: {}", message(&error)));
            Ok(if status.success() { FAILED } else { shell_status(status) })
        }
    }
}

/// Traces until the command ends. A broken output does not end it.
fn follow(tracer: &mut Tracer, child: &mut Child, stop: &StopFlag) -> Result<(ExitStatus, Option<anyhow::Error>)> {
    let (mut failure, mut told) = (None, false);
    loop {
        if let Err(error) = tracer.step() {
            failure.get_or_insert(error);
        }
        if let Some(status) = child.try_wait()? {
            return Ok((status, failure));
        }
        if stop.is_set() && !told {
            // a terminal's Ctrl-C reaches the command by itself; kill(1) on us does not
            told = true;
            pass_on(child);
        }
    }
}

/// Asks the command to end as we were asked to.
fn pass_on(child: &Child) {
    // SAFETY: `kill` takes plain numbers; the child has not been waited for, so its id is still its own
    unsafe {
        if libc::isatty(0) == 0 {
            libc::kill(child.id() as i32, libc::SIGTERM);
        }
    }
}

/// Where a shell would find the program.
fn find_program(name: &OsStr) -> Option<PathBuf> {
    if name.to_string_lossy().contains('/') {
        return Some(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
