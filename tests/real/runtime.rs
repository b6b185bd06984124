//! NVIDIA's own runtime and driver libraries, called on a machine without a GPU: every call fails, and the trace names
//! the error and the shape of the launch.
//!
//! `scripts/fetch-libraries.sh DIR`, then `GPUSCOPE_LIBRARIES=DIR make test`.

use crate::support::{Gpuscope, Trace, assert_same, number, text};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNTIMES: [&str; 5] = ["11.8.89", "12.1.105", "12.4.127", "12.9.79", "13.0.96"];
/// A driver branch, and a runtime that is not too new for it.
const DRIVERS: [(&str, &str); 4] = [
    ("470", "11.8.89"),
    ("535", "12.1.105"),
    ("550", "12.4.127"),
    ("555", "12.4.127"),
];

fn libraries() -> PathBuf {
    let folder = std::env::var_os("GPUSCOPE_LIBRARIES").expect("GPUSCOPE_LIBRARIES; scripts/fetch-libraries.sh");
    std::fs::canonicalize(folder).expect("the folder of fetch-libraries.sh")
}

/// The one file of `DIR/kind/<prefix>…`.
fn library(kind: &str, prefix: &str) -> PathBuf {
    let versions = std::fs::read_dir(libraries().join(kind)).expect("a folder of fetch-libraries.sh");
    let version = versions
        .map(|entry| entry.expect("an entry").path())
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        })
        .unwrap_or_else(|| panic!("{kind}/{prefix} was not fetched"));
    let mut files = std::fs::read_dir(version).expect("a folder");
    files.next().expect("a library").expect("an entry").path()
}

