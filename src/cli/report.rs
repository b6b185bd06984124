//! The command line of `report` and `diff`.

use super::{Paint, Stacks, StepRange};
use crate::text::parse::parse_seconds;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const REPORT_HELP: &str = "\
Examples:
  gpuscope report trace.arrows
      what is wrong, most expensive first; then totals
  gpuscope report trace.arrows --html report.html
      a page to look at and to pass on: one file, which needs no network
  gpuscope report trace.arrows --md >> $GITHUB_STEP_SUMMARY
      for a pull request
  gpuscope report trace.arrows --json | jq '.findings[] | {rule, share, site}'
      for a program; docs/report.md has the schema
  gpuscope report trace.arrows --fail-on finding:alloc-churn --fail-on error
      for CI: exit status 3 when one of these is so
  gpuscope report trace.arrows --range 'step *'
      of what began within the program's own ranges (NVTX) of such a name
  gpuscope report trace.arrows --step 120..129
      ten steps of it alone, by the numbers that the section \"Steps\" gives them
  sudo gpuscope report --live -p 1234 --duration 10s
      the same of a process that runs, after ten seconds

Rules for --fail-on (repeatable): error (a CUDA call failed), xid, leak, leak=SIZE (a process held more at its end), \
launches>N, finding (something is wrong), finding:NAME.

A recording that was cut off (the machine lost power, the disk was full) is reported as far as it goes, and says so.

Exit status: 0 done; 1 the file cannot be read; 2 wrong usage; 3 a --fail-on rule matched.";

pub(super) const DIFF_HELP: &str = "\
Examples:
  gpuscope diff before.arrows after.arrows
      what changed, most important first
  gpuscope diff before.arrows after.arrows --fail-on regression>10%
      for CI: exit status 3 when it became slower, or holds more memory, by more than that
  gpuscope diff before.arrows after.arrows --md
      as a table for a pull request

regression>P%: wall time, time of the same calls (at the mean times of the first recording), or the memory peak of one process grew \
by more than P percent. Wall time means something only where both did the same work. Other rules for --fail-on \
(repeatable) are those of report, of the second recording.

Exit status: 0 done, whatever has changed; 1 a file cannot be read; 2 wrong usage; 3 a --fail-on rule matched.";

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The recording
    #[arg(value_name = "FILE", required_unless_present = "live", conflicts_with = "live")]
    pub file: Option<PathBuf>,
    /// Only what began within ranges (NVTX) whose name matches GLOB, of the same process
    #[arg(long, value_name = "GLOB", conflicts_with = "live", conflicts_with = "step")]
    pub range: Option<String>,
    /// What is traced now, until Ctrl-C, the end of the processes, or --duration, instead of a recording
    #[arg(long, help_heading = "Live")]
    pub live: bool,
    /// This process and its descendants, those there are and those to come (repeatable)
    #[arg(
        short,
        long = "pid",
        value_name = "PID",
        requires = "live",
        conflicts_with = "file",
        help_heading = "Live"
    )]
    pub pids: Vec<u32>,
    /// Every process, now and later
    #[arg(long, requires = "live", conflicts_with_all = ["pids", "file"], help_heading = "Live")]
    pub all: bool,
    /// Stop after this time: 10s, 5min; a bare number is seconds
    #[arg(long, value_name = "TIME", requires = "live", conflicts_with = "file", value_parser = parse_seconds, help_heading = "Live")]
    pub duration: Option<Duration>,
    /// Whose call stacks are taken
    #[arg(long, value_enum, default_value = "all", value_name = "WHICH", help_heading = "Live")]
    pub stacks: Stacks,
    /// Only what began in this step of the program, or in these (N..M, both included), as the report numbers them
    #[arg(long, value_name = "N[..M]", conflicts_with = "live")]
    pub step: Option<StepRange>,
    /// Write a self-contained page to OUT (`-`: stdout)
    #[arg(long, value_name = "OUT", conflicts_with_all = ["json", "md"], help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// One JSON object
    #[arg(long, conflicts_with = "md", help_heading = "Output")]
    pub json: bool,
    /// Markdown
    #[arg(long, help_heading = "Output")]
    pub md: bool,
    /// End with status 3 when this is so: error, xid, leak, leak=SIZE, launches>N, finding, finding:NAME (repeatable)
    #[arg(long, value_name = "RULE", help_heading = "Output")]
    pub fail_on: Vec<String>,
    #[command(flatten)]
    pub paint: Paint,
    /// What libbpf says, on stderr
    #[arg(short, long, requires = "live", conflicts_with = "file", help_heading = "Live")]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The recording of before
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// The recording of after
    #[arg(value_name = "B")]
    pub after: PathBuf,
    /// Only these steps of both, as their reports number them: N, or N..M
    #[arg(long, value_name = "N[..M]")]
    pub step: Option<StepRange>,
    /// One JSON object
    #[arg(long, conflicts_with = "md", help_heading = "Output")]
    pub json: bool,
    /// Markdown
    #[arg(long, help_heading = "Output")]
    pub md: bool,
    /// End with status 3 when this is so: regression>10%, error, xid, leak, leak=SIZE, launches>N, finding, finding:NAME (repeatable)
    #[arg(long, value_name = "RULE", help_heading = "Output")]
    pub fail_on: Vec<String>,
    #[command(flatten)]
    pub paint: Paint,
}
