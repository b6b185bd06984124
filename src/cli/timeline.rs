//! Options of `gpuscope timeline`.

use super::{Colour, StepRange};
use crate::text::parse::parse_duration;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const TIMELINE_HELP: &str = "\
Examples:
  gpuscope timeline t.arrows
      the whole trace, as wide as the terminal
  gpuscope timeline t.arrows --from 1.2s --to 1.3s
      a tenth of a second of it
  gpuscope timeline t.arrows --step 120
      a step of the program, as 'gpuscope report' numbers them
  gpuscope timeline t.arrows --filter @sync --filter @copy
      waits and copies alone
  gpuscope timeline t.arrows --color always | less -R
      with colours, page by page

A lane is a layer of a thread, or what was submitted to a stream. In a lane the height (without colours: a capital \
letter) says how much of the time a call was under way, colour or letter which class took most of it. Streams show \
when work was given to them, not when the GPU did it.

Exit status: 0 done; 1 failed; 2 wrong usage.";

#[derive(Clone, Debug, Args)]
pub struct TimelineArgs {
    /// The recording, as run -o t.arrows or record writes it
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Columns of the picture [default: those of the terminal, else 80]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub width: Option<u16>,
    /// Begin so long after the start of the trace, such as 1.2s
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub from: Option<Duration>,
    /// End so long after the start of the trace
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub to: Option<Duration>,
    /// Only what began within ranges (NVTX) whose name matches GLOB, of the same process
    #[arg(long, value_name = "GLOB", conflicts_with = "step")]
    pub range: Option<String>,
    /// This step of the program, or these (N..M, both included), as the report numbers them
    #[arg(long, value_name = "N[..M]", conflicts_with_all = ["from", "to"])]
    pub step: Option<StepRange>,
    /// Only functions that match GLOB (their name as exported) or @CLASS; `!` before it excludes (repeatable)
    #[arg(long, value_name = "GLOB|@CLASS", allow_hyphen_values = true)]
    pub filter: Vec<String>,
    /// The busiest lanes that are shown; the others are counted
    #[arg(long, value_name = "N", default_value = "24", value_parser = clap::value_parser!(u16).range(1..))]
    pub lanes: u16,
    /// Colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Colour,
}
