//! Launches by the name of the kernel are those that the driver really made.

use crate::support::{
    self, Gpuscope, Ledger, Program, Trace, assert_same, compile, is_inside, number, text, unseen_of, ways,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

fn launcher() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder").keep();
        compile(
            &folder,
            "launcher",
            include_str!("../support/launcher.c"),
            &["-O1", "-pthread", "-ldl"],
        )
    })
}

fn launched(options: &[&str], what: &[&str]) -> Trace {
    let launcher = launcher().to_str().expect("a path");
    let command: Vec<&str> = [launcher].into_iter().chain(what.iter().copied()).collect();
    Gpuscope::run(options, &command).finish().ok()
}

fn ledger_of(trace: &Trace) -> Ledger {
    Ledger::read(&trace.folder().join("ledger"))
}

/// The summary, on stderr where there are no lines.
fn summary(trace: &Trace) -> Value {
    let found = trace
        .stderr
        .lines()
        .find(|line| line.starts_with('{') && line.contains("\"type\":\"summary\""));
    found.map_or_else(
        || trace.summary().clone(),
        |line| serde_json::from_str(line).expect("JSON"),
    )
}

fn kernels(trace: &Trace) -> Vec<Value> {
    summary(trace)["kernels"].as_array().expect("kernels").clone()
}

/// Launches by symbol.
fn by_symbol(trace: &Trace) -> BTreeMap<String, u64> {
    let kernels = kernels(trace);
    let named = kernels.iter().filter(|kernel| !kernel["symbol"].is_null());
    let counts = named.map(|kernel| (text(kernel, "symbol"), number(kernel, "launches")));
    counts.filter(|(_, launches)| *launches > 0).collect()
}

