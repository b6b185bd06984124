//! `gpuscope trace`: running processes, until Ctrl-C.

use super::prepare;
use crate::cli::TraceArgs;
use crate::output::say;
use crate::probe::machine;
use crate::refusal::Usage;
use crate::tracer::{Scope, Tracer};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Traces until a signal, the time limit, the end of all traced processes, or until nobody reads the output.
///
/// # Errors
/// What could not be traced, and why.
pub fn run(args: TraceArgs) -> Result<ExitCode> {
    if args.pids.is_empty() && !args.all {
        let words = "nothing to trace\nhint: -p PID, or --all for every process; gpuscope run -- CMD starts one";
        bail!(Usage(words.to_owned()));
    }
    for pid in &args.pids {
        check_process(*pid)?;
    }
    let scope = if args.all {
        Scope::All
    } else {
        Scope::Processes(args.pids.clone())
    };
    let mut tracer = prepare::tracer(&args.options, scope, &[])?;
    let stop = prepare::stop_flag()?;
    attach(&mut tracer, &args)?;
    let deadline = args.duration.map(|time| Instant::now() + time);
    let over = |tracer: &Tracer| {
        stop.is_set()
            || deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || tracer.output_closed()
            || (!args.all && !args.pids.iter().any(|pid| is_alive(*pid)))
    };
    let mut failure = Ok(());
    while failure.is_ok() && !over(&tracer) {
        failure = tracer.step();
    }
    let (summary, written) = tracer.finish()?;
    prepare::print_summary(args.options.summary, &summary);
    failure.and(written).map(|()| ExitCode::SUCCESS)
}

fn attach(tracer: &mut Tracer, args: &TraceArgs) -> Result<()> {
    for pid in &args.pids {
        tracer.add_process(*pid)?;
    }
    if args.all {
        tracer.add_running();
    }
    say(format_args!(
        "gpuscope: tracing {} functions by {}; Ctrl-C ends it",
        tracer.functions(),
        tracer.tier()
    ));
    Ok(())
}

fn check_process(pid: u32) -> Result<()> {
    if !is_alive(pid) {
        bail!("there is no process {pid}\nhint: pgrep -a python; nvidia-smi also lists processes that use a GPU");
    }
    if machine::shadow_stack_in_the_way(pid) {
        bail!(
            "process {pid} has a shadow stack, and return probes of this kernel would kill it\nhint: use Linux 6.11 or newer"
        );
    }
    let exe = Path::new("/proc").join(pid.to_string()).join("exe");
    let file = match crate::elf::ElfFile::open(&exe) {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    Err(anyhow::Error::new(file)).with_context(|| format!("process {pid} cannot be traced"))
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
