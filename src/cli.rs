//! The command line: what `--help` says and what it is parsed into. Changes nothing.

mod export;
mod record;
mod report;
mod serve;
mod timeline;

pub use export::{ExportArgs, ExportFormat};
pub use record::{DumpOn, Keep, RecordArgs, Rotate};
pub use report::{DiffArgs, ReportArgs};
pub use serve::ServeArgs;
pub use timeline::TimelineArgs;

use crate::rule::Rule;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Shows what a CUDA program really does: every API call, from outside, on unmodified processes
///
/// gpuscope hooks the CUDA runtime (libcudart) and driver (libcuda) with eBPF probes, from outside. The program is
/// not changed, not restarted and not linked with anything. Each call becomes a line with its arguments, result and
/// duration; the summary counts every call exactly, also when lines had to be dropped, and says what was not seen.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    propagate_version = true,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = HELP
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start CMD, trace it and its children from their first CUDA call, print a summary at exit
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Trace processes that already run, until Ctrl-C, their end, or --duration
    #[command(after_help = TRACE_HELP)]
    Trace(TraceArgs),
    /// Keep every call in a file, to be looked at later
    #[command(after_help = record::RECORD_HELP)]
    Record(Box<RecordArgs>),
    /// Say who holds GPU memory, who asked for it, and what was never given back
    #[command(after_help = LEAKS_HELP)]
    Leaks(LeaksArgs),
    /// Say what a recording shows: what is wrong, how much it costs, where, and what to do; then totals
    #[command(after_help = report::REPORT_HELP)]
    Report(Box<ReportArgs>),
    /// Say what changed between two recordings
    #[command(after_help = report::DIFF_HELP)]
    Diff(DiffArgs),
    /// Serve metrics of the whole machine for Prometheus: devices, and who does what on them
    #[command(after_help = serve::SERVE_HELP)]
    Serve(Box<ServeArgs>),
    /// Show a recording as a picture in the terminal: who called what, when
    #[command(after_help = timeline::TIMELINE_HELP)]
    Timeline(TimelineArgs),
    /// Write a recording in another format: JSON lines, Chrome's trace, Perfetto's, Parquet, CSV
    #[command(after_help = export::EXPORT_HELP)]
    Export(ExportArgs),
    /// List the functions that can be traced, and which of them a process or library has
    #[command(after_help = FUNCTIONS_HELP)]
    Functions(FunctionsArgs),
    /// Say what works on this machine, what does not, and the cure
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_HELP)]
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    #[command(after_help = MAN_HELP)]
    Man,
}

const HELP: &str = "\
Begin with:
  sudo gpuscope doctor
      does tracing work here, and if not, what is the cure?
  sudo gpuscope run -- python train.py
      every CUDA call of a program, then a summary
  sudo gpuscope trace -p 1234
      the same of a program that already runs
  sudo gpuscope record -- python train.py
      every call into a file, to be looked at later
  sudo gpuscope leaks -p 1234
      who holds GPU memory, live
  sudo gpuscope serve
      metrics of the whole machine, for Prometheus

Tracing needs root, or CAP_BPF and CAP_PERFMON. 'gpuscope COMMAND --help' has more examples.";

const RUN_HELP: &str = "\
Examples:
  gpuscope run -- python train.py
      every call as a line on stdout, then the summary on stderr
  gpuscope run -q -- python train.py
      only the summary: which calls, how often, how long, how many bytes
  gpuscope run -o t.jsonl -- ./app
      JSON lines into a file, for jq
  gpuscope run -o t.arrows -- ./app
      a recording beside the summary; gpuscope record has more to say about those
  gpuscope run --filter @copy --min-duration 1ms -- ./app
      copies that take a millisecond or more
  gpuscope run --filter @alloc --filter @free -- ./app
      who allocates, who gives back
  gpuscope run --filter '!cuGetProcAddress*' -- ./app
      everything but these
  gpuscope run --errors -- ./app
      only failed calls
  gpuscope run --kernel ioctl,rpc -- ./app
      what the kernel driver does for each call, and how long its questions to the GPU take
  gpuscope run -q --fail-on leak -- ./test
      exit status 3 when the program gave back less GPU memory than it took

