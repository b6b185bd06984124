//! Options of `gpuscope fleet`.

use super::Paint;
use crate::text::parse::parse_period;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const FLEET_HELP: &str = "\
Examples:
  gpuscope fleet --prometheus http://prometheus:9090
      the last week: GPU-hours, idle and why, who leaves most, what to do, which nodes are not seen
  gpuscope fleet --prometheus http://prometheus:9090 --format html -o week.html
      a page to pass on: one file, which needs no network
  gpuscope fleet --prometheus http://prometheus:9090 --since 30d --user anna
      of one user's programs
  gpuscope fleet --prometheus https://mimir.example/prometheus --headers /etc/gpuscope/headers --format markdown
      where a token is asked for: the file has lines such as \"Authorization: Bearer …\"
  gpuscope fleet --prometheus http://prometheus:9090 --json | jq '.jobs[:10][] | {job, user, idle_gpu_seconds}'
      for a program

It asks Prometheus, or a store that answers as Prometheus does (Thanos, Mimir, VictoriaMetrics), which has to scrape \
gpuscope serve on the nodes. Users, jobs and programs have names where serve runs with --labels user,job,program,namespace,pod. \
What it says of programs are bounds, from calls alone: docs/fleet.md.

Exit status: 0 done, also if the store says that its answer is partial; 1 it does not answer, or knows no gpuscope; 2 wrong usage.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FleetFormat {
    Text,
    Markdown,
    Html,
    Json,
}

#[derive(Debug, Args)]
pub struct FleetArgs {
    /// Where Prometheus answers, without /api/v1
    #[arg(long, value_name = "URL")]
    pub prometheus: String,
    /// Of the last so long: 7d, 12h
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_period)]
    pub since: Duration,
    /// Programs of this user alone
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A file of headers to send, one a line, such as Authorization: Bearer …
    #[arg(long, value_name = "FILE")]
    pub headers: Option<PathBuf>,
    /// How long one answer may take
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = parse_period)]
    pub timeout: Duration,
    #[arg(long, value_enum, default_value = "text", help_heading = "Output")]
    pub format: FleetFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub json: bool,
    /// Write it to FILE (`-`: stdout)
    #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = "Output")]
    pub output: PathBuf,
    #[command(flatten)]
    pub paint: Paint,
}
