//! Programs that a look at what the GPU executes could harm end as they do alone.

use crate::gpu::{self, ENGINES, coverage, device, executed, watched};
use crate::support::{Gpuscope, Trace, compile, number, sim_cupti, sim_text, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

const LIBRARY: &str = include_str!("../support/tls_library.c");
const LOADER: &str = include_str!("../support/tls_loader.c");

/// The C library makes room for the variables of so many libraries and some more at the start, and then for 62 at a time. While
/// it loads the one that has to wait for room, a walk through its list (`dl_iterate_phdr`) ends the process, in a thread that began
/// with room for it.
const QUICK: usize = 55;
const SLOW: usize = 14;

/// Libraries of one source: copies, as the same file is loaded once.
fn copies(folder: &Path, name: &str, flags: &[&str], number: usize) -> Vec<PathBuf> {
    let made = compile(folder, name, LIBRARY, &[&["-shared", "-fPIC"], flags].concat());
    let copy = |number| {
        let to = folder.join(format!("{name}{number}.so"));
        std::fs::copy(&made, &to).expect("a copy");
        to
    };
    (0..number).map(copy).collect()
}

#[test]
#[ignore = "needs root and BPF: activities are told by both engines"]
fn a_program_may_load_libraries_while_what_the_gpu_executes_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "loader", LOADER, &["-ldl"]);
    let mut libraries = copies(folder.path(), "quick", &[], QUICK);
    libraries.extend(copies(folder.path(), "slow", &["-DPAUSE_NS=120000000"], SLOW));
    let paths: Vec<&str> = libraries.iter().map(|path| path.to_str().expect("a path")).collect();
    let cuda = sim_text("libcuda.so.1");
    let before = QUICK.to_string();
    let command = [&[program.to_str().expect("a path"), &cuda, &before], &paths[..]].concat();
    for engine in ENGINES {
        let trace = Gpuscope::run(&["--engine", engine], &command)
            .env("GPUSCOPE_CUPTI", sim_cupti())
            .finish();
        let said = format!("{} libraries loaded", QUICK + SLOW);
        assert!(trace.stdout.contains(&said), "{engine}: {}", trace.stderr);
        assert_eq!(coverage(&trace)["seen"], true, "{engine}: {}", trace.stderr);
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by both engines"]
fn graphs_into_which_copies_are_put_by_hand_run_as_they_do_alone_and_all_but_copies_is_told_of() {
    for engine in ENGINES {
        for options in [&[][..], &["--gpu", "graphs"], &["--gpu", "window=20s/40s"]] {
            for way in ["0", "1", "2"] {
                let (trace, log) = watched(engine, options, &["by-hand", "--way", way], &[]);
                let what = format!("{engine} {options:?} {way}: {}", trace.stderr);
                assert!(trace.stdout.contains(GRAPH_OF_A_COPY), "{what}");
                let kernels = executed(&log).filter(|one| one.op == "kernel").count();
                assert_eq!(told_kernels(&trace), kernels as u64, "{what}");
                assert_eq!(told_copies(&trace), 20, "those before: {what}");
                assert!(coverage(&trace)["no_copies_ns"].is_u64(), "{what}");
                assert_eq!(text(device(&trace), "certainty"), "bound", "{what}");
                let words = "puts copies into graphs by hand, or has XLA, which does: such graphs can fail";
                assert!(trace.stderr.contains(words), "{what}");
            }
        }
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by both engines"]
fn windows_that_open_after_a_graph_got_a_copy_by_hand_have_no_copies() {
    let work = ["by-hand", "--kernel-ns", "2000000", "--replays", "300"];
    let (trace, _) = watched("inside", &["--gpu", "window=100ms/200ms"], &work, &[]);
    assert!(
        trace.stdout.contains("300 launches of a graph with a copy"),
        "{}",
        trace.stderr
    );
    assert!(number(&coverage(&trace)["windows"], "number") > 5, "{}", trace.stderr);
    assert!(told_copies(&trace) <= 20, "{}", trace.stderr);
}

const GRAPH_OF_A_COPY: &str = "by-hand: 10 launches of a graph with a copy";

fn told_copies(trace: &Trace) -> u64 {
    gpu::copies(trace).iter().map(|copies| number(copies, "count")).sum()
}

/// Those of graphs that are told of as a whole have one each.
fn told_kernels(trace: &Trace) -> u64 {
    number(device(trace), "kernels") + number(device(trace), "graphs")
}

#[test]
#[ignore = "needs root and BPF: activities are told by both engines"]
fn whoever_only_captures_copies_is_recorded_to_the_end_with_them() {
    let (trace, _) = watched("inside", &[], &["by-hand", "--way", "3"], &[]);
    assert!(trace.stdout.contains(GRAPH_OF_A_COPY), "{}", trace.stderr);
    assert_eq!(coverage(&trace)["no_copies_ns"], Value::Null);
    assert_eq!(coverage(&trace)["given_ns"], Value::Null);
    assert_eq!(coverage(&trace)["windows"], Value::Null);
    assert_eq!(told_copies(&trace), 30, "{}", trace.stderr);
}

#[test]
#[ignore = "needs root and BPF: the program loads a library of its own first"]
fn a_cupti_that_the_program_has_loaded_from_a_file_of_another_name_is_the_one_that_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("ours.so");
    std::fs::copy(sim_cupti(), &own).expect("a copy");
    let own = own.to_str().expect("a path");
    let (gpusim, preload) = (sim_text("gpusim"), format!("LD_PRELOAD={own}"));
    let trace = Gpuscope::run(&["--engine", "kernel"], &["env", &preload, &gpusim, "train", "5"])
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .finish()
        .ok();
    assert_eq!(text(coverage(&trace), "cupti"), own, "{}", trace.stderr);
    assert_eq!(coverage(&trace)["other_cupti"], Value::Null, "{}", trace.stderr);
}