Classes for --filter: alloc, free, memory, copy, memset, prefetch, launch, sync, stream, event, graph, module, \
context, query, error, ioctl, other. @memory is all of alloc, free, memory, memset and prefetch. \
Quote !, * and ? from the shell.

Exit status: CMD's own (128+N when signal N ended it); 125: gpuscope failed or was used wrongly; \
126: CMD cannot be executed; 127: CMD not found; 3: a --fail-on rule matched and CMD succeeded. \
128+N also when signal N ended gpuscope: CMD lives on, untraced. \
A Ctrl-C at the terminal reaches CMD, too, and is waited for.";

const TRACE_HELP: &str = "\
Examples:
  gpuscope trace -p 1234
      every call of a process from now on
  gpuscope trace -p 1234 -q --duration 10s
      what it did in ten seconds, as totals
  gpuscope trace --all --errors
      failed CUDA calls of the whole machine
  gpuscope trace --all --uid 1000 --filter @sync --min-duration 100ms
      long waits for the GPU in processes of one user
  gpuscope trace --all --cgroup system.slice/job.service -o job.jsonl
      one service, as JSON lines

The traced processes go on when gpuscope ends.

Exit status: 0 done; 1 failed; 2 wrong usage; 3 a --fail-on rule matched.";

const LEAKS_HELP: &str = "\
Examples:
  gpuscope leaks -- python train.py
      run it, then say what it held at its end, and which lines asked for it
  gpuscope leaks -p 1234
      a live table of a running process; Ctrl-C ends it with the full report
  gpuscope leaks --all --interval 1min -o memory.txt
      the whole machine, a full report each minute
  gpuscope leaks --json -o memory.jsonl -- ./app
      for a program: jq '.processes[].devices[].held_bytes' memory.jsonl
  gpuscope leaks --fail-on leak=16MiB -- pytest tests/gpu
      for CI: exit status 3 when more than this was never given back

Held is what the program asked for and has not given back. What it allocated before gpuscope came is not known: it \
is never guessed, and is part of what the driver says and no allocation explains (unattributed).

The report goes to stdout, or to the file of -o. With CMD stdout is CMD's: the text goes to stderr, as the summary \
of run does; --json goes to stdout all the same, so use -o FILE where CMD prints something.

Exit status: 0 done; 1 failed; 2 wrong usage; 3 --fail-on matched. With CMD as for run: CMD's own (128+N when signal \
N ended it); 125: gpuscope failed or was used wrongly; 126: CMD cannot be executed; 127: CMD not found; \
3: --fail-on matched and CMD succeeded.";

const FUNCTIONS_HELP: &str = "\
Examples:
  gpuscope functions 'cudaMemcpy*'
      by name: * is any text, ? one character
  gpuscope functions @alloc
      by class
  gpuscope functions --lib /usr/lib/x86_64-linux-gnu/libcuda.so.1
      what this file has, and at which offset
  gpuscope functions -p 1234
      what the libraries of a process have (yours, or as root)
  sudo gpuscope functions --kernel 'nvidia_*'
      functions of the running kernel, with their arguments, and what cannot be hooked
  gpuscope functions --json @launch | jq -r .name
      names for a script
  gpuscope functions --explain hooks.toml --lib ./libmine.so
      what a hook file would hook there, and what it cannot

Without -p and --lib nothing is looked at: the list is the built-in catalogue, and no privileges are needed.

+10 behind an offset: the probe lies 10 bytes into the function, where it costs less. (slow): there is no such place.

Exit status: 0 listed; 1 nothing matches, a file cannot be read, or --explain found what cannot be hooked; \
2 wrong usage.";

const DOCTOR_HELP: &str = "\
Examples:
  sudo gpuscope doctor
      what this machine allows, each with the cure
  sudo gpuscope doctor -p 1234
      which CUDA libraries a process maps, and what of them can be seen
  sudo gpuscope doctor --json | jq '.checks[] | select(.state != \"ok\")'
      what is limited or missing

Exit status: 0 tracing is possible; 1 it is not; 2 wrong usage.";

