//! Options of every command that traces calls: which calls of whom, and where they go.

use super::Stacks;
use crate::rule::Rule;
use crate::text::parse::{parse_duration, parse_size};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Which processes and threads are looked at, of those in scope.
#[derive(Clone, Debug, Args)]
pub struct Whose {
    /// Only threads of this name; a trailing * matches a prefix (up to 4 times)
    #[arg(long, value_name = "NAME", help_heading = "Whose calls")]
    pub comm: Vec<String>,
    /// Only processes of this user id
    #[arg(long, value_name = "UID", help_heading = "Whose calls")]
    pub(crate) uid: Option<u32>,
    /// Only processes of this cgroup (v2) directory itself, relative to /sys/fs/cgroup
    #[arg(long, value_name = "PATH", help_heading = "Whose calls")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Where calls are taken from: inside (an agent that CMD loads: no root, any kernel, a tenth of the cost), kernel (from
    /// outside, as root; all there is for what runs already), or auto: inside for CMD, where that can load the agent and what was
    /// asked for is seen there, else the kernel
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHERE",
        help_heading = "Whose calls"
    )]
    pub engine: EngineChoice,
    /// Let no program wait until its libraries are hooked: for those that look at their TracerPid; first calls are missed, and
    /// that is said. From inside nobody's TracerPid changes, and who loads a library waits all the same, for 2 s at most
    #[arg(long, help_heading = "Whose calls")]
    pub(crate) no_hold: bool,
}

/// Where calls are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    Auto,
    Inside,
    Kernel,
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
    /// Also count calls that only ask (cudaGetDevice …): PyTorch makes some 20 of them for each launch, and what they cost is
    /// most of what tracing costs it
    #[arg(long, help_heading = "Which calls")]
    pub getters: bool,
    /// As --getters, and show them
    #[arg(long, help_heading = "Which calls")]
    pub chatty: bool,
    /// Do not count them from inside, either, where they are counted without being asked for
    #[arg(long, help_heading = "Which calls", conflicts_with_all = ["getters", "chatty"])]
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

impl Which {
    /// Whether only some calls are shown: what is no call then is not, either.
    pub(crate) fn shows_some(&self) -> bool {
        self.errors || self.min_duration.is_some() || !self.filter.is_empty()
    }

    /// Whether calls that only ask are hooked. Few of them fail or take long: where only such calls are shown, none is left out.
    #[must_use]
    pub(crate) fn takes_getters(&self) -> bool {
        let looks_for_few = self.errors || self.min_duration.is_some();
        !self.no_getters && (self.getters || self.chatty || looks_for_few)
    }
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
    pub(crate) color: Colour,
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
    /// No lines, only the summary with what is wrong; with --filter, or with --all, calls are only counted, which is
    /// the cheapest way to trace
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Show call stacks below lines and in the summary. Without, the summary has those of calls that allocate
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Output")]
    pub stacks: Option<Stacks>,
    /// Call kernels as in the source, with namespaces, parameters and all template arguments
    #[arg(long, help_heading = "Output")]
    pub full_names: bool,
    /// In JSON lines, the entry of a call and its return are records of their own, so that a call that hangs has been
    /// begun
    #[arg(long, help_heading = "Output")]
    pub phases: bool,
    /// Sizes in lines of text as exact numbers of bytes
    #[arg(long, help_heading = "Output")]
    pub bytes: bool,
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
    /// Buffer between kernel and gpuscope; larger when the summary says that lines were lost [default: 8MiB]. From inside: that
    /// of each of a process's first 16 threads, 128KiB at least [default: 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Output")]
    pub ring_size: Option<u64>,
    /// What libbpf says, on stderr
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
}

impl Options {
    /// What holds when none is given.
    #[must_use]
    pub(crate) fn defaults() -> Options {
        let command = <Options as Args>::augment_args(clap::Command::new("gpuscope"));
        let none = command.get_matches_from(["gpuscope"]);
        // every option has a default or is optional; a test holds it to that
        <Options as clap::FromArgMatches>::from_arg_matches(&none).unwrap_or_else(|error| error.exit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_defaults() {
        let options = Options::defaults();
        assert_eq!((options.quiet, options.which.layer.len()), (false, 2));
    }
}
