//! From options to a tracer that is ready: shared by all commands that trace.

use super::coverage::Coverage;
use crate::catalog::{Catalog, Layer};
use crate::cli::{Colour, Format, LeaksArgs, MemoryStacks, Options, Stacks, SummaryFormat, Which, Whose};
use crate::filter::Filter;
use crate::model::memory::Report;
use crate::model::summary::Summary;
use crate::output::{Output, say};
use crate::probe::{self, Setup, Tier};
use crate::refusal::Usage;
use crate::rows::{RunRows, Wish};
use crate::rule::Rule;
use crate::sink::{Clock, Sink, json::Json, summary, text};
use crate::trace::Meta;
use crate::tracer::{Scope, Tracer, clock_now};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Rows that globs and functions unknown to the catalogue may add.
pub const SPARE_ROWS: usize = 4096;
/// A second of 100,000 allocations, and as many frees.
const MEMORY_RING: u32 = 16 << 20;
/// A ring that nothing is written to: a page.
const NO_RING: u32 = 4096;
/// Copies at a million a second leave room for the time that the reader may sleep.
const WORK_RING: u32 = 8 << 20;
const PYTORCH: &str = include_str!("../../hooks/pytorch.toml");
/// Largest ring, 1 GiB.
const LARGEST_RING: u64 = 1 << 30;

/// Loads the kernel programs as `options` ask, for the processes in `scope`.
///
/// # Errors
/// A wrong option, file or pattern, or what the kernel refuses.
pub fn tracer(options: &Options, scope: Scope, command: &[OsString]) -> Result<Tracer> {
    let format = format(options);
    if format == Format::Arrows {
        return super::record::tracer_of_file(options, scope, command);
    }
    let mut tracer = begin(options, scope, None, || destination(options.output.as_deref()))?;
    if !options.quiet {
        let clock = clock_now();
        let sink = sink(options, format, command, tracer.tier(), clock)?;
        tracer.write_to(sink, clock);
    }
    Ok(tracer)
}

/// The same without what it writes, which goes to `output`. Call stacks are those of `stacks`, where the options say
/// nothing and the calls are followed.
///
/// # Errors
/// As [`tracer`].
pub fn begin(
    options: &Options,
    scope: Scope,
    stacks: Option<Stacks>,
    output: impl FnOnce() -> Result<Output>,
) -> Result<Tracer> {
    probe::route_messages(options.verbose);
    let mut catalog = catalog(&options.which.hooks)?;
    for group in &options.which.kernel {
        catalog
            .add_kernel_group(group)
            .map_err(|why| Usage(format!("--kernel: {why}")))?;
    }
    let filter = filter(&options.which)?;
    if filter.has_layer(Layer::Kernel) {
        catalog.add_driver(probe::driver::dialect()).map_err(Usage)?;
    }
    let coverage = Coverage::of(&filter, &catalog);
    options.fail_on.iter().try_for_each(|rule| coverage.check_rule(*rule))?;
    coverage.check_stacks(options.stacks)?;
    let stacks = options.stacks.or_else(|| coverage.most_stacks(stacks?));
    let rows = RunRows::new(catalog, filter, wish(options, stacks, &coverage), SPARE_ROWS);
    check_filter(options, &rows)?;
    let setup = call_setup(options, &scope)?;
    let mut tracer = Tracer::start(rows, setup, scope, output()?)?;
    tracer.watch_xids(false)?;
    if options.fail_on.contains(&Rule::Xid) && !tracer.sees_xids() {
        bail!("--fail-on xid cannot be told: {}", tracer.unseen_xids().join("; "));
    }
    if let Some(unseen) = coverage.unseen() {
        tracer.declare_unseen(unseen);
    }
    if options.which.no_getters {
        tracer.declare_unseen("getters (cudaGetDevice …), which --no-getters leaves out".to_owned());
    }
    if options.full_names {
        tracer.show_full_names();
    }
    if stacks.is_some_and(|stacks| stacks != Stacks::None) {
        tracer.show_stacks();
    }
    let asks = options.fail_on.iter().any(|rule| matches!(rule, Rule::Finding { .. }));
    match no_findings(options, &coverage) {
        Some(why) if asks => bail!(Usage(format!("--fail-on finding cannot be told: {why}"))),
        Some(why) => tracer.leave_findings_out(why),
        None => tracer.look_for_findings(),
    }
    Ok(tracer)
}

fn filter(which: &Which) -> Result<Filter> {
    let filter = Filter::parse(&which.filter, &which.layer).map_err(|error| Usage(error.to_string()))?;
    Ok(if which.no_getters {
        filter.without_queries()
    } else {
        filter
    })
}