const COMPLETIONS_HELP: &str = "\
Examples:
  gpuscope completions bash > /etc/bash_completion.d/gpuscope
  gpuscope completions zsh > \"${fpath[1]}/_gpuscope\"
  gpuscope completions fish > ~/.config/fish/completions/gpuscope.fish";

const MAN_HELP: &str = "\
Examples:
  gpuscope man | man -l -
      read it
  gpuscope man > /usr/local/share/man/man1/gpuscope.1
      install it";

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub options: Options,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Trace this process and its children from now on (repeatable)
    #[arg(short, long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,
    /// Trace every process, now and later
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Stop after this time: 10s, 5min
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub options: Options,
}

#[derive(Debug, Args)]
pub struct LeaksArgs {
    /// Watch this process and its children from now on (repeatable)
    #[arg(short, long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,
    /// Watch every process, now and later
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Run this command and watch it from its first call
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pids", "all", "duration"])]
    pub command: Vec<OsString>,
    /// Stop after this time: 10s, 5min
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Also functions that FILE describes and gives a role in memory, in any library (repeatable)
    #[arg(long, value_name = "FILE.toml", help_heading = "Whose calls")]
    pub hooks: Vec<PathBuf>,
    #[command(flatten)]
    pub whose: Whose,
    /// Write the report to FILE instead (`-`: stdout); the extension .jsonl chooses --json
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// JSON lines: one object for each report, with every call site
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// A full report each time this has passed, such as 10s, instead of the live table
    #[arg(long, value_name = "TIME", value_parser = parse_interval, help_heading = "Output")]
    pub interval: Option<Duration>,
    /// Call sites shown for each process; --json has all
    #[arg(long, value_name = "N", default_value = "10", help_heading = "Output")]
    pub top: usize,
    /// Whose call stacks are taken; without any, call sites are not known, and watching costs less
    #[arg(
        long,
        value_enum,
        default_value = "alloc",
        value_name = "WHICH",
        help_heading = "Output"
    )]
    pub stacks: MemoryStacks,
    /// No live table on the terminal, only the report
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// End with status 3 when this is so: leak, leak=SIZE (a process held more at its end, or holds more at ours)
    #[arg(long, value_name = "RULE", value_parser = Rule::parse_leak, help_heading = "Output")]
    pub fail_on: Option<Rule>,
    #[command(flatten)]
    pub paint: Paint,
    /// What libbpf says, on stderr
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct FunctionsArgs {
    /// Glob for names, or @CLASS; without it, all
    pub pattern: Option<String>,
    /// Functions and tracepoints of the running kernel instead: which can be hooked, how, and why not; without a
    /// pattern those of --kernel's groups
    #[arg(long, conflicts_with_all = ["pid", "lib"])]
    pub kernel: bool,
    /// Which of them process PID has, and where
    #[arg(short, long, value_name = "PID", conflicts_with = "lib")]
    pub pid: Option<u32>,
    /// Which of them FILE has, and where
    #[arg(long, value_name = "FILE")]
    pub lib: Option<PathBuf>,
    /// Also the functions of this file (repeatable)
    #[arg(long, value_name = "FILE.toml")]
    pub hooks: Vec<PathBuf>,
    /// Check a hook file: what each of its rows would hook in the installed libraries, --lib or -p, and what cannot be
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["pattern", "hooks"])]
    pub explain: Option<PathBuf>,
    /// JSON lines
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also say what can be seen of this process
    #[arg(short, long, value_name = "PID")]
    pub pid: Option<u32>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Jsonl,
    /// A recording: gpuscope report, timeline, export and diff read it
    #[value(alias = "arrow")]
    Arrows,
    /// Chrome's trace format, for chrome://tracing and others
    Chrome,
    /// Perfetto's trace format, for ui.perfetto.dev
    Perfetto,
}

/// Whose call stacks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MemoryStacks {
    /// Of calls that allocate memory
    Alloc,
    /// Of none
    None,
}

