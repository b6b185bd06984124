//! From options to a tracer that is ready: shared by all commands that trace.
//!
//! Owns which rows are traced, and what of a run cannot be told. What the kernel programs are told is `setup`'s, where
//! lines go `destination`'s, when a run ends `stop`'s, and what its exit status is `verdict`'s business.

mod destination;
mod env;
mod gpu;
mod place;
mod program;
mod runner;
mod setup;
mod stop;
mod verdict;

pub(crate) use destination::{coloured, destination, encoder, format, print_summary, words};
pub(crate) use gpu::{watch_gpu, watch_gpu_of};
pub(crate) use program::{find_program, search_path};
pub(crate) use runner::runner;
pub(crate) use setup::{CALL_RING, SPARE_ROWS, fleet_setup};
pub(crate) use stop::{StopFlag, stop_flag};
pub(crate) use verdict::{leaks, matches, say_matches, status};

use super::coverage::Coverage;
use crate::catalog::{Catalog, Layer};
use crate::cli::{LeaksArgs, MemoryStacks, Options, Stacks, Start, SummaryFormat, Which};
use crate::filter::Filter;
use crate::output::{Output, say};
use crate::probe::{self, EnginePlace, Setup};
use crate::refusal::Usage;
use crate::rows::{RunRows, Wish};
use crate::rule::Rule;
use crate::text::quantity::escaped;
use crate::tracer::{Scope, Tracer};
use anyhow::{Context, Result, bail};
use place::{Asked, Place};
use setup::{NO_RING, call_setup, setup};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Of a hook file: ten thousand rows.
const LARGEST_HOOKS: u64 = 1 << 20;
const PYTORCH: &str = include_str!("../../hooks/pytorch.toml");

/// Whom a run is about.
pub(crate) enum Subject<'a> {
    /// A command that it starts, and what that starts.
    Command(&'a [OsString], &'a Start),
    /// What runs already.
    Running(Scope),
}

impl Subject<'_> {
    fn scope(&self) -> Scope {
        match self {
            Subject::Command(..) => Scope::Processes(Vec::new()),
            Subject::Running(scope) => scope.clone(),
        }
    }

    /// What is started.
    pub(crate) fn command(&self) -> &[OsString] {
        match self {
            Subject::Command(command, _) => command,
            Subject::Running(_) => &[],
        }
    }
}

/// Loads what takes calls, as `options` ask, for `subject`; what it writes goes to `output`, once it has been told how. Call stacks
/// are those of `stacks`, where the options say nothing and the calls are followed.
///
/// # Errors
/// A wrong option, file or pattern, or what the kernel refuses.
pub(crate) fn begin(
    options: &Options,
    subject: &Subject,
    stacks: Option<Stacks>,
    output: impl FnOnce() -> Result<Output>,
) -> Result<Tracer> {
    probe::route_messages(options.verbose);
    let mut catalog = catalog_with_groups(&options.which)?;
    let which = &options.which;
    let filter = Filter::parse(&which.filter, &which.layer).map_err(|error| Usage(error.to_string()))?;
    let scope = subject.scope();
    let place = place::place(
        Asked {
            whose: &which.whose,
            only_in_kernel: place::only_in_kernel(&catalog, &filter),
            has_hooks: !which.hooks.is_empty(),
        },
        subject,
    )?;
    let filter = match takes_getters(which, place.is) {
        true => filter,
        false => filter.without_queries(),
    };
    if filter.has_layer(Layer::Kernel) {
        catalog.add_driver(probe::driver::dialect()).map_err(Usage)?;
    }
    let leaves_getters_out = filter.leaves_getters_out(&catalog);
    let coverage = Coverage::of(&filter, &catalog, place.is);
    options.fail_on.iter().try_for_each(|rule| coverage.check_rule(*rule))?;
    coverage.check_stacks(options.stacks)?;
    let stacks = options.stacks.or_else(|| coverage.most_stacks(stacks?));
    let not_looked_for = no_findings(options, &scope, &coverage);
    let wish = Wish {
        events: !options.quiet || not_looked_for.is_none(),
        ..wish(options, stacks, &coverage)
    };
    let rows = RunRows::new(catalog, filter, wish, SPARE_ROWS);
    check_filter(options, &rows)?;
    let setup = Setup {
        place: place.is,
        samples: options.stacks != Some(Stacks::None),
        ..call_setup(options, &scope)?
    };
    let mut tracer = Tracer::start(rows, setup, scope, output)?;
    say_place(&mut tracer, &place);
    say_ignored(&mut tracer, &place, which.whose.no_hold);
    watch_xids(&mut tracer, options)?;
    if let Some(unseen) = coverage.unseen() {
        tracer.declare_unseen(unseen);
    }
    if leaves_getters_out {
        tracer.declare_unseen(
            "calls that only ask (cudaGetDevice …) are not hooked; hint: --getters counts them".to_owned(),
        );
    }
    if options.full_names {
        tracer.show_full_names();
    }
    if stacks.is_some_and(|stacks| stacks != Stacks::None) {
        tracer.show_stacks();
    }
    look_for_findings(&mut tracer, options, not_looked_for)?;
    Ok(tracer)
}