fn assert_as_launched(trace: &Trace, ledger: &Ledger) {
    assert!(ledger.kernels.values().sum::<u64>() > 0, "nothing was launched");
    assert_same("launches by kernel", &ledger.kernels, &by_symbol(trace));
    let mut unseen = unseen_of(&summary(trace));
    unseen.retain(|what| !what.contains("--filter leaves"));
    assert_eq!(unseen, [""; 0]);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn launches_of_many_threads_are_counted_by_name_in_each_tier() {
    for way in ways() {
        let launcher = launcher().to_str().expect("a path");
        // single links detach slowly
        let options = ["-q", "--summary", "json", "--filter", "cuLaunch*"];
        let trace = Gpuscope::run(&options, &[launcher, "mixed", "8", "20000"])
            .tier(way)
            .finish()
            .ok();
        let ledger = ledger_of(&trace);
        assert_eq!(ledger.kernels.len(), 8, "{way}");
        assert_as_launched(&trace, &ledger);
        let failed: u64 = kernels(&trace).iter().map(|kernel| number(kernel, "failed")).sum();
        assert_eq!(failed, ledger.errors.values().sum::<u64>(), "{way}");
        assert_shapes(&trace);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn shapes_stay_exact_where_threads_meet_a_kernel_together() {
    let script = "for time in 1 2 3 4 5 6 7 8 9 10; do \"$0\" mixed 8 20 >/dev/null; done";
    let launcher = launcher().to_str().expect("a path");
    for _ in 0..3 {
        let options = ["-q", "--summary", "json", "--filter", "cuLaunch*"];
        assert_shapes(&Gpuscope::run(&options, &["sh", "-c", script, launcher]).finish().ok());
    }
}

/// Kernel n is launched in grids of n and n + 1 by 2, with 128 threads each.
fn assert_shapes(trace: &Trace) {
    for kernel in &kernels(trace) {
        let shapes = kernel["shapes"].as_array().expect("shapes");
        assert_eq!((shapes.len(), number(kernel, "shape_count")), (2, 2), "{kernel}");
        let launches: u64 = shapes.iter().map(|shape| number(shape, "launches")).sum();
        assert_eq!(launches, number(kernel, "launches"), "{kernel}");
        let threads = shapes.iter().map(|shape| {
            assert_eq!(shape["block"], serde_json::json!([128, 1, 1]));
            assert_eq!(number(shape, "shared_bytes"), 1024);
            number(shape, "launches") * shape["grid"][0].as_u64().expect("a grid") * 2 * 128
        });
        assert_eq!(threads.sum::<u64>(), number(kernel, "threads"), "{kernel}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_kernels_stream_is_told_where_it_is_one() {
    let trace = launched(&["-q", "--summary", "json"], &["streams"]);
    let streams: Vec<(Value, Value)> = [
        "_Z4gemmIfLi128EEvPKT_",
        "_Z4gemmIdLi64EEvPKT_",
        "_ZN5flash9fwd_innerEPKfS1_Pfi",
    ]
    .iter()
    .map(|symbol| {
        let kernels = kernels(&trace);
        let kernel = kernels.iter().find(|kernel| kernel["symbol"] == *symbol);
        let kernel = kernel.expect("a kernel");
        assert_eq!(number(kernel, "launches"), 6);
        (kernel["stream"].clone(), kernel["several_streams"].clone())
    })
    .collect();
    let first = trace.stdout.lines().next().expect("a stream");
    let expected = [
        (first.into(), false.into()),
        (Value::Null, true.into()),
        ("0x0".into(), false.into()),
    ];
    assert_eq!(streams, expected);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn lines_of_launches_name_their_kernel() {
    let trace = launched(&[], &["mixed", "2", "300"]);
    let ledger = ledger_of(&trace);
    assert_as_launched(&trace, &ledger);
    let mut lines = BTreeMap::<String, u64>::new();
    for call in trace
        .calls()
        .filter(|call| text(call, "name").starts_with("cuLaunch") && number(call, "ret") == 0)
    {
        *lines.entry(text(call, "kernel")).or_default() += 1;
    }
    let mut expected = BTreeMap::<String, u64>::new();
    for kernel in &kernels(&trace) {
        *expected.entry(text(kernel, "kernel")).or_default() += number(kernel, "launches");
    }
    assert_same("lines", &expected, &lines);
    assert!(expected.contains_key("gemm<float,128>"), "{expected:?}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_runtimes_launches_are_named_by_the_driver_below_it() {
    for program in ["gpusim", "gpusim-static-stripped"] {
        let command = support::sim_text(program);
        let trace = Gpuscope::run(&["-q", "--summary", "json"], &[&command, "train", "20"])
            .finish()
            .ok();
        let kernels = ledger_of(&trace).kernels;
        assert_same(program, &kernels, &by_symbol(&trace));
        assert_eq!(kernels.len(), 8, "{program}");
    }
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_program_that_launched_before_is_named_from_then_on() {
    let mut program = Program::start(Command::new(launcher()).arg("wait").stdin(Stdio::piped()));
    program.until_said("ready");
    let pid = program.pid().to_string();
    let tracing = Gpuscope::new(["trace", "-q", "--summary", "json", "-p", &pid])
        .start()
        .until_attached();
    program.go();
    let last = program.finish();
    let trace = tracing.finish().ok();
    assert!(last.status.success());
    let mut expected = last.ledger.kernels;
    // eleven of each came before
    expected.values_mut().for_each(|launches| *launches -= 11);
    assert_same("launches by kernel", &expected, &by_symbol(&trace));
    assert_eq!(expected.len(), 8);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_handle_that_is_given_to_another_kernel_goes_by_its_new_name() {
    let trace = launched(&["-q", "--summary", "json"], &["reload", "40"]);
    let ledger = ledger_of(&trace);
    assert_eq!(ledger.kernels.len(), 40);
    assert_as_launched(&trace, &ledger);
    for kernel in &kernels(&trace) {
        let shapes = kernel["shapes"].as_array().expect("shapes");
        assert_eq!(number(&shapes[0], "launches"), number(kernel, "launches"), "{kernel}");
    }
}

/// Of a driver that nobody knows: neither tag nor name can be read from a handle.
fn launched_by_an_unknown_driver(options: &[&str], command: &[&str]) -> Trace {
    Gpuscope::run(options, command)
        .env("GPUSIM_HANDLES", "opaque")
        .finish()
        .ok()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn handles_that_lead_to_no_name_go_by_what_the_driver_was_asked_for() {
    let launcher = launcher().to_str().expect("a path");
    for way in ways() {
        // single links detach slowly
        let filter = [
            "--filter",
            "cuLaunch*",
            "--filter",
            "cuModuleGetFunction",
            "--filter",
            "cuLibraryGetKernel",
        ];
        let options = [&["-q", "--summary", "json"][..], &filter[..]].concat();
        let trace = Gpuscope::run(&options, &[launcher, "mixed", "8", "2000"])
            .env("GPUSIM_HANDLES", "opaque")
            .tier(way)
            .finish()
            .ok();
        assert_as_launched(&trace, &ledger_of(&trace));
        assert_shapes(&trace);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn an_unknown_drivers_handle_that_is_given_to_another_kernel_goes_by_its_new_name() {
    let launcher = launcher().to_str().expect("a path");
    let trace = launched_by_an_unknown_driver(&["-q", "--summary", "json"], &[launcher, "reload", "40"]);
    let ledger = ledger_of(&trace);
    assert_eq!(ledger.kernels.len(), 40);
    assert_as_launched(&trace, &ledger);
}

/// What the driver was asked for is not seen: its handles are named by the function around its launch.
#[test]
#[ignore = "needs the simulated CUDA"]
fn an_unknown_drivers_handles_go_by_the_function_of_the_host_that_is_launched() {
    for program in ["gpusim", "gpusim-static-stripped"] {
        for layer in ["runtime,driver", "runtime"] {
            let options = ["-q", "--summary", "json", "--filter", "cu*aunch*", "--layer", layer];
            let trace = launched_by_an_unknown_driver(&options, &[&support::sim_text(program), "train", "20"]);
            let kernels = ledger_of(&trace).kernels;
            assert_same(&format!("{program}, {layer}"), &kernels, &by_symbol(&trace));
            assert_eq!(kernels.len(), 8, "{program}");
        }
    }
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn an_unknown_driver_is_understood_on_late_attach() {
    let mut command = Command::new(support::sim("gpusim-static-stripped"));
    command.args(["train", "5000000"]).env("GPUSIM_HANDLES", "opaque");
    let program = Program::start(&mut command);
    let pid = program.pid().to_string();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let tracing = Gpuscope::new(["trace", "-q", "--summary", "json", "-p", &pid])
        .start()
        .until_attached();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let trace = tracing.stop().ok();
    drop(program);
    let named = by_symbol(&trace);
    assert_eq!(named.len(), 8, "{named:?}");
    assert!(kernels(&trace).iter().all(|kernel| !kernel["symbol"].is_null()));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_function_of_the_host_without_a_name_goes_by_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("silent");
    let status = Command::new("objcopy")
        .args(["--rename-section", ".nvFatBinSegment=.data.other"])
        .arg(support::sim("gpusim-static-stripped"))
        .arg(&program)
        .status();
    assert!(status.expect("objcopy").success());
    let trace = Gpuscope::run(
        &["-q", "--summary", "json", "--filter", "cu*aunch*"],
        &[program.to_str().expect("a path"), "train", "20"],
    )
    .env("GPUSIM_HANDLES", "opaque")
    .env("LD_LIBRARY_PATH", support::sim_folder())
    .finish()
    .ok();
    let kernels = kernels(&trace);
    let mut launches: Vec<u64> = kernels.iter().map(|kernel| number(kernel, "launches")).collect();
    let mut expected: Vec<u64> = ledger_of(&trace).kernels.values().copied().collect();
    launches.sort_unstable();
    expected.sort_unstable();
    assert_eq!((launches, kernels.len()), (expected, 8));
    for kernel in &kernels {
        assert!(text(kernel, "kernel").starts_with("silent+0x"), "{kernel}");
        assert!(
            kernel["symbol"].is_null() && text(kernel, "reason").contains("symbol"),
            "{kernel}"
        );
    }
}

/// Each launch of the runtime in `trace`, with the kernel that the driver's launch within it names.
fn runtimes_lines(trace: &Trace) -> Vec<(String, String)> {
    let launches = trace.calls().filter(|call| text(call, "name").starts_with("cuLaunch"));
    let within: BTreeMap<u64, String> = launches
        .map(|call| (number(call, "parent_id"), text(call, "kernel")))
        .collect();
    let runtime = trace
        .calls()
        .filter(|call| text(call, "name").starts_with("cudaLaunch"));
    runtime
        .map(|call| (text(call, "kernel"), within[&number(call, "event_id")].clone()))
        .collect()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn lines_of_the_runtimes_launches_name_their_kernel() {
    for handles in ["plain", "opaque"] {
        let trace = Gpuscope::run(&[], &[&support::sim_text("gpusim"), "train", "20"])
            .env("GPUSIM_HANDLES", handles)
            .finish()
            .ok();
        let lines = runtimes_lines(&trace);
        assert_eq!(lines.len() as u64, ledger_of(&trace).kernels.values().sum::<u64>());
        for (outer, inner) in lines {
            assert_eq!(outer, inner, "{handles}");
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn an_executed_program_has_kernels_of_its_own() {
    let trace = launched(&["-q", "--summary", "json"], &["twice"]);
    let expected = [("after_exec".to_owned(), 3), ("before_exec".to_owned(), 3)].into();
    assert_same("launches by kernel", &expected, &by_symbol(&trace));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn names_that_are_none_are_counted_with_the_reason() {
    let trace = launched(&["-q", "--summary", "json"], &["hostile"]);
    let long = format!("{}…", "x".repeat(4095));
    let expected = [(long, 7), ("_ZNNNNNNNNN".to_owned(), 2)].into();
    assert_same("launches by kernel", &expected, &by_symbol(&trace));
    let unnamed: BTreeMap<String, (u64, u64)> = kernels(&trace)
        .iter()
        .filter(|kernel| kernel["symbol"].is_null())
        .map(|kernel| {
            (
                text(kernel, "reason"),
                (number(kernel, "launches"), number(kernel, "failed")),
            )
        })
        .collect();
    let told: Vec<(u64, u64)> = unnamed.values().copied().collect();
    // two names that are no identifiers; five handles that are no memory
    assert_eq!(told, [(0, 5), (8, 0)], "{unnamed:?}");
    assert!(!trace.stderr.contains('\u{1b}'), "{}", trace.stderr);
}

/// More than the tables hold: the rest is one entry, and nothing is missing in all.
#[test]
#[ignore = "needs the simulated CUDA"]
fn more_kernels_than_there_is_room_for_are_counted_together() {
    let trace = launched(
        &["-q", "--summary", "json", "--filter", "cuLaunch*"],
        &["many", "70000"],
    );
    let launches: u64 = kernels(&trace).iter().map(|kernel| number(kernel, "launches")).sum();
    assert_eq!(launches, 70_000);
    let named = by_symbol(&trace);
    // the tables of the kernel, or of one thread
    let most = if is_inside() { 11_000..12_288 } else { 49_152..49_153 };
    assert!(
        most.contains(&named.len()),
        "as many as may be told apart: {}",
        named.len()
    );
    assert!(named.values().all(|launches| *launches == 1));
    let summary = summary(&trace);
    let functions = summary["functions"].as_array().expect("functions");
    assert_eq!(
        functions.iter().map(|function| number(function, "calls")).sum::<u64>(),
        70_000
    );
}