/// Whose call stacks are taken and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stacks {
    /// Of calls that allocate memory
    Alloc,
    /// Also of calls that give the GPU work: launches, copies, memsets
    Launch,
    /// Also of calls that wait for the GPU: synchronisation, blocking copies
    Sync,
    /// Of all these
    All,
    /// Of none, for the summary either; costs less
    None,
}

impl Stacks {
    /// Of calls that give a device work.
    #[must_use]
    pub fn of_launches(self) -> bool {
        matches!(self, Stacks::Launch | Stacks::All)
    }

    /// Of calls that wait for one.
    #[must_use]
    pub fn of_waits(self) -> bool {
        matches!(self, Stacks::Sync | Stacks::All)
    }

    /// Of either.
    #[must_use]
    pub fn of_work(self) -> bool {
        self.of_launches() || self.of_waits()
    }

    /// The word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stacks::Alloc => "alloc",
            Stacks::Launch => "launch",
            Stacks::Sync => "sync",
            Stacks::All => "all",
            Stacks::None => "none",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SummaryFormat {
    Text,
    Json,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

/// Whether to write in colours.
#[derive(Clone, Debug, Args)]
pub struct Paint {
    /// Colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "Output"
    )]
    pub color: Colour,
}

/// Which processes and threads are looked at, of those in scope.
#[derive(Clone, Debug, Args)]
pub struct Whose {
    /// Only threads of this name; a trailing * matches a prefix (up to 4 times)
    #[arg(long, value_name = "NAME", help_heading = "Whose calls")]
    pub comm: Vec<String>,
    /// Only processes of this user id
    #[arg(long, value_name = "UID", help_heading = "Whose calls")]
    pub uid: Option<u32>,
    /// Only processes of this cgroup (v2) directory itself, relative to /sys/fs/cgroup
    #[arg(long, value_name = "PATH", help_heading = "Whose calls")]
    pub cgroup: Option<PathBuf>,
}

/// Which calls are traced.
#[derive(Clone, Debug, Args)]
pub struct Which {
    /// Only functions that match GLOB or @CLASS; `!` before it excludes (repeatable)
    #[arg(
        long,
        value_name = "GLOB|@CLASS",
        allow_hyphen_values = true,
        help_heading = "Which calls"
    )]
    pub filter: Vec<String>,
    /// runtime (libcudart: what was written), driver (libcuda: what happened), kernel (what nvidia.ko is asked for: each
    /// ioctl on its devices, decoded), or all
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "runtime,driver",
        help_heading = "Which calls"
    )]
    pub layer: Vec<String>,
    /// Only failed calls; the summary counts the others all the same
    #[arg(long, help_heading = "Which calls")]
    pub errors: bool,
    /// Only calls that take at least this long, such as 10us or 1ms; the summary counts the others all the same
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Which calls")]
    pub min_duration: Option<Duration>,
    /// Show calls of chatty getters (cudaGetDevice …) too, instead of only counting them
    #[arg(long, help_heading = "Which calls")]
    pub chatty: bool,
    /// Leave out chatty getters (cudaGetDevice …) altogether, which PyTorch calls some 20 times for each launch: they are
    /// not counted, and cost nothing
    #[arg(long, conflicts_with = "chatty", help_heading = "Which calls")]
    pub no_getters: bool,
    /// Also trace the functions that FILE describes, in any library (repeatable)
    #[arg(long, value_name = "FILE.toml", help_heading = "Which calls")]
    pub hooks: Vec<PathBuf>,
    /// Also functions of NVIDIA's kernel driver: context, fault, interrupt, ioctl, memory, object, open, power, rpc, wait
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', help_heading = "Which calls")]
    pub kernel: Vec<String>,
    #[command(flatten)]
    pub whose: Whose,
}

