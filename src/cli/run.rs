//! Options of `gpuscope run`.

use super::{Gpu, Options, Start};
use clap::Args;
use std::ffi::OsString;

pub(super) const RUN_HELP: &str = "\
Examples:
  gpuscope run -- python train.py
      every call as a line on stdout, then the summary on stderr
  gpuscope run -q -- python train.py
      only the summary: which calls, how often, how long, how many bytes
  gpuscope run -o t.jsonl -- ./app
      JSON lines into a file, for jq
  gpuscope run -o t.arrows -- ./app
      a recording beside the summary; gpuscope record has more to say about those
  gpuscope run --filter @copy --min-duration 1ms -- ./app
      copies that take a millisecond or more
  gpuscope run --filter @alloc --filter @free -- ./app
      who allocates, who gives back
  gpuscope run --filter '!cuGetProcAddress*' -- ./app
      everything but these
  gpuscope run --errors -- ./app
      only failed calls
  gpuscope run --kernel ioctl,rpc -- ./app
      what the kernel driver does for each call, and how long its questions to the GPU take
  gpuscope run -- python train.py
      as you, with your groups, HOME and PATH, though gpuscope is root; --as-root: as root
  gpuscope run -q --fail-on leak -- ./test
      exit status 3 when the program gave back less GPU memory than it took

Classes for --filter: alloc, free, memory, copy, memset, prefetch, launch, sync, stream, event, graph, module, \
context, query, error, ioctl, other. @memory is all of alloc, free, memory, memset and prefetch. \
Quote !, * and ? from the shell.

Exit status: CMD's own (128+N when signal N ended it); 125: gpuscope failed or was used wrongly; \
126: CMD cannot be executed; 127: CMD not found; 3: a --fail-on rule matched and CMD succeeded. \
128+N also when signal N ended gpuscope: CMD lives on, untraced. \
A Ctrl-C at the terminal reaches CMD, too, and is waited for.";

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub options: Options,
    #[command(flatten)]
    pub start: Start,
    #[command(flatten)]
    pub gpu: Gpu,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
