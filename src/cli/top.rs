//! Options of `gpuscope top`.

use crate::text::parse::{parse_duration, parse_seconds};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const TOP_HELP: &str = "\
Examples:
  sudo gpuscope top
      every device and every process that uses CUDA, live; ? lists the keys, q ends it
  sudo gpuscope top -p 1234
      one process and its children alone, with its functions, calls in progress and allocations
  sudo gpuscope top --once --findings -p 1234 --delay 10
      the same as one page, with what is wrong by ten seconds of its calls
  gpuscope top
      without root: devices, and your own processes that were started by gpuscope preload
  sudo gpuscope top --once
      one page as text, after one interval, for a script or a ticket
  sudo gpuscope top --json --delay 5 | jq '.processes[] | {pid, launches}'
      the same numbers as JSON, an object a line each five seconds
  gpuscope top --replay traces/trace.arrows
      what a recording's totals were, second by second; left and right go through it

Devices: util is the share of time with any kernel running, as the driver samples it; busy is at most what gpuscope \
knows to have been given to the device. Processes: launches, copies, waits and errors a second; idle is the time in \
which the GPU surely had nothing to do for the process. - is not known, ≥ and ≤ are bounds, ≳ and ≲ are inferred.

Exit status: 0 ended by q, Ctrl-C or SIGTERM; 1 failed; 2 wrong usage.";

#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// Only this process and its descendants, those there are and those to come (repeatable)
    #[arg(short, long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,
    /// Every process, which is the default
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,
    /// Also say what is wrong with the first of them: traces each of its calls, as trace -p does; on the screen the key f
    #[arg(long, requires = "pids")]
    pub findings: bool,
    /// With one page or JSON: each single allocation of the first of them; on the screen the key a
    #[arg(long, requires = "pids")]
    pub addresses: bool,
    /// Of these only those that are as old, such as 10s
    #[arg(long, value_name = "TIME", requires = "pids", value_parser = parse_duration)]
    pub older_than: Option<Duration>,
    /// Show processes of this user alone, by name or number
    #[arg(short, long, value_name = "NAME")]
    pub user: Option<String>,
    /// How often it is looked: 500ms, 2s; a bare number is seconds
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = delay)]
    pub delay: Duration,
    /// Print one page as text, or with --json one object, and end
    #[arg(long, help_heading = "Output")]
    pub once: bool,
    /// JSON lines instead of a screen: one object each interval
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Play what a recording says, instead of what happens now
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pids", "all", "findings", "addresses", "older_than", "user", "delay"], help_heading = "Output")]
    pub replay: Option<PathBuf>,
    /// Columns of processes, such as pid,held,wait,command; on the screen F2 chooses them [default: those that say something]
    #[arg(long, value_name = "NAMES", help_heading = "Output")]
    pub columns: Option<String>,
    /// Colours for a dark or a light background, or none [default: dark; mono where NO_COLOR is set]
    #[arg(long, value_enum, value_name = "THEME", help_heading = "Output")]
    pub theme: Option<ThemeChoice>,
    /// What libbpf says, on stderr; not with a screen
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
}

/// Which colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ThemeChoice {
    Dark,
    Light,
    /// None: bold and reversed instead
    Mono,
}

impl TopArgs {
    /// Whether single allocations are told.
    #[must_use]
    pub(crate) fn lists(&self) -> bool {
        self.addresses || self.older_than.is_some()
    }
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);

/// Not so short that looking is all that happens.
fn delay(text: &str) -> Result<Duration, String> {
    let delay = parse_seconds(text)?;
    match (SHORTEST..=LONGEST).contains(&delay) {
        true => Ok(delay),
        false => Err("between 100ms and 1h, such as 2s".to_owned()),
    }
}