/// Options of every command that traces calls.
#[derive(Clone, Debug, Args)]
pub struct Options {
    #[command(flatten)]
    pub which: Which,
    /// Write lines to FILE instead of stdout (`-`: stdout); the extension chooses the format: .jsonl JSON lines, .arrows
    /// a recording, .pftrace a trace for Perfetto, .json one for Chrome
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Format of the lines [default: by the extension of -o, else text]
    #[arg(long, value_enum, help_heading = "Output")]
    pub format: Option<Format>,
    /// No lines, only the summary: the cheapest way to trace
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Show call stacks below lines and in the summary. Without, the summary has those of calls that allocate
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Output")]
    pub stacks: Option<Stacks>,
    /// Call kernels as in the source, with namespaces, parameters and all template arguments
    #[arg(long, help_heading = "Output")]
    pub full_names: bool,
    /// How the summary on stderr looks
    #[arg(
        long,
        value_enum,
        default_value = "text",
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    pub summary: SummaryFormat,
    /// End with status 3 when this is so: error (a CUDA call failed), xid (the driver reported a fault of a GPU), leak,
    /// leak=SIZE (a process held more GPU or pinned memory at its end), launches>N, finding (something is wrong),
    /// finding:NAME. May be repeated
    #[arg(long, value_name = "RULE", value_parser = Rule::parse, help_heading = "Output")]
    pub fail_on: Vec<Rule>,
    #[command(flatten)]
    pub paint: Paint,
    /// Buffer between kernel and gpuscope; larger when the summary says that lines were lost
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = parse_size, help_heading = "Output")]
    pub ring_size: u64,
    /// What libbpf says, on stderr
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
}

impl Options {
    /// What holds when none is given.
    #[must_use]
    pub fn defaults() -> Options {
        let command = <Options as Args>::augment_args(clap::Command::new("gpuscope"));
        let none = command.get_matches_from(["gpuscope"]);
        // every option has a default or is optional; a test holds it to that
        <Options as clap::FromArgMatches>::from_arg_matches(&none).unwrap_or_else(|error| error.exit())
    }
}

/// A report takes about a hundredth of this.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// `10us`, `5s`; a bare number is refused.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [
        ("ns", 1u64),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    with_unit(text, &units)
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("{text:?} is no duration; write a number and ns, us, ms, s, min or h, such as 10us"))
}

/// As [`parse_duration`], at least a tenth of a second.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    match interval >= SHORTEST_INTERVAL {
        true => Ok(interval),
        false => Err(format!("{text:?} is too short; at least 100ms, such as 10s")),
    }
}

/// `16MiB`, `1GiB`; a bare number is refused.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let units = [
        ("B", 1u64),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    with_unit(text, &units)
        .ok_or_else(|| format!("{text:?} is no size; write a number and B, KiB, MiB or GiB, such as 16MiB"))
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let scale = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let value = number.parse::<f64>().ok()? * scale as f64;
    (value.is_finite() && value < 9.0e18).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_have_defaults() {
        let options = Options::defaults();
        assert_eq!((options.quiet, options.which.layer.len()), (false, 2));
    }

    #[test]
    fn the_name_of_a_choice_of_stacks_is_its_word() {
        for stacks in Stacks::value_variants() {
            let word = stacks.to_possible_value().unwrap();
            assert_eq!(stacks.name(), word.get_name());
            for command in ["run", "trace"] {
                let words = ["gpuscope", command, "--stacks", stacks.name()];
                let rest: &[&str] = if command == "run" { &["--", "true"] } else { &["--all"] };
                assert!(Cli::try_parse_from([&words, rest].concat()).is_ok(), "{words:?}");
            }
        }
    }

    #[test]
    fn help_names_every_class() {
        let mut run = Cli::command();
        let help = run.find_subcommand_mut("run").unwrap().render_help().to_string();
        let listed = &help[help.find("Classes for --filter").unwrap()..];
        let words: Vec<&str> = listed.split(|c: char| !c.is_alphanumeric()).collect();
        for class in crate::catalog::Class::ALL {
            assert!(words.contains(&class.name()), "{}", class.name());
        }
    }

    #[test]
    fn a_number_without_unit_is_refused() {
        assert_eq!(parse_duration("10us"), Ok(Duration::from_micros(10)));
        assert_eq!(parse_duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert!(parse_duration("10").is_err() && parse_duration("").is_err() && parse_duration("-1s").is_err());
        assert_eq!(parse_size("16MiB"), Ok(16 << 20));
        assert!(parse_size("16").is_err() && parse_size("16 parsecs").is_err());
    }
}
