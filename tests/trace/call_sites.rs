//! Where allocations come from: native functions, Python functions, and programs that tell nonsense.

use crate::support::callers::{Callers, Seen, expected_python, python_callers, told};
use crate::support::{compile, sim};
use gpuscope::probe::{Sites, Tier};
use gpuscope::stack::wire::{PYTHON_FULL, SITE_FIRST_ID, SITE_UNSAMPLED, THREADS_FULL};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const CALLER: &str = include_str!("../support/caller.c");
const CROWD: &str = include_str!("../support/crowd.c");
const HOSTILE: &str = include_str!("../support/hostile.c");
const ALLOCATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/allocate.py");

fn callers(tier: Option<Tier>, returns: bool, sites: Sites) -> Callers {
    Callers::of(&sim("libcuda.so.1"), "cuMemAlloc_v2", tier, returns, sites)
}

fn caller(folder: &Path) -> PathBuf {
    compile(folder, "caller", CALLER, &["-g", "-ldl"])
}

fn follow(program: &Path) -> Seen {
    let seen = callers(None, true, Sites::default());
    seen.follow(Command::new(program).arg(sim("libcuda.so.1")), || {})
}

fn assert_c_callers(seen: &Seen) {
    let inner = ["grow caller.c:16", "reserve caller.c:21"];
    assert_eq!(seen.stacks.len(), 2);
    assert!(seen.sites.iter().all(|site| *site >= SITE_FIRST_ID), "{:?}", seen.sites);
    let (first, second) = (told(&seen.stacks[0]), told(&seen.stacks[1]));
    assert_eq!(first[..2], inner);
    assert_eq!(first[2], "main caller.c:49");
    assert_eq!(second[..2], inner);
    assert_eq!(second[2], "work caller.c:27");
    assert!(seen.stacks.iter().all(|stack| !stack.truncated));
    let inlined: Vec<bool> = seen.stacks[0].frames.iter().map(|frame| frame.inlined).collect();
    assert_eq!(inlined[..3], [true, false, false]);
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn native_callers_are_named_with_inlined_functions_after_their_program_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = caller(folder.path());
    for tier in Tier::ALL {
        let seen = callers(Some(tier), true, Sites::default());
        assert_c_callers(&seen.follow(Command::new(&program).arg(sim("libcuda.so.1")), || {}));
    }
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn where_only_the_entry_is_probed_the_callers_are_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = caller(folder.path());
    let seen = callers(None, false, Sites::default());
    assert_c_callers(&seen.follow(Command::new(&program).arg(sim("libcuda.so.1")), || {}));
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn a_program_that_was_deleted_is_named_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = caller(folder.path());
    let seen = callers(None, true, Sites::default());
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3<\"$0\"; rm \"$0\"; exec /proc/self/fd/3 \"$@\""]);
    let seen = seen.follow(command.arg(&program).arg(sim("libcuda.so.1")), || {});
    assert_c_callers(&seen);
    assert_eq!(seen.stacks[0].frames[0].module.as_deref(), Some("caller (deleted)"));
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn python_callers_are_named_to_the_line() {
    let seen = callers(None, true, Sites::default());
    let mut command = Command::new("python3");
    let seen = seen.follow(command.arg(ALLOCATE).arg(sim("libcuda.so.1")).arg("3"), || {});
    assert_eq!(python_callers(&seen), expected_python(true), "{:?}", seen.notes);
    assert_eq!(seen.sites.len(), 13);
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn a_child_runs_the_interpreter_of_its_parent() {
    let script = Path::new(ALLOCATE).with_file_name("fork.py");
    let seen = callers(None, true, Sites::default());
    let seen = seen.follow(Command::new("python3").arg(script).arg(sim("libcuda.so.1")), || {});
    let python: Vec<String> = told(&seen.stacks[0])
        .into_iter()
        .filter(|frame| frame.contains("fork.py"))
        .collect();
    assert_eq!(python, ["work fork.py:12", "<module> fork.py:25"]);
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn threads_that_allocate_at_the_same_time_keep_their_own_stacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "crowd", CROWD, &["-g", "-ldl"]);
    let all = Sites {
        stacks_per_second: u32::MAX,
        ..Sites::default()
    };
    let seen = callers(None, true, all).follow(Command::new(program).arg(sim("libcuda.so.1")), || {});
    let functions: BTreeSet<String> = seen
        .stacks
        .iter()
        .map(|stack| stack.frames[0].function.clone())
        .collect();
    let expected: BTreeSet<String> = (0..8).map(|number| format!("f{number}")).collect();
    assert_eq!((functions, seen.stacks.len()), (expected, 8));
    let mut of_thread: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for (thread, site) in seen.threads.iter().zip(&seen.sites) {
        of_thread.entry(*thread).or_default().insert(*site);
    }
    assert_eq!((of_thread.len(), seen.sites.len()), (8, 8 * 3000));
    assert!(of_thread.values().all(|sites| sites.len() == 1), "{of_thread:?}");
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn a_python_that_is_not_known_leaves_the_native_stack_and_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("python3.9");
    std::fs::rename(caller(folder.path()), &program).expect("a file");
    let seen = follow(&program);
    assert_c_callers_of("python3.9", &seen);
    assert_eq!(
        seen.notes,
        ["python3.9: has no symbol _PyRuntime: Python frames are not seen"]
    );
}

