//! `gpuscope record`, and the recordings of other commands: rows into files, until something ends it.

use super::launched::{self, End, Launched};
use super::prepare::{self, Subject};
use super::running::Running;
use crate::cli::{Content, DumpOn, Options, RecordArgs, Rotate, Stacks, SummaryFormat};
use crate::clock::clock_now;
use crate::model::summary::Summary;
use crate::output::{file, say};
use crate::record::Meta;
use crate::refusal::{Usage, message};
use crate::sink::summary::{MORE_ROOM, engine_text};
use crate::sink::{cost, coverage, findings};
use crate::text::quantity;
use crate::trace::Recorder;
use crate::trace::store::{self, Keeping, Plan, Ring, Store};
use crate::trace::trigger::Cause;
use crate::tracer::Tracer;
use anyhow::{Context, Result, anyhow, bail};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A file must have room for some rows, and for the totals.
const SMALLEST_BUDGET: u64 = 1 << 20;
const SHORTEST_RING: Duration = Duration::from_secs(1);
/// Lines of what is not known of devices.
const FEW_GAPS: usize = 8;

/// Records a command, or processes that already run.
///
/// # Errors
/// What could not be recorded, and why; of a command it is printed here, because its exit status differs.
pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode> {
    match args.command.is_empty() {
        true => of_running(args),
        false => Ok(launched::status_of(|| of_command(args))),
    }
}

fn of_running(args: &RecordArgs) -> Result<ExitCode> {
    if args.pids.is_empty() && !args.all {
        let words = "nothing to record\nhint: -p PID, --all for every process, or -- CMD to start one";
        bail!(Usage(words.to_owned()));
    }
    let running = Running {
        pids: &args.pids,
        all: args.all,
    };
    let (mut tracer, mut keeper) = begun(args, &Subject::Running(running.scope()?))?;
    let stop = prepare::stop_flag()?;
    running.attach_and(&mut tracer, |tracer| {
        prepare::watch_gpu_of(tracer, args.gpu, &args.options())
    })?;
    let deadline = args.duration.map(|time| Instant::now() + time);
    let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let over = |tracer: &Tracer| stop.is_set() || is_late() || running.are_over(tracer);
    let mut outcome = Ok(());
    while outcome.is_ok() && keeper.goes_on(&mut tracer) && !over(&tracer) {
        outcome = tracer.step();
    }
    let (summary, written) = keeper.finish(tracer, args)?;
    outcome.and(written)?;
    Ok(prepare::status(&prepare::matches(&args.fail_on, &summary)))
}

fn of_command(args: &RecordArgs) -> Result<u8> {
    let (mut tracer, mut keeper) = begun(args, &Subject::Command(&args.command, &args.start))?;
    prepare::watch_gpu(&mut tracer, args.gpu, &args.options())?;
    let mut launched = match Launched::start(tracer, &args.command, &args.start)? {
        Ok(launched) => launched,
        Err(status) => return Ok(status),
    };
    let (end, outcome) = launched.follow_while(|tracer| keeper.goes_on(tracer))?;
    let (tracer, command) = launched.part();
    let (summary, written) = keeper.finish(tracer, args)?;
    let mut outcome = outcome.and(written);
    let end: End = match end {
        Some(end) => end,
        None => {
            if let Err(error) = outcome {
                say(format_args!("gpuscope: {}", message(&error)));
                outcome = Err(anyhow!("the recording ended before the command"));
            }
            say("gpuscope: the command goes on, and is not recorded any more");
            command.wait()?
        }
    };
    let matches = prepare::matches(&args.fail_on, &summary);
    Ok(end.conclude(outcome, &matches))
}

/// What `-o FILE.arrows` of other commands writes.
///
/// # Errors
/// As [`prepare::begin`].
pub(crate) fn tracer_of_file(options: &Options, subject: &Subject) -> Result<Tracer> {
    if options.quiet {
        let words = "-q writes no rows, and a recording has nothing else\nhint: drop -q, or -o and --format";
        bail!(Usage(words.to_owned()));
    }
    let plan = Plan {
        path: options.output.clone().unwrap_or_else(|| PathBuf::from("-")),
        keeping: Keeping::Whole,
        budget: None,
    };
    begin(options, subject, &plan).map(|(tracer, _)| tracer)
}

