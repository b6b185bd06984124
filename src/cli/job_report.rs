//! Options of `gpuscope job-report`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

pub(super) const JOB_REPORT_HELP: &str = "\
Examples:
  gpuscope job-report
      in an epilog of Slurm, PBS or LSF: the job that the environment names, on this node
  gpuscope job-report --job 4711 --from http://node1:9748/metrics --from http://node2:9748/metrics
      of all its nodes
  gpuscope job-report --label namespace=ml --label pod=train-0 --format markdown
      of a pod
  curl -s --user reader https://node1:9748/metrics | gpuscope job-report --job 4711 --from -
      where a password is asked for
  gpuscope job-report --format json -o \"$HOME/gpuscope-$SLURM_JOB_ID.json\"
      for a program

It asks gpuscope serve, which has to run on the node with labels that tell jobs apart: slurm_job (one of the usual ones), \
or --labels job,… for all schedulers. Series of a job stay for an hour after its end (--retain). What it says are \
bounds, from calls alone: docs/serve.md, Waste.

Exit status: 0 done, also if the job did nothing with GPUs; 1 an exporter does not answer (the report is of the others); 2 wrong usage.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum JobFormat {
    Text,
    Markdown,
    Json,
}

#[derive(Debug, Args)]
pub struct JobReportArgs {
    /// The job [default: that of SLURM_JOB_ID, PBS_JOBID or LSB_JOBID, unless there is --label]
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Only what has this label; all of them where there are several (repeatable)
    #[arg(long = "label", value_name = "NAME=VALUE")]
    pub labels: Vec<String>,
    /// What gpuscope serve answers: its address, a file, or - for stdin; one for each node (repeatable)
    #[arg(long, value_name = "URL|FILE", default_value = "http://127.0.0.1:9748/metrics")]
    pub from: Vec<String>,
    #[arg(long, value_enum, default_value = "text")]
    pub format: JobFormat,
    /// Write it to FILE (`-`: stdout)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
}
