//! Options of `gpuscope export`.

use super::{ExportFormat, StepRange};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

pub(crate) const EXPORT_HELP: &str = "\
Examples:
  gpuscope export t.arrows -o t.pftrace
      for ui.perfetto.dev, which reads it in your browser and sends it nowhere
  gpuscope export t.arrows -o t.json
      Chrome's format, for chrome://tracing, Speedscope and others
  gpuscope export t.arrows --to jsonl | jq 'select(.category==\"copy\")'
      the same lines as run -o t.jsonl writes
  gpuscope export t.arrows --to csv -o t.csv
      for a spreadsheet
  gpuscope export t.arrows --to parquet -o traces/
      traces/host=NAME/date=YYYY-MM-DD/: traces of many hosts, which DuckDB, ClickHouse and Spark read as one
  gpuscope export t.arrows -o t.speedscope.json
      GPU time by call path, for speedscope.app, which reads it in your browser and sends it nowhere
  gpuscope export t.arrows -o t.pb.gz --weight wait && go tool pprof -http : t.pb.gz
      the time that threads waited in CUDA, by call path
  gpuscope export t.arrows --to collapsed | flamegraph.pl --countname ns > t.svg
      a line for each call path
  gpuscope export t.arrows --step 120..129 -o ten.pftrace
      ten steps of the program, as 'gpuscope report' numbers them

The format follows from the name of -o (.jsonl, .json, .pftrace, .parquet, .csv, .speedscope.json, .pb.gz, .collapsed), or \
is said by --to. speedscope, pprof and collapsed have call paths where calls were recorded with their stacks: \
record --stacks all; what has none is (no call path).
What is written is called FILE.partial until it is complete. A recording that was cut off is exported as far as it \
goes, and the output says so.

Exit status: 0 done, also of a recording that was cut off; 1 failed; 2 wrong usage.";

/// What is added up by call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weighed {
    /// What GPUs executed
    Gpu,
    /// What threads waited in calls that wait for a GPU
    Wait,
    /// What threads that call CUDA spent outside of it, by samples
    Host,
}

#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// The recording, as run -o t.arrows or record writes it
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Format of the output [default: by the extension of -o]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<ExportFormat>,
    /// Which time speedscope, pprof and collapsed have [default: gpu]
    #[arg(long, value_enum, value_name = "TIME")]
    pub weight: Option<Weighed>,
    /// Only what began in this step of the program, or in these (N..M, both included), as the report numbers them;
    /// without totals, which are of the whole run
    #[arg(long, value_name = "N[..M]")]
    pub step: Option<StepRange>,
    /// Where it goes (`-`: stdout); of parquet also a folder, which ends in / or is there [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Only what began within ranges (NVTX) whose name matches GLOB, of the same process
    #[arg(long, value_name = "GLOB", conflicts_with = "step")]
    pub range: Option<String>,
}