fn begin(options: &Options, subject: &Subject, plan: &Plan) -> Result<(Tracer, Store)> {
    if plan.path == Path::new("-") && std::io::stdout().is_terminal() {
        let words = "a recording is no text for a terminal\nhint: -o FILE.arrows";
        bail!(Usage(words.to_owned()));
    }
    let mut store = None;
    let output = || Ok(store.insert(Store::create(plan)?).output());
    let mut tracer = prepare::begin(options, subject, Some(Stacks::Sync), output)?;
    let store = store.context("the recording was not begun")?;
    let clock = clock_now();
    let meta = Meta::here(clock, prepare::words(subject.command()), tracer.tier().to_owned());
    let recorder = Recorder::new(&meta).context("failed to begin a recording")?;
    tracer.write_to(Box::new(recorder.with_trigger(store.trigger.clone())), &meta);
    tracer.watch_ranges();
    Ok((tracer, store))
}

/// Looks after what is written.
struct Keeper {
    store: Store,
    plan: Plan,
    /// SIGUSR1 has come.
    asked: Arc<AtomicBool>,
    /// What could not be written beside the recording itself.
    failure: Result<()>,
}

fn begun(args: &RecordArgs, subject: &Subject) -> Result<(Tracer, Keeper)> {
    let plan = plan(args)?;
    let (tracer, store) = begin(&args.options(), subject, &plan)?;
    let asked = Arc::default();
    if matches!(plan.keeping, Keeping::Ring(_)) {
        signal_hook::flag::register(libc::SIGUSR1, Arc::clone(&asked)).context("failed to handle SIGUSR1")?;
    }
    let keeper = Keeper {
        store,
        plan,
        asked,
        failure: Ok(()),
    };
    Ok((tracer, keeper))
}

/// What is not known of what devices did.
fn say_gaps(summary: &Summary) {
    let gaps: Vec<String> = summary.gpu.iter().flat_map(coverage::gaps).collect();
    for gap in gaps.iter().take(FEW_GAPS) {
        say(format_args!("GPU: {gap}"));
    }
    if let more @ 1.. = gaps.len().saturating_sub(FEW_GAPS) {
        say(format_args!("GPU: {more} more such lines (--summary text)"));
    }
}

impl Keeper {
    /// After each step: whether there is anything more to record.
    fn goes_on(&mut self, tracer: &mut Tracer) -> bool {
        if self.asked.swap(false, Ordering::Relaxed) {
            self.store.trigger.raise(Cause::Signal);
        }
        self.turn();
        tracer.flush().is_ok() && !tracer.output_closed() && !self.store.kept().0.full
    }

    fn turn(&mut self) {
        match self.store.turn() {
            Ok(None) => {}
            Ok(Some(said)) => say(format_args!("gpuscope: {said}")),
            Err(error) => {
                say(format_args!("gpuscope: {}", message(&error)));
                self.failure = Err(anyhow!("a file of the last moments is missing"));
            }
        }
    }

    /// Ends the recording and says what there is of it.
    fn finish(mut self, tracer: Tracer, args: &RecordArgs) -> Result<(Summary, Result<()>)> {
        let (summary, written) = tracer.finish()?;
        self.turn();
        prepare::print_summary(args.summary, &summary);
        if args.summary == SummaryFormat::None {
            say(findings::to_text(&summary.findings).trim_matches('\n'));
            say_gaps(&summary);
            say(cost::headline_of(&summary));
            cost::getters_hint(&summary).iter().for_each(say);
            say(summary.engine.as_ref().map(engine_text).unwrap_or_default());
        }
        self.conclude(&summary);
        Ok((summary, written.and(self.failure)))
    }

