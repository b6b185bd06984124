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
    if let Some(program) = args.command.first().and_then(|name| find_program(name)) {
        tracer.add_program(&program);
    }
    let held = Held::fork(&args.command)?;
    // only now: the command inherits which signals are ignored, and would not inherit a handler
    let stop = prepare::stop_flag()?;
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
    let (end, failure) = follow(&mut tracer, &mut child, &stop)?;
    let (summary, written) = tracer.finish()?;
    prepare::print_summary(options.summary, &summary);
    let status = match end {
        End::Ended(status) => shell_status(status),
        End::Told(signal) => {
            say(format_args!(
                "gpuscope: ended by signal {signal}; process {} goes on untraced",
                child.id()
            ));
            u8::try_from(128 + signal).unwrap_or(FAILED)
        }
    };
    match failure.map_or(written, Err) {
        Ok(()) => Ok(status),
        Err(error) => {
            say(format_args!("gpuscope: {}", message(&error)));
            Ok(if status == 0 { FAILED } else { status })
        }
    }
}

/// Why tracing stopped.
enum End {
    /// The command ended.
    Ended(ExitStatus),
    /// We were told to end, by this signal; the command lives on.
    Told(i32),
}

/// Traces until the command ends or we are told to end. A broken output ends neither.
fn follow(tracer: &mut Tracer, child: &mut Child, stop: &StopFlag) -> Result<(End, Option<anyhow::Error>)> {
    let mut failure = None;
    loop {
        if let Err(error) = tracer.step() {
            failure.get_or_insert(error);
        }
        if let Some(status) = child.try_wait()? {
            return Ok((End::Ended(status), failure));
        }
        if let Some(signal) = stop.signal().filter(|signal| !reaches_command(*signal)) {
            return Ok((End::Told(signal), failure));
        }
    }
}

/// A terminal's Ctrl-C goes to the command as well: what it does on its way out is part of the trace.
fn reaches_command(signal: i32) -> bool {
    // SAFETY: asks about an open descriptor
    signal == libc::SIGINT && unsafe { libc::isatty(0) } == 1
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
