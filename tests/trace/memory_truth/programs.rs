//! Programs with a purpose: each kind of memory in the orders that are particular to it, and calls that fail.

use super::account::{
    assert_accounts, assert_figures, of_book, of_report, only, paired, refused_of_book, refused_of_report,
};
use super::book::Books;
use super::support::{Gpuscope, Trace, number, sim_text};
use serde_json::Value;

/// Runs `PROGRAM ARGUMENTS…` of the simulator, with `NAME=VALUE`s.
fn watch(command: &str, settings: &[(&str, &str)]) -> (Trace, Vec<Value>) {
    let books = Books::new();
    let (program, arguments) = command.split_once(' ').expect("arguments");
    let program = sim_text(program);
    let command: Vec<&str> = [program.as_str()].into_iter().chain(arguments.split(' ')).collect();
    let mut gpuscope = books.of(Gpuscope::leaks(&[], &command));
    for (name, value) in settings {
        gpuscope = gpuscope.env(name, value);
    }
    (gpuscope.finish().ok(), books.read())
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_order_of_making_sharing_and_giving_back_is_as_in_the_book() {
    for command in [
        "gpusim vmm --steps 300",
        "gpusim vmm --steps 60 --end leak",
        "gpusim pools --steps 300",
        "gpusim graphmem --steps 20",
        "gpusim ipc --count 5",
        "gpusim leak --sites 3 --steps 50",
        "gpusim pool 25",
        "gpusim train 5",
        "gpusim-driver 8",
        "gpusim-driver 8 leak",
    ] {
        let (trace, books) = watch(command, &[]);
        assert_accounts(command, &books, &trace);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_goes_with_the_last_release_of_a_primary_context_was_not_freed() {
    let (trace, books) = watch("gpusim-driver 8 release", &[]);
    let process = only(&trace);
    assert_eq!(of_book(&books[0]), of_report(process));
    // the simulator calls it a reset
    let told = books[0]["devices"][0]["ended_by"].to_string();
    assert!(told.contains("context reset"), "{told}");
    let expected: Value = told
        .replace("context reset", "context destroyed")
        .parse()
        .expect("JSON");
    assert_eq!(process["ended_by"], expected);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_runtime_inside_the_program_changes_nothing() {
    for program in ["gpusim-static", "gpusim-static-stripped"] {
        for end in ["exit", "leak", "reset"] {
            let command = format!("{program} memory --seed 10 --steps 500 --end {end}");
            let (trace, books) = watch(&command, &[]);
            assert_accounts(&command, &books, &trace);
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn devices_are_told_by_the_numbers_that_the_program_uses() {
    let command = "gpusim memory --seed 12 --devices 2 --end leak";
    let settings = [("GPUSIM_DEVICES", "3"), ("CUDA_VISIBLE_DEVICES", "2,0")];
    let (trace, books) = watch(command, &settings);
    assert_accounts(command, &books, &trace);
}

/// Functions that take memory, and how many of their calls succeed before one fails.
const REFUSED_ALLOCATIONS: [&str; 17] = [
    "cuMemAlloc_v2:9",
    "cuMemAllocPitch_v2:2",
    "cuMemAllocManaged:3",
    "cuMemAllocAsync:2",
    "cuMemAllocFromPoolAsync:3",
    "cuMemCreate:2",
    "cuMemMap:4=1",
    "cuMemAddressReserve:3",
    "cuMemHostAlloc:2",
    "cuMemAllocHost_v2:2",
    "cuMemHostRegister_v2:2+=1",
    "cuArrayCreate_v2:2=2",
    "cuArray3DCreate_v2:2=2",
    "cuMipmappedArrayCreate:2=2",
    "cuImportExternalMemory:2",
    "cuExternalMemoryGetMappedBuffer:2",
    "cuMemImportFromShareableHandle:2",
];

const REFUSED_FREES: [&str; 13] = [
    "cuMemFree_v2:5=1",
    "cuMemFreeAsync:3=1",
    "cuMemFreeHost:2=1",
    "cuMemHostUnregister:2=1",
    "cuArrayDestroy:2=1",
    "cuMipmappedArrayDestroy:2=1",
    "cuMemUnmap:3=1",
    "cuMemRelease:4=1",
    "cuMemAddressFree:2=1",
    "cuDestroyExternalMemory:2=1",
    "cuMemPoolDestroy:2=1",
    "cuGraphDestroy:2=1",
    "cuCtxDestroy_v2:2=1",
];

/// All; of graphs only the launch can fail, which takes no memory then.
const FAMILIES: [&str; 12] = [
    "array",
    "async",
    "device",
    "external",
    "imported",
    "managed",
    "mapped",
    "mipmapped",
    "physical",
    "pinned",
    "registered",
    "reserved",
];

/// Families with allocations that failed.
fn refused(books: &[Value]) -> Vec<String> {
    let figures = books.iter().flat_map(of_book);
    let failed = figures.filter(|((family, _, name), _)| *name == "failed_allocations" && family != "*");
    failed.map(|((family, ..), _)| family).collect()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_was_refused_is_counted_and_changes_nothing() {
    let mut families = Vec::new();
    for seed in 1..=4 {
        let command = format!("gpusim memory --seed {seed} --steps 1500 --threads 1 --end leak");
        let (trace, books) = watch(&command, &[("GPUSIM_FAIL", &REFUSED_ALLOCATIONS.join(","))]);
        assert_accounts(&command, &books, &trace);
        families.extend(refused(&books));
    }
    families.sort_unstable();
    families.dedup();
    assert_eq!(families, FAMILIES);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_could_not_be_given_back_is_still_held() {
    for end in ["exit", "leak"] {
        let command = format!("gpusim memory --seed 8 --steps 1500 --threads 2 --end {end}");
        let (trace, books) = watch(&command, &[("GPUSIM_FAIL", &REFUSED_FREES.join(","))]);
        for (book, process) in paired(&command, &books, &trace) {
            assert_figures(&command, book, process);
            // a free that fails on demand is not asked what it was to free
            let sum = |(double, other): (u64, u64)| double + other;
            assert_eq!(sum(refused_of_book(book)), sum(refused_of_report(process)), "{command}");
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_device_that_runs_full_refuses_and_nothing_is_lost_from_the_account() {
    let command = "gpusim memory --seed 9 --steps 2000 --end exit";
    let (trace, books) = watch(command, &[("GPUSIM_MEMORY", "64MiB")]);
    assert!(refused(&books).len() > 1, "{books:?}");
    assert_accounts(command, &books, &trace);
    assert!(number(&books[0]["devices"][0], "failed_allocations") > 20);
}
