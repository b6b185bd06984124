//! From inside: what the agent sees in its process is what the kernel's engine sees, for a user without rights, and the program
//! goes its way. How calls are counted is `exactness`' business, for this engine as for the others.

use crate::support::{Gpuscope, Trace, assert_same, compile, eventually, sim_folder, sim_text};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Nobody, who has no right but to run what everybody may.
pub(crate) const NOBODY: [&str; 5] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--no-new-privs",
];

fn inside(options: &[&str], scenario: &[&str]) -> Gpuscope {
    let gpusim = sim_text("gpusim");
    let command: Vec<&str> = std::iter::once(gpusim.as_str())
        .chain(scenario.iter().copied())
        .collect();
    Gpuscope::run(options, &command).tier("inside")
}

/// Every call that the libraries received is counted and written, and none is lost.
fn assert_whole(trace: &Trace) {
    let visible = trace.ledger.visible();
    assert!(visible.values().sum::<u64>() > 0, "no call");
    assert_same(&format!("totals; {:?}", trace.unseen()), &visible, &trace.entered());
    assert_eq!(trace.summary()["attach"], "inside");
    assert_eq!(trace.summary()["lost_events"], 0);
    assert_eq!(trace.summary()["malformed_events"], 0);
}

/// Copies of gpuscope and the simulated CUDA that everybody may run, in a folder of their own.
pub(crate) struct Public {
    folder: tempfile::TempDir,
}

