//! The scenarios. Each returns a line about what it did, or the error that ended it.

mod busy;
mod errors;
mod escape;
mod memory;
mod processes;
mod train;

/// Arguments in, summary or CUDA error out.
type Scenario = fn(&[u64]) -> Result<String, u32>;

/// (name, arguments, what it does, the scenario)
pub const SCENARIOS: &[(&str, &str, &str, Scenario)] = &[
    (
        "train",
        "[STEPS=100]",
        "a healthy training loop (0 steps: until a signal)",
        train::train,
    ),
    (
        "leak",
        "[STEPS=200]",
        "a training loop that keeps 1 MiB per step (0: until memory runs out)",
        memory::leak,
    ),
    (
        "churn",
        "[BATCHES=50]",
        "1 GiB allocated and freed per batch",
        memory::churn,
    ),
    ("pool", "[STEPS=100]", "stream-ordered allocation", memory::pool),
    (
        "kinds",
        "",
        "pinned, registered, managed and pitched memory, every copy direction",
        memory::kinds,
    ),
    (
        "vmm",
        "[BLOCKS=16]",
        "the driver API alone: a module, launches, virtual memory",
        memory::vmm,
    ),
    (
        "tiny-launches",
        "[N=10000]",
        "kernels too small to be worth a launch",
        busy::tiny_launches,
    ),
    (
        "sync-stall",
        "[N=200]",
        "a device synchronisation after every launch",
        busy::sync_stall,
    ),
    (
        "graph",
        "[N=100]",
        "a captured graph of 20 kernels, launched N times",
        train::graph,
    ),
    (
        "threads",
        "[N=4] [ROUNDS=100]",
        "threads with a stream each",
        busy::threads,
    ),
    (
        "hammer",
        "RATE [SECONDS=5] [THREADS=1]",
        "cudaStreamQuery at RATE calls/s in all (0: as fast as possible)",
        busy::hammer,
    ),
    (
        "errors",
        "[ROUNDS=10]",
        "twelve calls per round that must fail, with known codes",
        errors::errors,
    ),
    (
        "recursion",
        "[DEPTH=10]",
        "API calls nested in host callbacks",
        escape::recursion,
    ),
    (
        "longjmp",
        "[N=100]",
        "longjmp out of a callback, through the API call",
        escape::longjmp,
    ),
    (
        "thread-exit-midcall",
        "[N=10]",
        "threads that end inside a callback",
        escape::thread_exit,
    ),
    (
        "exec-midcall",
        "",
        "exec inside a callback; the new image trains for 3 steps",
        escape::exec,
    ),
    (
        "kill",
        "",
        "SIGKILL inside a callback, with memory allocated",
        escape::kill,
    ),
    (
        "fork",
        "",
        "children that call, one that may not, one that execs",
        processes::fork,
    ),
    (
        "late-dlopen",
        "",
        "gpusim-late: loads the runtime while running and calls at once",
        processes::late,
    ),
    (
        "static",
        "",
        "gpusim-static: a short training loop with the runtime linked in",
        processes::static_,
    ),
];

fn argument(args: &[u64], index: usize, default: u64) -> u64 {
    args.get(index).copied().unwrap_or(default)
}
