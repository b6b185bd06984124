//! Options of `gpuscope leaks`.

use super::{Paint, Start, Whose};
use crate::rule::Rule;
use crate::text::parse::{parse_duration, parse_interval, parse_seconds};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const LEAKS_HELP: &str = "\
Examples:
  gpuscope leaks -- python train.py
      run it, then say what it held at its end, and which lines asked for it
  gpuscope leaks -p 1234
      a live table of a running process; Ctrl-C ends it with the full report
  gpuscope leaks --all --interval 1min -o memory.txt
      the whole machine, a full report each minute
  gpuscope leaks -p 1234 --duration 1min --older-than 30s
      each allocation that is held for half a minute or longer: address, size, age, and the line that asked for it
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

#[derive(Debug, Args)]
pub struct LeaksArgs {
    /// Watch this process and its descendants, those there are and those to come (repeatable)
    #[arg(short, long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,
    /// Watch every process, now and later
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Run this command and watch it from its first call
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pids", "all", "duration"])]
    pub command: Vec<OsString>,
    /// Stop after this time: 10s, 5min; a bare number is seconds
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    /// Also functions that FILE describes and gives a role in memory, in any library (repeatable)
    #[arg(long, value_name = "FILE.toml", help_heading = "Whose calls")]
    pub hooks: Vec<PathBuf>,
    #[command(flatten)]
    pub start: Start,
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
    /// Also each single allocation that is held: address, size, age and call site, the largest first
    #[arg(long, help_heading = "Output")]
    pub addresses: bool,
    /// Of these only those that are as old, such as 10s
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Output")]
    pub older_than: Option<Duration>,
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

impl LeaksArgs {
    /// Whether single allocations are told.
    #[must_use]
    pub(crate) fn lists(&self) -> bool {
        self.addresses || self.older_than.is_some()
    }
}

/// Whose call stacks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MemoryStacks {
    /// Of calls that allocate memory
    Alloc,
    /// Of none
    None,
}
