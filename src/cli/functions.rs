//! Options of `gpuscope functions`.

use clap::Args;
use std::path::PathBuf;

pub(super) const FUNCTIONS_HELP: &str = "\
Examples:
  gpuscope functions 'cudaMemcpy*'
      by name: * is any text, ? one character
  gpuscope functions @alloc
      by class
  gpuscope functions --lib /usr/lib/x86_64-linux-gnu/libcuda.so.1
      what this file has, and at which offset
  gpuscope functions -p 1234
      what the libraries of a process have (yours, or as root)
  sudo gpuscope functions --kernel 'nvidia_*'
      functions of the running kernel, with their arguments, and what cannot be hooked
  gpuscope functions --json @launch | jq -r .name
      names for a script
  gpuscope functions --explain hooks.toml --lib ./libmine.so
      what a hook file would hook there, and what it cannot

Without -p and --lib nothing is looked at: the list is the built-in catalogue, and no privileges are needed.

+10 behind an offset: the probe lies 10 bytes into the function, where it costs less. (slow): there is no such place.

Exit status: 0 listed; 1 nothing matches, a file cannot be read, or --explain found what cannot be hooked; \
2 wrong usage.";

#[derive(Debug, Args)]
pub struct FunctionsArgs {
    /// Glob for names, or @CLASS; without it, all
    pub pattern: Option<String>,
    /// Functions and tracepoints of the running kernel instead: which can be hooked, how, and why not; without a
    /// pattern those of --kernel's groups
    #[arg(long, conflicts_with_all = ["pid", "lib"])]
    pub kernel: bool,
    /// Which of them process PID has, and where
    #[arg(short, long, value_name = "PID", conflicts_with = "lib")]
    pub pid: Option<u32>,
    /// Which of them FILE has, and where
    #[arg(long, value_name = "FILE")]
    pub lib: Option<PathBuf>,
    /// Also the functions of this file (repeatable)
    #[arg(long, value_name = "FILE.toml")]
    pub hooks: Vec<PathBuf>,
    /// Check a hook file: what each of its rows would hook in the installed libraries, --lib or -p, and what cannot be
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["pattern", "hooks"])]
    pub explain: Option<PathBuf>,
    /// JSON lines
    #[arg(long)]
    pub json: bool,
}