/// All functions that may be hooked, but for those of the kernel's driver by name.
fn catalog_with_groups(which: &Which) -> Result<Catalog> {
    let mut catalog = catalog(&which.hooks)?;
    for group in &which.kernel {
        catalog
            .add_kernel_group(group)
            .map_err(|why| Usage(format!("--kernel: {why}")))?;
    }
    Ok(catalog)
}

/// # Errors
/// The exit status is to tell of faults, and they cannot be seen.
fn watch_xids(tracer: &mut Tracer, options: &Options) -> Result<()> {
    tracer.watch_xids(false)?;
    if options.fail_on.contains(&Rule::Xid) && !tracer.sees_xids() {
        bail!("--fail-on xid cannot be told: {}", tracer.unseen_xids().join("; "));
    }
    Ok(())
}

/// `not_looked_for`: why nobody looks for them.
///
/// # Errors
/// The exit status is to tell of them all the same.
fn look_for_findings(tracer: &mut Tracer, options: &Options, not_looked_for: Option<&'static str>) -> Result<()> {
    let asks = options.fail_on.iter().any(|rule| matches!(rule, Rule::Finding { .. }));
    match not_looked_for {
        Some(why) if asks => bail!(Usage(format!("--fail-on finding cannot be told: {why}"))),
        Some(why) => tracer.leave_findings_out(why),
        None => tracer.look_for_findings(),
    }
    Ok(())
}

/// Which engine a run has got, why, and what it does not see.
fn say_place(tracer: &mut Tracer, place: &Place) {
    tracer.declare_engine(place.chosen());
    if let Some(hindrance) = &place.hindrance {
        let words = format!("{hindrance}: what it calls is not seen from inside");
        say(format_args!(
            "gpuscope: {}; hint: --engine kernel, as root",
            escaped(&words)
        ));
        tracer.declare_unseen(words);
    }
    if place.is == EnginePlace::Inside {
        tracer.declare_unseen(
            "from inside: programs that do not load the agent \
             (linked statically, setuid, another C library, LD_PRELOAD set anew) or load CUDA by dlmopen; hint: --engine kernel, as root, sees them"
                .to_owned(),
        );
    }
}

/// What was asked for and has no effect from inside.
fn say_ignored(tracer: &mut Tracer, place: &Place, no_hold: bool) {
    let hold = "from inside: --no-hold has no effect: nobody's TracerPid changes, and a thread that loads a library waits \
                until it was looked at, for 2 s at most";
    if no_hold && place.is == EnginePlace::Inside {
        tracer.declare_unseen(hold.to_owned());
    }
}

/// From inside, calls that only ask cost so little that they are counted, too.
fn takes_getters(which: &Which, place: EnginePlace) -> bool {
    which.takes_getters() || (place == EnginePlace::Inside && !which.no_getters)
}

/// Why it cannot be told what is wrong: that follows from all calls together.
fn no_findings(options: &Options, scope: &Scope, coverage: &Coverage) -> Option<&'static str> {
    let which = &options.which;
    let some_left_out = !which.filter.is_empty() || !which.whose.comm.is_empty();
    let asks = options.fail_on.iter().any(|rule| matches!(rule, Rule::Finding { .. }));
    let unread = options.summary == SummaryFormat::None && !asks;
    match coverage {
        _ if options.quiet && unread => Some("nobody reads them (--summary none)"),
        _ if options.quiet && *scope == Scope::All => {
            Some("they follow from single calls, and --all -q only counts (hint: -p PID, or -o FILE.arrows)")
        }
        _ if which.errors || which.min_duration.is_some() => Some("--errors and --min-duration leave calls out"),
        _ if some_left_out => Some("--filter and --comm leave calls out"),
        Coverage { refused: Some(_), .. } => Some("returns of calls cannot be hooked here"),
        Coverage { work: false, .. } => Some("--layer leaves the driver out"),
        _ => None,
    }
}

fn wish(options: &Options, stacks: Option<Stacks>, coverage: &Coverage) -> Wish {
    let of = |wanted: fn(Stacks) -> bool| stacks.is_some_and(wanted);
    Wish {
        events: !options.quiet,
        // where only those are shown that fail or take long, none is too chatty
        chatty: options.which.chatty || options.which.errors || options.which.min_duration.is_some(),
        returns: coverage.refused.is_none(),
        results: options.which.errors,
        memory: coverage.memory,
        stacks: stacks != Some(Stacks::None),
        kernels: true,
        work: coverage.work,
        launch_stacks: of(Stacks::of_launches),
        sync_stacks: of(Stacks::of_waits),
    }
}

