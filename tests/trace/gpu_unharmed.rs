//! Programs that a look at what the GPU executes could harm end as they do alone.

use crate::gpu::{ENGINES, coverage, device, executed, watched};
use crate::support::{Gpuscope, compile, number, sim_cupti, sim_text, text};
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
fn graphs_with_conditional_nodes_run_as_they_do_alone_and_what_is_not_known_of_them_is_said() {
    for engine in ENGINES {
        for options in [&[][..], &["--gpu", "graphs"], &["--gpu", "window=20s/40s"]] {
            let (trace, log) = watched(engine, options, &["conditional"], &[]);
            let what = format!("{engine} {options:?}: {}", trace.stderr);
            let alone = "conditional: 10 launches of a graph with a conditional node";
            assert!(trace.stdout.contains(alone), "{what}");
            let given = number(coverage(&trace), "given_ns");
            let before = executed(&log).filter(|one| one.end_ns <= given).count() as u64;
            assert!(before >= 80, "{what}");
            assert_eq!(number(device(&trace), "kernels"), before, "{what}");
            assert_eq!(
                text(&coverage(&trace)["windows"], "ending"),
                "conditional-nodes",
                "{what}"
            );
            let words = "makes graphs with conditional nodes, which can fail while CUPTI records";
            assert!(trace.stderr.contains(words), "{what}");
        }
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by both engines"]
fn whoever_makes_no_conditional_node_is_recorded_to_the_end() {
    let (trace, _) = watched("inside", &[], &["graphs"], &[]);
    assert_eq!(coverage(&trace)["given_ns"], Value::Null);
    assert_eq!(coverage(&trace)["windows"], Value::Null);
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