fn assert_c_callers_of(module: &str, seen: &Seen) {
    assert_eq!(seen.stacks[0].frames[0].module.as_deref(), Some(module));
    assert_c_callers(seen);
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn beyond_the_budget_calls_say_that_they_were_not_sampled() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = Sites {
        stacks_per_second: 0,
        ..Sites::default()
    };
    let program = caller(folder.path());
    let seen = callers(None, true, none).follow(Command::new(program).arg(sim("libcuda.so.1")), || {});
    assert_eq!(seen.sites, [SITE_UNSAMPLED; 2]);
    assert_eq!((seen.stacks.len(), seen.counters.unsampled), (0, 2));
}

/// The Python frames that are shown of a program that claims to be CPython.
fn hostile(what: &str) -> (Vec<String>, u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "hostile", HOSTILE, &["-ldl"]);
    let seen = callers(None, true, Sites::default());
    let seen = seen.follow(Command::new(program).arg(sim("libcuda.so.1")).arg(what), || {});
    assert_eq!(seen.stacks.len(), 1, "{what}: {:?}", seen.notes);
    let told = told(&seen.stacks[0]);
    let python = told
        .into_iter()
        .filter(|frame| frame.starts_with("hello") || frame.contains("Python function"));
    (python.collect(), seen.events[0].flags)
}

#[test]
#[ignore = "needs root and BPF: how the kernel reads stacks; `inside_sites` is the other's"]
fn an_interpreter_that_is_nonsense_costs_a_bounded_time_and_is_not_believed() {
    let frames = |what| hostile(what).0;
    assert_eq!(frames("nothing"), ["hello"; 3]);
    let (circle, flags) = hostile("frames in a circle");
    assert_eq!((circle.len(), flags & PYTHON_FULL), (48, PYTHON_FULL));
    let (none, flags) = hostile("threads in a circle");
    assert_eq!((none.len(), flags & THREADS_FULL), (0, THREADS_FULL));
    assert!(frames("interpreters in a circle").is_empty());
    assert_eq!(frames("no frames there"), ["hello"]);
    let endless = frames("a name without end");
    assert!(
        endless.len() == 3 && endless[0].chars().count() <= 4 * 4097,
        "{}",
        endless[0].len()
    );
    assert!(frames("a name that is none").iter().all(|frame| frame == "hello"));
    assert!(
        frames("no code")
            .iter()
            .all(|frame| frame.starts_with("[Python function at 0x"))
    );
    assert_eq!(frames("code nowhere")[0], "[Python function at 0x7ffffffffffffff8]");
    assert_eq!(frames("lines without end"), ["hello"; 3]);
}
