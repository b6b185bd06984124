//! Options of `gpuscope preload`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

pub(super) const PRELOAD_HELP: &str = "\
Examples:
  gpuscope preload -- python train.py
      runs a program that can be traced later, without root and without restart
  gpuscope trace -p 1234 -q --duration 10s
      and that is how: as the same user, as often as wanted
  env $(gpuscope preload) python train.py
      the same, by the environment
  gpuscope preload --folder /opt/gpuscope > /etc/gpuscope.env
      for a container image or a batch system: docs/preload.md

The program carries gpuscope's agent, switched off: a call of CUDA takes some nanoseconds more. Nothing is recorded
until somebody asks for it, and nothing any more when that ends.

Exit status: CMD's own, which takes gpuscope's place; 125 gpuscope failed; 126 CMD cannot be executed; 127 CMD not found.
Without CMD: 0 done, 1 failed.";

#[derive(Debug, Args)]
pub struct PreloadArgs {
    /// Where to put the agent, for programs to load it: a folder that stays, and is not mounted noexec [default: in
    /// ~/.local/share/gpuscope]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// An agent asks how functions of these files are to be patched: the answer goes to this descriptor
    #[arg(long, value_name = "FD", hide = true, requires = "folder")]
    pub plan: Option<i32>,
    /// Run CMD with it; without CMD, the environment is printed
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
