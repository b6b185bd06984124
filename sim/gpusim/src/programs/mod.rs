//! Programs that use memory and give work in every way there is, and say themselves what they
//! hold and what they did.

mod account;
mod backpressure;
mod bench;
mod by_hand;
mod children;
mod copies;
mod defects;
mod fills;
mod freeing;
mod graphs;
mod item;
mod launches;
mod leaks;
mod memory;
mod options;
mod peers;
mod pools;
mod profiled;
mod random;
mod rates;
mod replays;
mod shapes;
mod spaces;
mod stall;
mod streams;
mod tally;
mod things;
mod worker;

use std::path::Path;
use std::process::ExitCode;

pub use account::Account;
pub use options::Options;
pub use tally::print as print_work;

/// Options in, and an account to keep; a summary or a CUDA error out.
pub type Program = fn(&Options, &mut Account) -> Result<String, u32>;

/// (name, options, what it does, the program)
pub const PROGRAMS: &[(&str, &str, &str, Program)] = &[
    (
        "memory",
        "--seed 1 --steps 1000 --threads 4 --devices 1 --end exit --fork 1",
        "everything at random; ends by exit, leak, kill, exec, reset or destroy",
        memory::memory,
    ),
    (
        "churn",
        "--rate 100000 --seconds 60 --threads 2",
        "so many pairs of cudaMalloc and cudaFree a second (0: as many as can be)",
        rates::churn,
    ),
    (
        "hold",
        "--count 1000000 --size 4096",
        "that many allocations, held until stdin ends or SIGTERM, and never freed",
        rates::hold,
    ),
    (
        "vmm",
        "--steps 100 --seed 1 --end exit",
        "physical memory created, mapped, retained, shared and released in many orders",
        spaces::vmm,
    ),
    (
        "pools",
        "--steps 100 --seed 1",
        "pools with release thresholds, trimmed and destroyed with memory in use",
        pools::pools,
    ),
    (
        "graphmem",
        "--steps 20",
        "memory nodes, added and captured; some of what launches allocate is never freed",
        graphs::graphmem,
    ),
    (
        "ipc",
        "--count 3",
        "a child that opens its parent's memory, and forgets to close one",
        peers::ipc,
    ),
    (
        "leak",
        "--sites 3 --steps 100",
        "leak_a, leak_b and leak_c lose 4096, 10000 and 1048576 bytes a step",
        leaks::leak,
    ),
    (
        "copies",
        "--seed 1 --steps 300 --bytes 65536 --streams 3",
        "every family of copies, fills, prefetches and launches at random, in every kind of memory",
        copies::copies,
    ),
    (
        "stall",
        "--steps 50 --kernels 1 --kernel-ns 2000000 --host-ns 1000000 --sync device",
        "launches, waits (device, stream or event), lets the host work, and again",
        stall::stall,
    ),
    (
        "streams",
        "--seed 1 --steps 200 --left 3 --events-left 2 --kernel-ns 20000",
        "streams with priorities and events that wait for each other; some are never destroyed",
        streams::streams,
    ),
    (
        "graphs",
        "--seed 1 --replays 10 --kernel-ns 20000",
        "graphs captured with a fork, made by hand, nested, cloned and updated",
        replays::graphs,
    ),
    (
        "item",
        "--steps 100 --kernel-ns 200000 --host pageable",
        "after each launch four bytes to the host (pageable or pinned) and a wait",
        item::item,
    ),
    (
        "backpressure",
        "--launches 3000 --kernel-ns 50000",
        "more launches than the queue of a stream has room for",
        backpressure::backpressure,
    ),
    (
        "profiled",
        "--cupti PATH --steps 20 --kernels 4 --kernel-ns 500000 --running 0",
        "so many steps, and as many that it profiles itself, by CUPTI; some kernels run when it begins to",
        profiled::profiled,
    ),
    (
        "by-hand",
        "--steps 150 --kernels 4 --kernel-ns 500000 --replays 10 --way 0",
        "so many steps, then launches of a graph of a kernel and a copy that is put into it by hand (--way 1, 2: by cuGraphAddNode, its second version; 3: captured)",
        by_hand::by_hand,
    ),
    (
        "defect",
        "--kind none --steps 150",
        "a training loop with one thing wrong with it: --kind list names what there is",
        defects::defect,
    ),
];

/// The program of a name; names that scenarios have too are programs if options follow.
pub fn find(name: &str, args: &[String]) -> Option<Program> {
    let (.., program) = PROGRAMS.iter().find(|(known, ..)| *known == name)?;
    let with_options = args.iter().any(|a| a.starts_with("--"));
    let is_scenario = crate::scenarios::SCENARIOS.iter().any(|(known, ..)| *known == name);
    (with_options || !is_scenario).then_some(*program)
}

/// Prints what books say: one line per image of a process.
pub fn print_books(files: &[String]) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for file in files {
        match gpusim_common::book::lines(Path::new(file)) {
            Ok(lines) => lines.iter().for_each(|line| println!("{line}")),
            Err(error) => {
                eprintln!("gpusim: {error}");
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}
