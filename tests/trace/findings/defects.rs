//! Exactly what was planted is found.

use super::program::{Defect, findings, rules};
use super::support::{Gpuscope, Trace, number, sim_cupti, sim_text, text};
use serde_json::Value;

/// Others may take processors from the programs of these tests, too: that is so then, and no defect of theirs.
const OF_THE_MACHINE: &str = "host-contention";

/// What was found of the program.
fn of_program(findings: &[Value]) -> Vec<&str> {
    let rules = rules(findings).into_iter();
    rules.filter(|rule| *rule != OF_THE_MACHINE).collect()
}

/// The finding that was planted; there is no other.
fn only(defect: Defect) -> (Trace, Value) {
    let trace = defect.run(&[]).ok();
    let all = findings(trace.summary()).clone();
    assert_eq!(of_program(&all), [defect.kind], "{all:#?}");
    let planted = all.iter().find(|finding| finding["rule"] == defect.kind).cloned();
    (trace, planted.expect("it is there"))
}

fn has_row(trace: &Trace, moment: &Value) -> bool {
    let at = moment["at_ns"].as_i64().expect("a time");
    let same = |call: &&Value| {
        let ts = (call["ts"].as_f64().expect("a time") * 1e9).round() as i64;
        ["pid", "tid", "name"].iter().all(|key| call[key] == moment[key]) && ts.abs_diff(at) <= 1
    };
    trace.calls().any(|call| same(&call))
}