fn source(name: &str) -> String {
    format!("{}/tests/gpu/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Traces a command, with `folder` as the only place where it may find a driver.
fn traced(command: &[&str], folder: &Path) -> Trace {
    Gpuscope::run(&[], command).env("LD_LIBRARY_PATH", folder).finish().ok()
}

/// What the program said of each call: its name, its result, and that result's name as the runtime has it.
fn said(trace: &Trace) -> Vec<(String, u64, String)> {
    let calls = trace.stdout.lines().filter_map(|line| line.strip_prefix("CALL "));
    let said: Vec<_> = calls
        .map(|call| {
            let words: Vec<&str> = call.split(' ').collect();
            (
                words[0].to_owned(),
                words[1].parse().expect("a code"),
                words[2].to_owned(),
            )
        })
        .collect();
    assert_eq!(said.len(), 4, "{}", trace.stdout);
    said
}

/// Every call that the program made and nothing else of its names, each with the program's own result.
fn each_call_is_named_with_its_error(trace: &Trace) {
    for (name, code, error) in said(trace) {
        assert_ne!(code, 0, "{name} worked: this test is for machines without a GPU");
        let calls: Vec<_> = trace.calls_of(&name).collect();
        assert_eq!(calls.len(), 1, "{name}");
        assert_eq!(
            (number(calls[0], "ret"), text(calls[0], "error")),
            (code, error),
            "{name}"
        );
        assert_eq!(trace.failures().get(&(name.clone(), code)), Some(&1), "{name}");
    }
    assert_eq!(
        (&trace.summary()["lost_events"], &trace.summary()["malformed_events"]),
        (&json!(0), &json!(0))
    );
}

fn the_arguments_are_those_passed(trace: &Trace) {
    let launch = trace.calls_of("cudaLaunchKernel").next().expect("a launch");
    assert_eq!(launch["category"], "launch");
    assert_eq!(launch["args"]["gridDim"], json!([3, 5, 7]));
    assert_eq!(launch["args"]["blockDim"], json!([32, 2, 1]));
    assert_eq!(launch["args"]["sharedMem"], 128);
    assert_eq!(launch["args"]["stream"], "0x0");
    let malloc = trace.calls_of("cudaMalloc").next().expect("an allocation");
    assert_eq!(
        (&malloc["args"]["size"], &malloc["size"]),
        (&json!(12345), &json!(12345))
    );
    let copy = trace.calls_of("cudaMemcpy").next().expect("a copy");
    assert_eq!((&copy["size"], &copy["direction"]), (&json!(64), &json!("HtoD")));
}

#[test]
#[ignore = "needs root, BPF and GPUSCOPE_LIBRARIES"]
fn every_runtime_release_is_traced_through_python() {
    let nowhere = tempfile::tempdir().expect("a folder");
    for version in RUNTIMES {
        let runtime = library("runtime", version);
        let runtime = runtime.to_str().expect("a path in UTF-8");
        let trace = traced(&["python3", &source("shapes.py"), runtime], nowhere.path());
        println!("{version}: {}", trace.stdout.lines().next().unwrap_or_default());
        each_call_is_named_with_its_error(&trace);
        the_arguments_are_those_passed(&trace);
    }
}

/// Builds `shapes.cu` with NVIDIA's compiler.
fn built(folder: &Path, name: &str, options: &[&str]) -> String {
    let toolkit = libraries().join("toolkit/nvidia/cu13");
    let program = folder.join(name);
    // the wheel has no libcudart.so, which the linker looks for
    let link = folder.join("libcudart.so");
    if !link.exists() {
        std::os::unix::fs::symlink(toolkit.join("lib/libcudart.so.13"), link).expect("a link");
    }
    let status = Command::new(toolkit.join("bin/nvcc"))
        .args(["-cudadevrt", "none", "-allow-unsupported-compiler", "-L"])
        .arg(folder)
        .arg("-L")
        .arg(toolkit.join("lib"))
        .arg(format!("-Xlinker=-rpath={}", toolkit.join("lib").display()))
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(source("shapes.cu"))
        .status();
    assert!(status.expect("nvcc").success());
    program.to_str().expect("a path in UTF-8").to_owned()
}

fn stripped(program: &str) -> String {
    let bare = format!("{program}-stripped");
    let status = Command::new("strip").args(["-o", &bare, program]).status();
    assert!(status.expect("strip").success());
    bare
}

#[test]
#[ignore = "needs root, BPF and GPUSCOPE_LIBRARIES"]
fn programs_of_nvcc_are_traced_with_a_shared_a_static_and_a_stripped_runtime() {
    let folder = tempfile::tempdir().expect("a folder");
    let shared = built(folder.path(), "shared", &["-cudart", "shared"]);
    let linked_in = built(folder.path(), "static", &["-cudart", "static"]);
    let bare = stripped(&linked_in);
    let nowhere = tempfile::tempdir().expect("a folder");
    for (program, how) in [
        (&shared, "libcudart.so.13"),
        (&linked_in, "linked in statically"),
        (&bare, "linked in statically and stripped"),
    ] {
        let trace = traced(&[program], nowhere.path());
        each_call_is_named_with_its_error(&trace);
        the_arguments_are_those_passed(&trace);
        let attached = trace.summary()["attached"].to_string();
        assert!(attached.contains(how), "{program}: {attached}");
    }
}

/// Which function of libcuda was called how often, by the library of tests/gpu/counter.c.
struct Counter {
    folder: tempfile::TempDir,
    names: Vec<String>,
}

impl Counter {
    fn build() -> Counter {
        let folder = tempfile::tempdir().expect("a folder");
        let catalog = gpuscope::catalog::Catalog::builtin().expect("a catalogue");
        let driver = catalog.library("driver").expect("a driver");
        let rows = catalog.rows.iter().filter(|row| row.library == driver);
        let mut names: Vec<String> = rows.map(|row| row.symbol.clone()).collect();
        names.sort();
        names.dedup();
        let lines = names.iter().enumerate();
        let header: String = lines
            .map(|(index, name)| format!("FUNCTION({index}, {name})\n"))
            .collect();
        std::fs::write(folder.path().join("names.h"), header).expect("a file");
        let status = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-I"])
            .arg(folder.path())
            .arg(source("counter.c"))
            .arg("-o")
            .arg(folder.path().join("counter.so"))
            .arg("-ldl")
            .status();
        assert!(status.expect("cc").success());
        Counter { folder, names }
    }

    fn file(&self, name: &str) -> String {
        self.folder
            .path()
            .join(name)
            .to_str()
            .expect("a path in UTF-8")
            .to_owned()
    }

    fn counts(&self, file: &str) -> BTreeMap<String, u64> {
        let bytes = std::fs::read(file).expect("counts");
        let counts = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        self.names
            .iter()
            .cloned()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// A real driver without a GPU: it loads, gives out addresses, and refuses to start.
#[test]
#[ignore = "needs root, BPF and GPUSCOPE_LIBRARIES"]
fn every_call_into_a_driver_is_counted_as_an_independent_counter_counts_it() {
    let counter = Counter::build();
    for (branch, version) in DRIVERS {
        let runtime = library("runtime", version);
        let runtime = runtime.to_str().expect("a path in UTF-8");
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(library("driver", branch), folder.path().join("libcuda.so.1")).expect("a link");
        let counts = counter.file(branch);
        let script = format!(
            "CUDA_CALLS_FILE={counts} LD_PRELOAD={} exec python3 {} {runtime}",
            counter.file("counter.so"),
            source("shapes.py")
        );
        let trace = traced(&["sh", "-c", &script], folder.path());
        each_call_is_named_with_its_error(&trace);
        let mut seen = trace.totals("calls");
        seen.retain(|(layer, _), _| layer == "driver");
        let seen: BTreeMap<String, u64> = seen.into_iter().map(|((_, name), calls)| (name, calls)).collect();
        let made = counter.counts(&counts);
        println!(
            "{branch}: {} calls of {} functions",
            made.values().sum::<u64>(),
            made.len()
        );
        assert!(made.contains_key("cuInit"), "{branch}: {made:?}");
        assert_same(branch, &made, &seen);
    }
}
