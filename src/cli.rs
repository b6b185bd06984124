//! The command line: what `--help` says and what it is parsed into. Changes nothing.

mod content;
mod doctor;
mod export;
mod fleet;
mod functions;
mod job_report;
mod leaks;
pub mod mistakes;
mod options;
mod preload;
mod record;
mod report;
mod run;
mod serve;
mod stacks;
mod start;
mod step;
mod timeline;
mod top;
mod trace;

pub(crate) use content::{Content, ExportFormat};
pub(crate) use doctor::DoctorArgs;
pub(crate) use export::{ExportArgs, Weighed};
pub(crate) use fleet::{FleetArgs, FleetFormat};
pub(crate) use functions::FunctionsArgs;
pub(crate) use job_report::{JobFormat, JobReportArgs};
pub(crate) use leaks::{LeaksArgs, MemoryStacks};
pub(crate) use options::{Colour, EngineChoice, Format, Options, Paint, SummaryFormat, Which, Whose};
pub(crate) use preload::PreloadArgs;
pub(crate) use record::{DumpOn, RecordArgs, Rotate};
pub(crate) use report::{DiffArgs, ReportArgs};
pub(crate) use run::RunArgs;
pub use serve::ServeArgs;
pub(crate) use stacks::Stacks;
pub(crate) use start::{Gpu, GpuChoice, Start};
pub(crate) use step::StepRange;
pub(crate) use timeline::TimelineArgs;
pub(crate) use top::{ThemeChoice, TopArgs};
pub(crate) use trace::TraceArgs;

use clap::{Parser, Subcommand};

/// Shows what a CUDA program really does: every API call, on unmodified programs
///
/// gpuscope hooks the CUDA runtime (libcudart) and driver (libcuda): from outside with eBPF probes, also in what runs
/// already, or from inside what it starts, without root. The program is not rebuilt and not linked with anything. Each
/// call becomes a line with its arguments, result and duration; the summary counts every call exactly, also when lines
/// had to be dropped, and says what was not seen.
#[derive(Debug, Parser)]
#[command(
    version = crate::version::short(),
    about,
    propagate_version = true,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = HELP
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start CMD, trace it and its children from their first CUDA call, print a summary at exit
    #[command(after_help = run::RUN_HELP)]
    Run(RunArgs),
    /// Trace processes that already run, until Ctrl-C, their end, or --duration
    #[command(after_help = trace::TRACE_HELP)]
    Trace(TraceArgs),
    /// Keep every call in a file, to be looked at later
    #[command(after_help = record::RECORD_HELP)]
    Record(Box<RecordArgs>),
    /// Say who holds GPU memory, who asked for it, and what was never given back
    #[command(after_help = leaks::LEAKS_HELP)]
    Leaks(LeaksArgs),
    /// Say what a recording shows: what is wrong, how much it costs, where, and what to do; then totals
    #[command(after_help = report::REPORT_HELP)]
    Report(Box<ReportArgs>),
    /// Say what changed between two recordings
    #[command(after_help = report::DIFF_HELP)]
    Diff(DiffArgs),
    /// Serve metrics of the whole machine for Prometheus: devices, and who does what on them
    #[command(after_help = serve::SERVE_HELP)]
    Serve(Box<ServeArgs>),
    /// Say what a job did with its GPUs, and why these waited, as gpuscope serve knows it: some lines at a job's end
    #[command(after_help = job_report::JOB_REPORT_HELP)]
    JobReport(JobReportArgs),
    /// Say what all machines did with their GPUs in a week, who left them idle and why, as Prometheus knows it
    #[command(after_help = fleet::FLEET_HELP)]
    Fleet(FleetArgs),
    /// Live screen: devices, who uses them for what, and why they wait
    #[command(after_help = top::TOP_HELP)]
    Top(Box<TopArgs>),
    /// Show a recording as a picture in the terminal: who called what, when
    #[command(after_help = timeline::TIMELINE_HELP)]
    Timeline(TimelineArgs),
    /// Write a recording in another format: JSON lines, Chrome's trace, Perfetto's, Parquet, CSV
    #[command(after_help = export::EXPORT_HELP)]
    Export(ExportArgs),
    /// Start CMD so that it can be traced later, without root and without restart
    #[command(after_help = preload::PRELOAD_HELP)]
    Preload(PreloadArgs),
    /// List the functions that can be traced, and which of them a process or library has
    #[command(after_help = functions::FUNCTIONS_HELP)]
    Functions(FunctionsArgs),
    /// Say what works on this machine, what does not, and the cure
    #[command(after_help = doctor::DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_HELP)]
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    #[command(after_help = MAN_HELP)]
    Man,
}

const HELP: &str = "\
Begin with:
  gpuscope doctor
      what works here for this user, what does not, and the cure
  gpuscope run -- python train.py
      every CUDA call of a program, then a summary
  gpuscope record -- python train.py
      every call into a file, to be looked at later
  gpuscope preload -- python train.py
      nothing yet; but it can be traced whenever somebody wants to look
  sudo gpuscope trace -p 1234
      every CUDA call of a program that already runs
  sudo gpuscope leaks -p 1234
      who holds GPU memory, live
  sudo gpuscope top
      devices, and which process does what on them, live
  sudo gpuscope serve
      metrics of the whole machine, for Prometheus

What gpuscope starts is traced without root. What runs already needs root, or CAP_BPF and CAP_PERFMON, unless it was
started by preload. 'gpuscope COMMAND --help' has more examples; 'gpuscope --version --verbose' says what it was built of.";

const COMPLETIONS_HELP: &str = "\
Examples:
  gpuscope completions bash > /etc/bash_completion.d/gpuscope
  gpuscope completions zsh > \"${fpath[1]}/_gpuscope\"
  gpuscope completions fish > ~/.config/fish/completions/gpuscope.fish";

const MAN_HELP: &str = "\
Examples:
  gpuscope man | man -l -
      read it
  gpuscope man > /usr/local/share/man/man1/gpuscope.1
      install it";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_names_every_class() {
        let mut run = Cli::command();
        let help = run.find_subcommand_mut("run").unwrap().render_help().to_string();
        let listed = &help[help.find("Classes for --filter").unwrap()..];
        let words: Vec<&str> = listed.split(|c: char| !c.is_alphanumeric()).collect();
        for class in crate::catalog::Class::ALL {
            assert!(words.contains(&class.name()), "{}", class.name());
        }
    }
}
