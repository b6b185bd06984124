//! Options of `gpuscope doctor`.

use clap::Args;

pub(super) const DOCTOR_HELP: &str = "\
Examples:
  sudo gpuscope doctor
      what this machine allows, each with the cure
  sudo gpuscope doctor -p 1234
      which CUDA libraries a process maps, and what of them can be seen
  sudo gpuscope doctor --json | jq '.checks[] | select(.state != \"ok\")'
      what is limited or missing

Exit status: 0 tracing is possible; 1 it is not; 2 wrong usage.";

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also say what can be seen of this process
    #[arg(short, long, value_name = "PID")]
    pub pid: Option<u32>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}