/// Why it cannot be told what is wrong: that follows from all calls together.
fn no_findings(options: &Options, coverage: &Coverage) -> Option<&'static str> {
    let which = &options.which;
    let some_left_out = !which.filter.is_empty() || !which.whose.comm.is_empty();
    match coverage {
        _ if options.quiet => Some("they follow from single calls, and -q takes none (hint: -o FILE.arrows instead)"),
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
        // few calls of a getter fail or take long: where only those are shown, none is too chatty
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
/// As [`tracer`].
pub fn memory_tracer(args: &LeaksArgs, scope: Scope) -> Result<Tracer> {
    probe::route_messages(args.verbose);
    let mut catalog = catalog(&args.hooks)?;
    add_frameworks(&mut catalog)?;
    if let Some(reason) = probe::machine::returns_refused() {
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
        ..setup(&args.whose, &scope)?
    };
    let mut tracer = Tracer::start(rows, setup, scope, Output::stdout())?;
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

/// What the rules find in `summary`.
pub fn matches(rules: &[Rule], summary: &Summary) -> Vec<String> {
    rules.iter().flat_map(|rule| rule.matches(summary)).collect()
}

/// What a rule about memory finds in `report`.
pub fn leaks(rule: Option<Rule>, report: &Report) -> Vec<String> {
    rule.map(|rule| rule.leaks(report)).unwrap_or_default()
}

/// Says what a rule has found.
pub fn say_matches(matches: &[String]) {
    for words in matches {
        say(format_args!("gpuscope: {words}"));
    }
}

/// The exit status after a trace of running processes that went well, after what a rule has found was said.
pub fn status(matches: &[String]) -> ExitCode {
    say_matches(matches);
    match matches {
        [] => ExitCode::SUCCESS,
        _ => ExitCode::from(Rule::STATUS),
    }
}

/// The built-in catalogue and the user's files.
///
/// # Errors
/// A file cannot be read or is wrong; with its name and line.
pub fn catalog(hooks: &[PathBuf]) -> Result<Catalog> {
    let mut catalog = Catalog::builtin().context("the built-in catalogue is wrong")?;
    for path in hooks {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("failed to read the hook file {}", path.display()))?;
        catalog.add_hooks(&path.display().to_string(), &text)?;
    }
    Ok(catalog)
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

fn call_setup(options: &Options, scope: &Scope) -> Result<Setup> {
    let ring = options.ring_size.max(4096).next_power_of_two();
    if ring > LARGEST_RING {
        bail!(Usage(
            "--ring-size is too large\nhint: at most 1GiB; --filter and -q make fewer events".to_owned()
        ));
    }
    Ok(Setup {
        ring_bytes: ring as u32,
        only_errors: options.which.errors,
        min_ns: options.which.min_duration.map_or(0, |time| time.as_nanos() as u64),
        ..setup(&options.which.whose, scope)?
    })
}

/// Of a trace of every process without events, with rings of so many bytes for memory and for work.
///
/// # Errors
/// `GPUSCOPE_TIER` is wrong.
pub fn quiet_setup(ring_bytes: u32) -> Result<Setup> {
    Ok(Setup {
        spare_rows: SPARE_ROWS,
        ring_bytes: NO_RING,
        memory_ring_bytes: ring_bytes,
        work_ring_bytes: ring_bytes,
        driver_counted: true,
        tier: forced_tier()?,
        ..Setup::default()
    })
}

/// What every trace has in common.
fn setup(whose: &Whose, scope: &Scope) -> Result<Setup> {
    let processes = matches!(scope, Scope::Processes(_));
    Ok(Setup {
        spare_rows: SPARE_ROWS,
        memory_ring_bytes: MEMORY_RING,
        work_ring_bytes: WORK_RING,
        only_targets: processes,
        follow_forks: processes,
        wait_for_attach: processes,
        uid: whose.uid,
        cgroup: whose.cgroup.as_deref().map(cgroup_id).transpose()?,
        comms: whose.comm.clone(),
        tier: forced_tier()?,
        ..Setup::default()
    })
}

/// `GPUSCOPE_TIER` is for tests and for measuring one way of attaching against another.
fn forced_tier() -> Result<Option<Tier>> {
    let Some(name) = std::env::var_os("GPUSCOPE_TIER") else {
        return Ok(None);
    };
    let tier = Tier::ALL.into_iter().find(|tier| name.to_str() == Some(tier.name()));
    tier.map(Some)
        .with_context(|| format!("GPUSCOPE_TIER={name:?} is none of uprobe.session, uprobe.multi, perf-link"))
}

/// A cgroup's id is the inode of its directory.
fn cgroup_id(path: &Path) -> Result<u64> {
    let full = if path.starts_with("/sys/fs/cgroup") {
        path.to_owned()
    } else {
        Path::new("/sys/fs/cgroup").join(path.strip_prefix("/").unwrap_or(path))
    };
    let file = File::open(&full).with_context(|| format!("failed to find the cgroup {}", full.display()))?;
    if !is_cgroup_v2(&file) {
        bail!(
            "{} is no cgroup (v2) directory\nhint: /proc/PID/cgroup names that of a process, after '0::'; mount | grep cgroup2",
            full.display()
        );
    }
    Ok(file.metadata()?.ino())
}

fn is_cgroup_v2(file: &File) -> bool {
    // SAFETY: the call only fills the structure that it is given
    unsafe {
        let mut found = std::mem::zeroed::<libc::statfs>();
        libc::fstatfs(file.as_raw_fd(), &raw mut found) == 0 && found.f_type == libc::CGROUP2_SUPER_MAGIC
    }
}

/// Where `-o` leads, else stdout.
///
/// # Errors
/// The file cannot be made.
pub fn destination(path: Option<&Path>) -> Result<Output> {
    match path {
        None => Ok(Output::stdout()),
        Some(path) if path == Path::new("-") => Ok(Output::stdout()),
        Some(path) => Output::create(path),
    }
}

fn format(options: &Options) -> Format {
    if let Some(format) = options.format {
        return format;
    }
    let path = options.output.as_deref().unwrap_or(Path::new("-"));
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    match extension {
        "jsonl" => Format::Jsonl,
        "arrows" => Format::Arrows,
        "json" => Format::Chrome,
        "pftrace" => Format::Perfetto,
        _ => Format::Text,
    }
}

fn sink(options: &Options, format: Format, command: &[OsString], tier: &str, clock: Clock) -> Result<Box<dyn Sink>> {
    let to_terminal = options.output.is_none() && std::io::stdout().is_terminal();
    Ok(match format {
        Format::Jsonl => Box::new(Json::new(clock, words(command), tier.to_owned())),
        Format::Perfetto if to_terminal => {
            bail!(Usage(
                "this format is not for a terminal\nhint: -o FILE.pftrace".to_owned()
            ))
        }
        Format::Chrome | Format::Perfetto => drawn(format, Meta::here(clock, words(command), tier.to_owned()))?,
        Format::Text | Format::Arrows => {
            let colour = coloured(options.paint.color, to_terminal);
            Box::new(text::Text::new(clock, text::local_zone(), colour))
        }
    })
}

#[cfg(feature = "record")]
fn drawn(format: Format, meta: Meta) -> Result<Box<dyn Sink>> {
    use crate::export::{Live, chrome, perfetto};
    Ok(match format {
        Format::Chrome => Box::new(Live::new(Box::new(chrome::form()), meta)),
        _ => Box::new(Live::new(Box::new(perfetto::form()), meta)),
    })
}

#[cfg(not(feature = "record"))]
fn drawn(_: Format, _: Meta) -> Result<Box<dyn Sink>> {
    let words = "this build writes no traces for Chrome and Perfetto\n\
                 hint: cargo build with the feature record, which is on by default";
    bail!(Usage(words.to_owned()))
}

/// A command line as text.
pub fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Whether to write in colours; `to_terminal`: that is where it goes.
pub fn coloured(colour: Colour, to_terminal: bool) -> bool {
    match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => to_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Writes the summary to stderr as asked.
pub fn print_summary(format: SummaryFormat, summary: &Summary) {
    match format {
        SummaryFormat::Text => say(summary::to_text(summary).trim_end_matches('\n')),
        SummaryFormat::Json => say(summary::to_json_line(summary)),
        SummaryFormat::None => {}
    }
}

/// Set by SIGINT, SIGTERM and SIGHUP; a second signal ends the process at once.
///
/// # Errors
/// A handler cannot be installed.
pub fn stop_flag() -> Result<StopFlag> {
    match ignores_hangup() {
        true => stop_flag_of(&[libc::SIGINT, libc::SIGTERM]),
        false => stop_flag_of(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]),
    }
}

/// The same by these signals.
///
/// # Errors
/// A handler cannot be installed.
pub fn stop_flag_of(signals: &[i32]) -> Result<StopFlag> {
    let flag = StopFlag::default();
    for signal in signals.iter().copied() {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag.set))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag.set)))
            .and_then(|_| signal_hook::flag::register_usize(signal, Arc::clone(&flag.signal), signal as usize))
            .context("failed to handle signals")?;
    }
    Ok(flag)
}

/// Under nohup(1) the end of a terminal is not ours.
fn ignores_hangup() -> bool {
    // SAFETY: only reads what is set for a signal, into a structure of ours
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut set) == 0 && set.sa_sigaction == libc::SIG_IGN
    }
}

/// Whether the user wants the trace to end.
#[derive(Clone, Debug, Default)]
pub struct StopFlag {
    set: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl StopFlag {
    /// True from the first signal on.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Relaxed)
    }

    /// The signal that wants it.
    pub fn signal(&self) -> Option<i32> {
        let signal = self.signal.load(Ordering::Relaxed);
        (signal > 0).then_some(signal as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_no_cgroup_is_refused() {
        let said = |path: &str| cgroup_id(Path::new(path)).unwrap_err().to_string();
        assert!(said("/sys/fs/cgroup/../../kernel").contains("is no cgroup (v2) directory\nhint: "));
        assert!(said("no/such/group").contains("failed to find the cgroup /sys/fs/cgroup/no/such/group"));
    }
}