/// The same for who holds memory alone: no other function is hooked, and no call becomes a line.
///
/// # Errors
/// As [`begin`].
pub(crate) fn memory_tracer(args: &LeaksArgs, subject: &Subject) -> Result<Tracer> {
    probe::route_messages(args.verbose);
    let mut catalog = catalog(&args.hooks)?;
    add_frameworks(&mut catalog)?;
    let scope = subject.scope();
    let place = place::place(
        Asked {
            whose: &args.whose,
            only_in_kernel: place::only_in_kernel(&catalog, &Filter::memory()),
            has_hooks: !args.hooks.is_empty(),
        },
        subject,
    )?;
    if let Some(reason) = probe::machine::returns_refused().filter(|_| place.is == EnginePlace::Kernel) {
        bail!("what a call has allocated is seen when it returns, and that cannot be hooked: {reason}");
    }
    let wish = Wish {
        events: false,
        chatty: false,
        returns: true,
        memory: true,
        stacks: args.stacks != MemoryStacks::None,
        kernels: false,
        work: false,
        launch_stacks: false,
        sync_stacks: false,
        results: false,
    };
    let rows = RunRows::new(catalog, Filter::memory(), wish, SPARE_ROWS);
    let setup = Setup {
        ring_bytes: NO_RING,
        work_ring_bytes: NO_RING,
        place: place.is,
        ..setup(&args.whose, &scope)?
    };
    let mut tracer = Tracer::start(rows, setup, scope, || Ok(Output::stdout()))?;
    say_place(&mut tracer, &place);
    say_ignored(&mut tracer, &place, args.whose.no_hold);
    tracer.ask_devices();
    if !args.whose.comm.is_empty() {
        let words = "what other threads than those of --comm allocate, and what they free: that seems to be held";
        tracer.declare_unseen(words.to_owned());
    }
    Ok(tracer)
}

/// Allocators of frameworks, unless the user's files describe them.
fn add_frameworks(catalog: &mut Catalog) -> Result<()> {
    if catalog.library("pytorch").is_none() {
        catalog
            .add_hooks("hooks/pytorch.toml", PYTORCH)
            .context("the built-in hooks are wrong")?;
    }
    Ok(())
}

/// The built-in catalogue and the user's files.
///
/// # Errors
/// A file cannot be read or is wrong; with its name and line.
pub(crate) fn catalog(hooks: &[PathBuf]) -> Result<Catalog> {
    hook_texts(hooks)?.catalog()
}

/// Hook files that were read, and are not understood yet.
pub(crate) struct HookTexts(Vec<(String, String)>);

/// Reads them.
///
/// # Errors
/// One cannot be read, is no file, or too long.
pub(crate) fn hook_texts(hooks: &[PathBuf]) -> Result<HookTexts> {
    let text = |path: &PathBuf| {
        let text = hook_file(path).with_context(|| format!("failed to read the hook file {}", path.display()))?;
        Ok((path.display().to_string(), text))
    };
    hooks.iter().map(text).collect::<Result<_>>().map(HookTexts)
}

impl HookTexts {
    /// The built-in catalogue and their rows.
    ///
    /// # Errors
    /// One of them is wrong.
    pub(crate) fn catalog(&self) -> Result<Catalog> {
        let mut catalog = Catalog::builtin().context("the built-in catalogue is wrong")?;
        for (name, text) in &self.0 {
            catalog.add_hooks(name, text)?;
        }
        Ok(catalog)
    }
}

/// Who names a device or a pipe waits for nothing, and reads no more than a file of rows can have.
fn hook_file(path: &Path) -> Result<String> {
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        bail!("it is no regular file\nhint: write the rows to a file");
    }
    let mut text = String::new();
    file.take(LARGEST_HOOKS + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LARGEST_HOOKS {
        true => bail!("it is longer than 1 MiB"),
        false => Ok(text),
    }
}

/// A filter that selects nothing is a mistake.
fn check_filter(options: &Options, rows: &RunRows) -> Result<()> {
    let globs = rows.catalog.rows.iter().any(crate::catalog::Row::is_glob);
    let some = rows
        .catalog
        .rows
        .iter()
        .any(|row| rows.filter.selects(&rows.catalog, row));
    if !some && !globs {
        bail!(Usage(format!(
            "no known function matches --filter {}\nhint: gpuscope functions lists them",
            options.which.filter.join(" --filter ")
        )));
    }
    Ok(())
}