    fn conclude(&self, summary: &Summary) {
        let (kept, came_by) = self.store.kept();
        if kept.full {
            say("gpuscope: recording stopped: --max-size is reached");
        }
        if summary.lost_events > 0 {
            say(format_args!(
                "gpuscope: {} calls have no row of their own; hint: {}",
                quantity::count(summary.lost_events),
                MORE_ROOM
            ));
        }
        let rows = quantity::plural(kept.rows, "row");
        let size = quantity::bytes(kept.bytes);
        let deleted = match kept.deleted {
            0 => String::new(),
            number => format!(
                "; {} deleted to stay within --max-size",
                quantity::plural(number, "older file")
            ),
        };
        match kept.files.as_slice() {
            [] => say(format_args!(
                "gpuscope: {} came by, and nothing had them written",
                quantity::plural(came_by, "row")
            )),
            [file] => say(format_args!(
                "gpuscope: {rows}, {size} in {}{deleted}\n  gpuscope report {}",
                file.display(),
                file.display()
            )),
            [first, .., last] => say(format_args!(
                "gpuscope: {rows}, {size} in {} to {}{deleted}\n  gpuscope report {}",
                first.display(),
                last.display(),
                self.next_file(last).display()
            )),
        }
    }

    /// Which of several files a report is made of.
    fn next_file<'a>(&'a self, last: &'a Path) -> &'a Path {
        match self.plan.keeping {
            Keeping::Parts(_) => &self.plan.path,
            _ => last,
        }
    }
}

fn plan(args: &RecordArgs) -> Result<Plan> {
    let keep = &args.keep;
    let keeping = match (keep.rotate, keep.ring) {
        (Some(Rotate::Bytes(bytes)), _) => Keeping::Parts(store::Rotate::Bytes(bytes)),
        (Some(Rotate::Time(time)), _) => Keeping::Parts(store::Rotate::Time(time)),
        (None, Some(time)) => Keeping::Ring(ring(args, time)?),
        (None, None) => Keeping::Whole,
    };
    if keep.max_size.is_some_and(|size| size < SMALLEST_BUDGET) {
        bail!(Usage("--max-size is too small\nhint: at least 1MiB".to_owned()));
    }
    if let (Some(Rotate::Bytes(part)), Some(all)) = (keep.rotate, keep.max_size)
        && all < part.saturating_mul(2)
    {
        let words =
            "--max-size has no room for two files of --rotate\nhint: a smaller --rotate, or a larger --max-size";
        bail!(Usage(words.to_owned()));
    }
    Content::Recording.check(
        args.output.as_deref(),
        "-o FILE.arrows, of which gpuscope export makes the others; gpuscope run -o FILE.jsonl writes JSON lines",
    )?;
    let path = args.output.clone().map_or_else(default_path, Ok)?;
    if path == Path::new("-") && keeping != Keeping::Whole {
        bail!(Usage(
            "stdout is one file\nhint: -o FILE with --rotate and --ring".to_owned()
        ));
    }
    Ok(Plan {
        path,
        keeping,
        budget: keep.max_size,
    })
}

fn ring(args: &RecordArgs, time: Duration) -> Result<Ring> {
    if time < SHORTEST_RING {
        bail!(Usage("--ring is too short\nhint: at least 1s".to_owned()));
    }
    let on = |cause| args.keep.dump_on.contains(&cause);
    Ok(Ring {
        time,
        bytes: args.keep.ring_memory,
        on_error: on(DumpOn::Error),
        on_xid: on(DumpOn::Xid),
        on_exit: on(DumpOn::Exit),
    })
}

/// A new name in the folder `traces`, which is made.
fn default_path() -> Result<PathBuf> {
    let folder = Path::new("traces");
    file::create_folder(folder)?;
    let stamp = stamp();
    let name = |number: u32| match number {
        1 => folder.join(format!("trace_{stamp}.arrows")),
        _ => folder.join(format!("trace_{stamp}_{number}.arrows")),
    };
    let free = (1..1000)
        .map(name)
        .find(|path| std::fs::symlink_metadata(path).is_err());
    free.context("failed to find a name that is free in the folder traces\nhint: -o FILE")
}

/// The local time, as in file names.
fn stamp() -> String {
    // SAFETY: the calls only fill the structures that they are given
    let now = unsafe {
        let seconds = libc::time(std::ptr::null_mut());
        let mut now = std::mem::zeroed::<libc::tm>();
        libc::localtime_r(&raw const seconds, &raw mut now);
        now
    };
    format!(
        "{:04}-{:02}-{:02}_{:02}-{:02}-{:02}",
        now.tm_year + 1900,
        now.tm_mon + 1,
        now.tm_mday,
        now.tm_hour,
        now.tm_min,
        now.tm_sec
    )
}
