//! Programs with dynamic linkers of their own, as containers have them: nobody has hooked such a linker before it runs.

use crate::effort::{rounds, tried};
use crate::subject::folder;
use crate::tracer::Tracer;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const CHROOTS: u64 = 20;
const ALLOCATIONS: u64 = 10;

/// What a program needs, by the names by which it asks for it.
fn libraries_of(program: &Path) -> Vec<PathBuf> {
    let mut linker = Command::new(program);
    linker
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env("LD_LIBRARY_PATH", folder());
    let output = linker.output().expect("it lists them");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

/// A root with the program and copies of all that it maps.
fn new_root() -> TempDir {
    let (root, program) = (tempfile::tempdir().expect("a folder"), folder().join("many"));
    std::fs::copy(&program, root.path().join("many")).expect("a copy");
    for library in libraries_of(&program) {
        let name = library.file_name().expect("a name");
        let is_linker = name.to_string_lossy().starts_with("ld-");
        let to = match is_linker {
            true => root.path().join(library.strip_prefix("/").expect("whole")),
            false => root.path().join(name),
        };
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::copy(&library, to).expect("a copy");
    }
    root
}

fn start_in(root: &Path) -> Child {
    let mut command = Command::new("chroot");
    command
        .arg(root)
        .args(["/many", "allocations", &ALLOCATIONS.to_string()]);
    command.env("LD_LIBRARY_PATH", "/").stdout(Stdio::piped());
    command.spawn().expect("it starts")
}

fn run_in(root: &Path) -> u32 {
    let child = start_in(root);
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{ALLOCATIONS} allocations, 0 wrong\n")
    );
    pid
}

fn calls_of(records: &[Value], pid: u32) -> u64 {
    let own = |record: &&Value| record["pid"] == pid && record["name"] == "cuMemAlloc_v2";
    records.iter().filter(own).count() as u64
}

/// All calls were seen, or the process is named.
fn assert_seen_or_named(tracer: &Tracer, pids: &[u32]) {
    let records = tracer.records();
    let unseen = &records.last().expect("a summary")["unseen"];
    let mut missed = 0;
    for pid in pids {
        let calls = calls_of(&records, *pid);
        missed += u64::from(calls < ALLOCATIONS);
        let is_named = unseen.to_string().contains(&format!("many {pid} "));
        assert!(calls == ALLOCATIONS || is_named, "{pid}: {calls} calls; {unseen}");
    }
    println!("{missed} of {} missed calls, which was said", pids.len());
}

#[test]
#[ignore = "needs root and BPF"]
fn programs_with_linkers_of_their_own_are_seen_or_named() {
    let times = rounds(1, 1, 10, 200);
    for _ in 0..times {
        let roots: Vec<TempDir> = (0..CHROOTS).map(|_| new_root()).collect();
        let mut tracer = Tracer::start(&["trace", "--all", "-o", "OUT/t.jsonl"]).until_attached();
        let pids: Vec<u32> = roots.iter().map(|root| run_in(root.path())).collect();
        tracer.signal(libc::SIGINT);
        assert!(tracer.wait().success());
        assert_seen_or_named(&tracer, &pids);
    }
    tried(times * CHROOTS, "programs with dynamic linkers of their own");
}
