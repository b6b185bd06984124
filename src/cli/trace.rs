//! Options of `gpuscope trace`.

use super::{Gpu, Options};
use crate::text::parse::parse_seconds;
use clap::Args;
use std::time::Duration;

pub(super) const TRACE_HELP: &str = "\
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

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Trace this process and its descendants, those there are and those to come (repeatable)
    #[arg(short, long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,
    /// Trace every process, now and later
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Stop after this time: 10s, 5min; a bare number is seconds
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub gpu: Gpu,
    #[command(flatten)]
    pub options: Options,
}