/// Its worst moments are calls of the trace, and all that a person needs is said.
fn assert_evidence(trace: &Trace, finding: &Value, times: std::ops::RangeInclusive<u64>) {
    assert!(times.contains(&number(finding, "count")), "{finding:#}");
    let moments = finding["worst"].as_array().expect("moments");
    assert_eq!(moments.len() as u64, number(finding, "count").min(3), "{finding:#}");
    for moment in moments {
        assert!(has_row(trace, moment), "not in the trace: {moment}");
    }
    for key in ["title", "what", "do", "thresholds", "certainty"] {
        assert!(!text(finding, key).is_empty(), "{finding:#}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn nothing_is_found_in_a_loop_as_it_should_be() {
    for getters in ["--getters", "--no-getters"] {
        let trace = Defect::of("none").run(&[getters]).ok();
        let all = findings(trace.summary());
        assert_eq!(of_program(all), [""; 0], "{getters}: {all:#?}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn nothing_is_found_where_the_device_has_no_pause() {
    let steps = 1000;
    let trace = Defect {
        steps,
        ..Defect::of("full-queue")
    }
    .run(&[])
    .ok();
    let all = findings(trace.summary());
    assert_eq!(of_program(all), [""; 0], "{all:#?}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_gigabyte_for_each_batch() {
    let setting = "GPUSIM_ALLOC_US=300";
    let (trace, finding) = only(Defect {
        setting,
        ..Defect::of("alloc-churn")
    });
    assert_evidence(&trace, &finding, 149..=149);
    // each time 300 µs to take it, and as much to give it back
    let cost = number(&finding, "cost_ns");
    assert!(cost >= 149 * 600_000, "{finding:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_cache_that_is_emptied_when_memory_is_short() {
    let setting = "GPUSIM_MEMORY=2GiB";
    let (trace, finding) = only(Defect {
        setting,
        ..Defect::of("alloc-retry")
    });
    // seven blocks fit beside the loop's own
    assert_evidence(&trace, &finding, 21..=21);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn polling_instead_of_waiting() {
    let (trace, finding) = only(Defect::of("chatty-getters"));
    assert!(number(&finding, "count") > 10_000, "{finding:#}");
    let moments = finding["worst"].as_array().expect("moments");
    assert!(moments.iter().all(|moment| has_row(&trace, moment)), "{finding:#}");
    // the calls take next to nothing, unless a probe is in them
    assert_eq!(text(&finding, "certainty"), "bound", "{finding:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_fitted_before_and_does_not_any_more() {
    let setting = "GPUSIM_FAIL=cuMemAlloc_v2:5";
    let (trace, finding) = only(Defect {
        setting,
        ..Defect::of("fragmentation")
    });
    assert_evidence(&trace, &finding, 1..=1);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_loss_that_is_read_in_each_step() {
    let (trace, finding) = only(Defect::of("hidden-sync"));
    // an interrupted thread may wait later than is taken for one
    assert_evidence(&trace, &finding, 100..=150);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_host_that_comes_back_when_the_device_is_long_done() {
    let (_, finding) = only(Defect {
        steps: 300,
        ..Defect::of("host-bound")
    });
    // a step may not look like one in which the host was interrupted within its wait: nobody says how often that happens
    let count = number(&finding, "count");
    assert!((285..=300).contains(&count), "{finding:#}");
    assert!(number(&finding, "cost_ns") >= count * 5_000_000, "{finding:#}");
    // start-up, of two seconds, is none of the time
    assert!(finding["share"].as_f64().expect("a share") > 0.8, "{finding:#}");
    for moment in finding["worst"].as_array().expect("moments") {
        assert!(
            moment["name"] == "outside CUDA" && number(moment, "ns") >= 5_000_000,
            "{moment}"
        );
    }
}

#[test]
#[ignore = "needs root and BPF: from inside, frames of the standard library are on the stack, which has no frame pointers"]
fn a_rank_that_sleeps_in_each_step() {
    let trace = Defect {
        steps: 200,
        ..Defect::of("late-rank")
    }
    .run(&[])
    .ok();
    let all = findings(trace.summary());
    assert_eq!(of_program(all), ["host-bound"], "{all:#?}");
    assert!(number(&all[0], "cost_ns") >= 190 * 5_000_000, "{all:#?}");
    // where it sleeps, by samples
    let place = &all[0]["places"][0];
    assert!(
        text(place, "where").contains("late_rank") && number(place, "percent") >= 80,
        "{place:#}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_no_rule_explains_is_said_to_be_unexplained() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("nvml"), "0 gpu_percent 33\n").expect("a folder to write to");
    let command = Defect {
        steps: 500,
        ..Defect::of("none")
    }
    .command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let trace = Gpuscope::run(&[], &command)
        .env("GPUSCOPE_NVML", sim_text("libnvidia-ml.so.1"))
        .env("GPUSIM_STATE", folder.path().display().to_string())
        .finish()
        .ok();
    let said = text(trace.summary(), "not_explained");
    assert!(
        said.starts_with("device 0 was busy 33 % of the time by NVML ("),
        "{said}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_processor_that_others_want() {
    let trace = Defect {
        steps: 30,
        ..Defect::of("host-contention")
    }
    .run(&[])
    .ok();
    let all = findings(trace.summary());
    // the thread is late with its next step as well, where others of the machine come on top
    let others: Vec<&str> = rules(all).into_iter().filter(|rule| *rule != "idle-gaps").collect();
    assert_eq!(others, [OF_THE_MACHINE], "{all:#?}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_batch_that_is_made_when_the_last_one_is_done() {
    let (trace, finding) = only(Defect::of("idle-gaps"));
    assert_evidence(&trace, &finding, 140..=150);
    assert!(number(&finding, "cost_ns") >= 140 * 5_000_000, "{finding:#}");
    assert_eq!(finding["certainty"], "bound");
}

/// The only finding of a program that does not end well.
fn only_of_the_dead(defect: Defect) -> Value {
    let trace = defect.run(&[]);
    let all = findings(trace.summary());
    let of_program: Vec<&Value> = all.iter().filter(|finding| finding["rule"] != OF_THE_MACHINE).collect();
    assert_eq!(of_program.len(), 1, "{all:#?}");
    assert_eq!(of_program[0]["rule"], defect.kind, "{all:#?}");
    of_program[0].clone()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_that_dies_of_a_signal() {
    let finding = only_of_the_dead(Defect::of("killed"));
    let title = text(&finding, "title");
    assert!(title.ends_with("was ended by SIGSEGV"), "{title}");
    let last = finding["worst"][0]["name"].as_str().expect("a name");
    assert!(!last.is_empty() && text(&finding, "what").contains(last), "{finding:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_that_dies_for_want_of_memory() {
    let finding = only_of_the_dead(Defect {
        setting: "GPUSIM_MEMORY=2GiB",
        ..Defect::of("out-of-memory")
    });
    assert_eq!(text(&finding, "title"), "Out of memory: 256.0 MiB asked for");
    assert_eq!(number(&finding, "count"), 1, "{finding:#}");
    // seven blocks fit beside the loop's own
    assert!(text(&finding, "what").contains("it held 1.8 GiB"), "{finding:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn code_that_is_loaded_in_the_middle_of_the_work() {
    let (trace, finding) = only(Defect {
        steps: 220,
        setting: "GPUSIM_LOAD_US=20000",
        ..Defect::of("late-jit")
    });
    assert_evidence(&trace, &finding, 7..=7);
    assert!(number(&finding, "cost_ns") >= 7 * 20_000_000, "{finding:#}");
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn a_host_that_launches_too_slowly() {
    let (trace, finding) = only(Defect {
        steps: 200,
        ..Defect::of("launch-bound")
    });
    assert_evidence(&trace, &finding, 160..=200);
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn kernels_too_small_to_be_launched_one_by_one() {
    let defect = Defect {
        steps: 300,
        ..Defect::of("launch-storm")
    };
    // a storm may be more than the default ring holds
    let trace = defect.run(&["--ring-size", "64MiB"]).ok();
    let all = findings(trace.summary());
    assert_eq!(of_program(all), [defect.kind], "{all:#?}");
    assert_evidence(&trace, &all[0], 29_000..=30_000);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_mebibyte_that_is_kept_of_each_step() {
    let (trace, finding) = only(Defect::of("leak-growth"));
    assert_evidence(&trace, &finding, 90..=130);
    assert_eq!(finding["grave"], true);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn copies_in_the_stream_of_the_kernels() {
    let (trace, finding) = only(Defect::of("no-overlap"));
    assert_evidence(&trace, &finding, 149..=149);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn batches_from_pageable_memory() {
    let (trace, finding) = only(Defect {
        setting: "GPUSIM_PAGEABLE_GBPS=4",
        ..Defect::of("pageable-copy")
    });
    assert_evidence(&trace, &finding, 149..=149);
    // 8 MiB at 4 instead of 25 GB/s, less what is staged at once
    let cost = number(&finding, "cost_ns");
    assert!(cost >= 149 * 1_700_000, "{finding:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_kernel_that_goes_wrong() {
    let (trace, finding) = only(Defect {
        setting: "GPUSIM_FAIL=cuLaunchKernel:400+=719",
        ..Defect::of("sticky-error")
    });
    assert_evidence(&trace, &finding, 1..=1);
    assert!(
        text(&finding, "what").starts_with("cudaErrorLaunchFailure (719)"),
        "{finding:#}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn results_that_come_back_without_a_stream() {
    let (trace, finding) = only(Defect {
        setting: "GPUSIM_PAGEABLE_GBPS=4",
        ..Defect::of("sync-copy")
    });
    assert_evidence(&trace, &finding, 150..=150);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_host_that_waits_before_it_works() {
    let (trace, finding) = only(Defect {
        steps: 400,
        ..Defect::of("sync-stall")
    });
    assert_evidence(&trace, &finding, 300..=400);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_copy_to_nowhere_of_which_nobody_hears() {
    let (trace, finding) = only(Defect::of("unchecked-errors"));
    assert_evidence(&trace, &finding, 140..=150);
    assert_eq!(finding["grave"], true);
}

/// Real CUDA refuses every call of such a process; the simulated one is told to refuse this one.
const FORKED: &str = "\
import ctypes, os
lib = ctypes.CDLL('libcudart.so.13')
address = ctypes.c_void_p()
assert lib.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(1024)) == 0
if os.fork() == 0:
    os._exit(lib.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(1024)))
assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
";

#[test]
#[ignore = "needs the simulated CUDA"]
fn cuda_in_a_forked_child_says_what_to_do() {
    let trace = Gpuscope::run(&[], &["python3", "-c", FORKED])
        .env("GPUSIM_FAIL", "cudaMalloc:2=3")
        .finish()
        .ok();
    let all = findings(trace.summary());
    let of_fork = all.iter().find(|finding| finding["rule"] == "forked-cuda");
    let finding = of_fork.unwrap_or_else(|| panic!("{all:#?}"));
    let title = "cudaErrorInitializationError (3): CUDA in a forked child; use spawn";
    assert_eq!(text(finding, "title"), title);
    assert_evidence(&trace, finding, 1..=1);
}

/// The rules that find something in a program whose device has told what it did.
fn found_with_cupti(defect: Defect, fault: &str) -> (Vec<String>, Trace) {
    let command = defect.command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let gpuscope = Gpuscope::run(&[], &command)
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .env("GPUSIM_CUPTI", fault);
    let trace = gpuscope.finish().ok();
    let all = rules(findings(trace.summary())).into_iter();
    let of_program = all.filter(|rule| *rule != OF_THE_MACHINE).map(str::to_owned);
    (of_program.collect(), trace)
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_device_that_is_busy_with_few_blocks() {
    let (found, trace) = found_with_cupti(Defect::of("small-grids"), "");
    assert_eq!(found, ["small-grids"], "{}", trace.stderr);
    let all = findings(trace.summary());
    let finding = all.iter().find(|finding| finding["rule"] == "small-grids");
    let finding = finding.expect("it is there");
    assert_eq!(number(finding, "count"), 150 * 8, "{finding:#}");
    assert_eq!(finding["certainty"], "measured");
    let what = text(finding, "what");
    assert!(
        what.contains("100 % of that with fewer blocks than multiprocessors (132)"),
        "{what}"
    );
    // kernels of 1 ms, of which 116 of 132 multiprocessors have none
    let kernels_ns = 150 * 8 * 1_000_000 / 132 * 116;
    assert!(number(finding, "cost_ns") <= kernels_ns, "{finding:#}");
    assert!(number(finding, "cost_ns") >= kernels_ns * 9 / 10, "{finding:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn of_few_blocks_nothing_is_said_where_grids_fill_the_device_or_its_size_is_not_known() {
    let (found, trace) = found_with_cupti(Defect::of("none"), "");
    assert_eq!(found, [""; 0], "{}", trace.stderr);
    let (found, trace) = found_with_cupti(Defect::of("small-grids"), "mig");
    assert_eq!(found, [""; 0], "{}", trace.stderr);
}