impl Public {
    pub(crate) fn new() -> Public {
        let folder = tempfile::tempdir().expect("a folder");
        let everybody = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), everybody.clone()).expect("rights");
        let copy = |from: &Path| {
            let to = folder.path().join(from.file_name().expect("a name"));
            // by a process of its own: what a child of this one holds open for writing cannot be run
            let copied = std::process::Command::new("cp").arg(from).arg(&to).status();
            assert!(copied.expect("cp").success());
            std::fs::set_permissions(to, everybody.clone()).expect("rights");
        };
        copy(Path::new(env!("CARGO_BIN_EXE_gpuscope")));
        for entry in std::fs::read_dir(sim_folder()).expect("a folder").flatten() {
            copy(&entry.path());
        }
        Public { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What `arguments` of gpuscope say to nobody: stdout, stderr, and the exit status.
    fn as_nobody(&self, arguments: &[&str]) -> (String, String, Option<i32>) {
        let done = std::process::Command::new(NOBODY[0])
            .args(&NOBODY[1..])
            .arg(self.path("gpuscope"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("GPUSCOPE_ENGINE")
            .output()
            .expect("setpriv");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&done.stdout), text(&done.stderr), done.status.code())
    }
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn a_user_without_rights_gets_exact_totals_and_is_told_how() {
    let public = Public::new();
    let (stdout, stderr, status) =
        public.as_nobody(&["run", "-q", "--summary", "json", "--", "./gpusim", "train", "20"]);
    assert_eq!(status, Some(0), "{stderr}");
    let summary = summary_in(&stderr);
    assert_eq!(summary["engine"]["name"], "inside");
    assert_eq!(summary["engine"]["because"], "gpuscope starts the program");
    assert_eq!(summary["attach"], "inside");
    let calls = |name: &str| {
        let functions = summary["functions"].as_array().expect("functions");
        functions
            .iter()
            .find(|function| function["name"] == name)
            .map(|function| function["calls"].clone())
    };
    // 20 steps of 20 kernels, and what the program says of itself
    assert_eq!(calls("cudaLaunchKernel"), Some(400.into()));
    assert_eq!(calls("cudaGetDevice"), Some(1000.into()));
    assert!(stdout.contains("\"cudaLaunchKernel\":400"), "{stdout}");
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn a_user_without_rights_records_and_finds_leaks() {
    let public = Public::new();
    let (_, stderr, status) = public.as_nobody(&["record", "-o", "t.arrows", "--", "./gpusim", "leak", "50"]);
    assert_eq!(status, Some(0), "{stderr}");
    let (report, stderr, status) = public.as_nobody(&["report", "t.arrows"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(report.contains("cudaMalloc"), "{report}");
    let (_, stderr, status) = public.as_nobody(&["leaks", "--fail-on", "leak=10MiB", "--", "./gpusim", "leak", "50"]);
    assert_eq!(status, Some(3), "{stderr}");
    let (_, stderr, status) = public.as_nobody(&["leaks", "--fail-on", "leak", "--", "./gpusim", "train", "5"]);
    assert_eq!(status, Some(0), "{stderr}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_user_without_rights_is_told_where_the_host_sleeps_and_where_it_works() {
    let public = Public::new();
    let script = public.path("load.py");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/load.py"), &script).expect("a copy");
    for (how, place) in [("sleep", "load.py:21 load_batch"), ("work", " load_batch")] {
        let program = ["python3", "load.py", "./libcuda.so.1", "200", how];
        let words = ["run", "-q", "--summary", "json", "--engine", "inside", "--"];
        let (_, stderr, status) = public.as_nobody(&[&words[..], &program[..]].concat());
        assert_eq!(status, Some(0), "{stderr}");
        let summary = summary_in(&stderr);
        let places = &summary["outside_cuda"][0]["places"];
        let named = places.as_array().expect("places").iter();
        let named = named.filter(|one| one["where"].as_str().is_some_and(|name| name.ends_with(place)));
        let percent: u64 = named.filter_map(|one| one["percent"].as_u64()).sum();
        assert!(percent >= 50, "{how}: {places:#}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn context_switches_are_counted_without_rights() {
    let public = Public::new();
    let (_, stderr, status) = public.as_nobody(&[
        "run",
        "-q",
        "--summary",
        "json",
        "--engine",
        "inside",
        "--",
        "./gpusim",
        "train",
        "200",
    ]);
    assert_eq!(status, Some(0), "{stderr}");
    let switches = &summary_in(&stderr)["totals"]["context_switches"];
    assert_eq!(switches["threads"], 1, "{switches:#}");
    // each step waits for the device once
    assert!(switches["voluntary"].as_u64() >= Some(100), "{switches:#}");
}

fn summary_in(stderr: &str) -> serde_json::Value {
    let line = stderr.lines().find(|line| line.starts_with('{')).expect("a summary");
    serde_json::from_str(line).expect("JSON")
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn calls_that_do_not_return_the_way_they_came_are_counted() {
    for scenario in [
        &["longjmp", "200"][..],
        &["thread-exit-midcall", "50"],
        &["exec-midcall"],
        &["recursion", "50"],
        &["kill"],
    ] {
        println!("{scenario:?}");
        assert_whole(&inside(&[], scenario).finish());
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn threads_that_come_and_go_use_the_memory_of_those_that_went() {
    assert_whole(&inside(&[], &["thread-exit-midcall", "3000"]).finish());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_the_program_preloads_already_is_kept() {
    // a library that any machine has, and that does nothing to whoever loads it
    let script = "echo $LD_PRELOAD; grep -c libm.so /proc/self/maps";
    let preloaded = "libm.so.6";
    let trace = Gpuscope::script(&[], script)
        .env("LD_PRELOAD", preloaded)
        .tier("inside")
        .finish()
        .ok();
    assert!(trace.stdout.starts_with("libm.so.6:/"), "{}", trace.stdout);
    assert!(!trace.stdout.trim_end().ends_with("\n0"), "{}", trace.stdout);
}

/// Whoever clears the environment, or loads something else instead of the agent.
#[test]
#[ignore = "needs the simulated CUDA"]
fn who_uses_cuda_without_the_agent_is_named() {
    let gpusim = sim_text("gpusim");
    let kept = format!("LD_LIBRARY_PATH={} GPUSIM_KERNEL_US=50000", sim_folder().display());
    for other in ["env -i", "env -u LD_PRELOAD", "env LD_PRELOAD=libm.so.6"] {
        let script = format!("{other} {kept} {gpusim} sync-stall 60; {gpusim} train 1");
        let trace = Gpuscope::script(&[], &script).tier("inside").finish().ok();
        let unseen = trace.unseen();
        let named: Vec<&String> = unseen
            .iter()
            .filter(|line| line.contains("has not loaded the agent"))
            .collect();
        assert!(
            matches!(named[..], [only] if only.starts_with("gpusim ")),
            "{other}: {unseen:?}"
        );
        assert_eq!(trace.calls_of("cudaDeviceSynchronize").count(), 0);
        assert_eq!(trace.calls_of("cuLaunchKernel").count(), 20);
    }
}

/// Other tools' ways in are left to them.
#[test]
#[ignore = "needs the simulated CUDA"]
fn what_cuda_itself_loads_stays_as_it_was() {
    let trace = Gpuscope::script(&[], "echo $CUDA_INJECTION64_PATH")
        .env("CUDA_INJECTION64_PATH", "/opt/other.so")
        .tier("inside")
        .finish()
        .ok();
    assert_eq!(trace.stdout, "/opt/other.so\n");
}

const SANITIZED: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    int (*allocate)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(library, "cudaMalloc");
    int (*release)(void *) = (int (*)(void *))dlsym(library, "cudaFree");
    int failed = 0;
    for (int i = 0; i < 1000; i++) {
        char *own = malloc(100);
        void *place = NULL;
        own[i % 100] = 1;
        failed += allocate(&place, 64) || release(place);
        free(own);
    }
    printf("%d failed\n", failed);
    return failed;
}
"#;

/// A sanitizer wants to be the first library of all, and has shadows of all memory.
#[test]
#[ignore = "needs the simulated CUDA"]
fn programs_with_sanitizers_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in ["address", "thread", "undefined"] {
        let sanitizer = format!("-fsanitize={kind}");
        let program = compile(folder.path(), kind, SANITIZED, &["-g", &sanitizer, "-ldl"]);
        let program = program.to_str().expect("UTF-8");
        let run = Gpuscope::run(&[], &[program, &sim_text("libcudart.so.13")]);
        let trace = run.tier("inside").finish().ok();
        assert_eq!(trace.stdout, "0 failed\n", "{kind}: {}", trace.stderr);
        assert_eq!(
            trace.calls_of("cudaMalloc").count(),
            1000,
            "{kind}: {:?}",
            trace.unseen()
        );
        assert_eq!(trace.calls_of("cudaFree").count(), 1000, "{kind}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_killed_gpuscope_changes_nothing_for_the_program() {
    let command = format!("{} sync-stall 40; echo \"status $?\"", sim_text("gpusim"));
    let running = Gpuscope::script(&[], &command)
        .env("GPUSIM_KERNEL_US", "20000")
        .tier("inside")
        .start();
    running.until_written("cudaDeviceSynchronize");
    running.signal(libc::SIGKILL);
    eventually("the program ends as it would without", || {
        running.stdout().contains("status 0")
    });
    assert!(
        running.stdout().contains("\"cudaDeviceSynchronize\":40"),
        "{}",
        running.stdout()
    );
}

#[test]
#[ignore = "needs root and BPF: it is around the other one"]
fn both_engines_on_one_program_are_exact() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner.json");
    let script = format!(
        "exec {} run -q --getters --summary json --engine inside -- {} train 50 2>{}",
        env!("CARGO_BIN_EXE_gpuscope"),
        sim_text("gpusim"),
        inner.display()
    );
    let outer = Gpuscope::script(&["--engine", "kernel"], &script).finish().ok();
    assert_eq!(
        outer.summary()["attach"].as_str().map(|way| way != "inside"),
        Some(true)
    );
    assert_same("from outside", &outer.ledger.visible(), &outer.totals("calls"));
    let text = std::fs::read_to_string(&inner).expect("a summary");
    let line = text.lines().find(|line| line.starts_with('{')).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(summary["attach"], "inside");
    let functions = summary["functions"].as_array().expect("functions").iter();
    let calls: std::collections::BTreeMap<(String, String), u64> = functions
        .map(|function| {
            let of = |name: &str| function[name].as_str().expect("text").to_owned();
            ((of("layer"), of("name")), function["calls"].as_u64().expect("calls"))
        })
        .filter(|(_, calls)| *calls > 0)
        .collect();
    assert_same("from inside", &outer.ledger.visible(), &calls);
}

#[test]
#[ignore = "needs root and BPF"]
fn callers_that_another_tracer_hides_are_named_as_hidden() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner.txt");
    let script = format!(
        "exec {} leaks --engine inside -- {} hold --count 3 2>{} </dev/null",
        env!("CARGO_BIN_EXE_gpuscope"),
        sim_text("gpusim"),
        inner.display()
    );
    Gpuscope::script(&["--engine", "kernel"], &script).finish().ok();
    let text = std::fs::read_to_string(&inner).expect("a report");
    let (_, sites) = text.split_once("outstanding by call site").expect("sites");
    let first = sites.lines().nth(2).expect("a frame").trim();
    assert_eq!(first, "[uprobes]", "{text}");
    assert!(text.contains("maybe by another tracer: it is hidden"), "{text}");
}
