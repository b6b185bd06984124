//! The command line: what `--help` says and what it is parsed into. Changes nothing.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Shows what a CUDA program really does: every API call, from outside, on unmodified processes.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    propagate_version = true,
    arg_required_else_help = true,
    subcommand_required = true
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
    /// Trace running processes until Ctrl-C
    Trace(TraceArgs),
    /// List the functions that can be traced, and which of them a process or library has
    Functions(FunctionsArgs),
    /// Say what works on this machine, what does not, and the cure
    Doctor(DoctorArgs),
    /// Print a shell completion script
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

const RUN_HELP: &str = "\
Examples:
  gpuscope run -- python train.py                    every call as a line, then the summary
  gpuscope run -q -- python train.py                 only the summary
  gpuscope run -o t.jsonl -- ./app                   JSON lines into a file
  gpuscope run --filter '@copy' --min-duration 1ms -- ./app
  gpuscope run --errors -- ./app                     only failed calls

Exit status: CMD's own (128+N when a signal N ended it); 125: gpuscope failed; 126: CMD cannot be executed; 127: CMD not found.
128+N: signal N ended gpuscope; CMD lives on, untraced. A Ctrl-C at the terminal reaches CMD, too, and is waited for.";

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
    #[command(flatten)]
    pub options: Options,
    /// Trace this process and its children from now on (repeatable)
    #[arg(short, long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,
    /// Trace every process, now and later
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct FunctionsArgs {
    /// Glob for names, or @CLASS
    pub pattern: Option<String>,
    /// Which of them process PID has, and where
    #[arg(short, long, value_name = "PID", conflicts_with = "lib")]
    pub pid: Option<u32>,
    /// Which of them FILE has, and where
    #[arg(long, value_name = "FILE")]
    pub lib: Option<PathBuf>,
    /// Also the functions of this file (repeatable)
    #[arg(long, value_name = "FILE.toml")]
    pub hooks: Vec<PathBuf>,
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

/// Options of every command that traces.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Write lines to FILE (`-`: stdout); the extension chooses the format
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format of the lines
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Layers to trace: runtime, driver, all
    #[arg(long, value_delimiter = ',', default_value = "runtime,driver")]
    pub layer: Vec<String>,
    /// Trace only functions that match GLOB or @CLASS; `!` before it excludes (repeatable)
    #[arg(long, value_name = "GLOB|@CLASS", allow_hyphen_values = true)]
    pub filter: Vec<String>,
    /// Show failed calls only
    #[arg(long)]
    pub errors: bool,
    /// Show calls that take at least this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub min_duration: Option<Duration>,
    /// Only threads of this name; a trailing * matches a prefix (up to 4 times)
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<String>,
    /// Only processes of this user id
    #[arg(long, value_name = "UID")]
    pub uid: Option<u32>,
    /// Only processes in this cgroup (v2) directory
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Also trace the functions that FILE describes (repeatable)
    #[arg(long, value_name = "FILE.toml")]
    pub hooks: Vec<PathBuf>,
    /// Show calls of chatty getters (cudaGetDevice …) too, instead of only counting them
    #[arg(long)]
    pub chatty: bool,
    /// No lines, only the summary
    #[arg(short, long)]
    pub quiet: bool,
    /// How the summary on stderr looks
    #[arg(long, value_enum, default_value = "text")]
    pub summary: SummaryFormat,
    /// Buffer between kernel and gpuscope; rounded up to a power of two
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = parse_size)]
    pub ring_size: u64,
    /// Colours
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Colour,
    /// What libbpf says, on stderr
    #[arg(short, long)]
    pub verbose: bool,
}

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
    fn a_number_without_unit_is_refused() {
        assert_eq!(parse_duration("10us"), Ok(Duration::from_micros(10)));
        assert_eq!(parse_duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert!(parse_duration("10").is_err() && parse_duration("").is_err() && parse_duration("-1s").is_err());
        assert_eq!(parse_size("16MiB"), Ok(16 << 20));
        assert!(parse_size("16").is_err() && parse_size("16 parsecs").is_err());
    }
}
