//! `gpuscope record`: its options.

use super::{Colour, Format, Gpu, Options, Paint, Stacks, Start, SummaryFormat, Which};
use crate::rule::Rule;
use crate::text::parse::{parse_duration, parse_period, parse_seconds, parse_size};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const RECORD_HELP: &str = "\
Examples:
  gpuscope record -- python train.py
      every call into traces/trace_DATE_TIME.arrows
  gpuscope record -o run.arrows -p 1234 --duration 1min
      a minute of a process that already runs
  gpuscope record --all --rotate 1h --max-size 10GiB
      the whole machine for days: a file an hour, the oldest deleted when all take 10 GiB
  gpuscope record --ring 5min -p 1234
      a flight recorder: the last five minutes go to a file when a call fails, at an Xid, at the end, and whenever
      kill -USR1 asks for it
  gpuscope record --max-size 1GiB -- ./app
      stops recording before the file takes more; the program goes on
  gpuscope record --filter @alloc --filter @free --stacks alloc -- ./app
      only what allocates and frees, with call sites

A recording is an Arrow IPC stream: pyarrow, Polars and DuckDB read it as it is (docs/trace-format.md). What is in it
is at most a second old, also when gpuscope is killed.

Exit status: 0 done; 1 failed; 2 wrong usage; 3 --fail-on matched. With CMD as for run: CMD's own (128+N when signal \
N ended it); 125: gpuscope failed or was used wrongly; 126: CMD cannot be executed; 127: CMD not found; \
3: --fail-on matched and CMD succeeded.";

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Record this process and its descendants, those there are and those to come (repeatable)
    #[arg(short, long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,
    /// Record every process, now and later
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Run this command and record it from its first call
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pids", "all", "duration"])]
    pub command: Vec<OsString>,
    /// Stop after this time: 10s, 5min; a bare number is seconds
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub start: Start,
    #[command(flatten)]
    pub gpu: Gpu,
    #[command(flatten)]
    pub which: Which,
    /// Write to FILE (`-`: stdout) [default: traces/trace_DATE_TIME.arrows]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Whose call stacks are taken [default: sync, which includes those of alloc]
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Output")]
    pub stacks: Option<Stacks>,
    /// Call kernels as in the source, with namespaces, parameters and all template arguments
    #[arg(long, help_heading = "Output")]
    pub full_names: bool,
    #[command(flatten)]
    pub keep: Keep,
    /// How the summary on stderr looks
    #[arg(
        long,
        value_enum,
        default_value = "none",
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    pub summary: SummaryFormat,
    /// End with status 3 when this is so: error (a CUDA call failed), xid (the driver reported a fault of a GPU), leak,
    /// leak=SIZE (a process held more GPU or pinned memory at its end), launches>N, finding (something is wrong),
    /// finding:NAME. May be repeated
    #[arg(long, value_name = "RULE", value_parser = Rule::parse, help_heading = "Output")]
    pub fail_on: Vec<Rule>,
    /// Buffer between kernel and gpuscope; larger when rows were lost [default: 8MiB]. From inside: that of each of a process's
    /// first 16 threads, 128KiB at least [default: 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Output")]
    pub ring_size: Option<u64>,
    /// What libbpf says, on stderr
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
}

/// How much is kept, and for how long.
#[derive(Clone, Debug, Args)]
pub struct Keep {
    /// Begin a new file, FILE.0001.arrows and on, when the last one has this size or age: 1GiB, 1h
    #[arg(long, value_name = "SIZE|TIME", value_parser = parse_rotate, help_heading = "How much is kept")]
    pub(crate) rotate: Option<Rotate>,
    /// Most bytes on disk. With --rotate or --ring the oldest file is deleted; else recording stops
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "How much is kept")]
    pub(crate) max_size: Option<u64>,
    /// Flight recorder: keep the last TIME in memory, and write it to FILE.dump-0001.arrows and on when --dump-on says
    /// so, and on SIGUSR1
    #[arg(long, value_name = "TIME", value_parser = parse_period, conflicts_with = "rotate", help_heading = "How much is kept")]
    pub(crate) ring: Option<Duration>,
    /// Most memory that --ring takes; then it goes back less far
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256MiB",
        value_parser = parse_size,
        requires = "ring",
        help_heading = "How much is kept"
    )]
    pub(crate) ring_memory: u64,
    /// What has --ring written: error (a call failed), xid (the driver reported a fault), exit (the trace ends), none.
    /// error and xid at most once a TIME
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "error,xid,exit",
        value_name = "WHAT",
        requires = "ring",
        help_heading = "How much is kept"
    )]
    pub(crate) dump_on: Vec<DumpOn>,
}

/// When the next file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotate {
    Bytes(u64),
    Time(Duration),
}

/// What has a flight recorder written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpOn {
    Error,
    Xid,
    Exit,
    None,
}

impl RecordArgs {
    /// The same as those of other commands.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            which: self.which.clone(),
            output: self.output.clone(),
            format: Some(Format::Arrows),
            quiet: false,
            stacks: self.stacks,
            full_names: self.full_names,
            bytes: false,
            phases: false,
            summary: self.summary,
            fail_on: self.fail_on.clone(),
            paint: Paint { color: Colour::Auto },
            ring_size: self.ring_size,
            verbose: self.verbose,
        }
    }
}

fn parse_rotate(text: &str) -> Result<Rotate, String> {
    parse_size(text)
        .map(Rotate::Bytes)
        .or_else(|_| parse_duration(text).map(Rotate::Time))
        .map_err(|_| format!("{text:?} is neither a size nor a time; such as 1GiB, 1h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_by_size_or_by_age() {
        assert_eq!(parse_rotate("1KiB"), Ok(Rotate::Bytes(1024)));
        assert_eq!(parse_rotate("1min"), Ok(Rotate::Time(Duration::from_secs(60))));
        assert!(parse_rotate("7").is_err() && parse_rotate("").is_err());
    }
}
