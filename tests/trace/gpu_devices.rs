//! What devices are, and a process that uses several: each has idle times and lanes of its own, kernels say how far they can fill
//! multiprocessors where these are known, and recordings have what NVML says of each.

use crate::support::{Gpuscope, Trace, compile, number, sim_cupti, sim_folder, sim_text, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Those that are told one by one.
const SHORTEST_NS: u64 = 20_000;

fn recorded(command: &[&str], settings: &[(&str, &str)]) -> Trace {
    let mut gpuscope = Gpuscope::record(&["--engine", "inside"], command).env("GPUSCOPE_CUPTI", sim_cupti());
    for (name, value) in settings {
        gpuscope = gpuscope.env(name, value);
    }
    gpuscope.finish().ok()
}

/// A program that uses two devices, at first one of them alone.
fn of_two_devices() -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let sim = sim_folder();
    let runtime = sim.join("libcudart.so.13").display().to_string();
    let found = ["rpath", "rpath-link"].map(|option| format!("-Wl,-{option},{}", sim.display()));
    let flags = [runtime.as_str(), &found[0], &found[1]];
    let program = compile(
        folder.path(),
        "two_devices",
        include_str!("../support/two_devices.c"),
        &flags,
    );
    recorded(&[program.to_str().expect("a path")], &[("GPUSIM_DEVICES", "2")])
}

fn of_training(settings: &[(&str, &str)]) -> Trace {
    recorded(&[&sim_text("gpusim"), "train", "5"], settings)
}

/// What a command says of the recording.
fn of(trace: &Trace, command: &[&str]) -> String {
    let file = trace.folder().join("t.arrows");
    let file = [file.to_str().expect("a path")];
    let words = command.iter().take(1).chain(&file).chain(command.iter().skip(1));
    Gpuscope::new(words.copied().collect::<Vec<&str>>())
        .finish()
        .ok()
        .stdout
}

fn begin(line: &Value) -> u64 {
    (line["ts"].as_f64().expect("a time") * 1e9).round() as u64
}

fn ns(us: &Value) -> u64 {
    (us.as_f64().expect("a time") * 1e3).round() as u64
}

/// When a device did nothing, by what it did.
fn gaps(lines: &[Value], device: u64) -> BTreeSet<(u64, u64)> {
    let own = lines
        .iter()
        .filter(|line| line["type"] == "gpu" && line["device"] == device && line["name"] != "HtoH");
    let mut spans: Vec<(u64, u64)> = own
        .map(|line| (begin(line), begin(line) + ns(&line["duration_us"])))
        .collect();
    spans.sort_unstable();
    let (mut gaps, mut until) = (BTreeSet::new(), spans[0].1);
    for (from, to) in spans {
        if from >= until + SHORTEST_NS {
            gaps.insert((until, from));
        }
        until = until.max(to);
    }
    gaps
}

/// The same as it is told: of the device, and of the process while that had no other.
fn told(lines: &[Value], device: u64) -> BTreeSet<(u64, u64)> {
    let own = lines
        .iter()
        .filter(|line| matches!(line["type"].as_str(), Some("idle" | "device-idle")) && line["device"] == device);
    own.map(|line| (begin(line), begin(line) + ns(&line["idle_us"])))
        .collect()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn each_of_several_devices_has_its_own_idle_times_with_a_cause_and_a_lane() {
    let trace = of_two_devices();
    let lines: Vec<Value> = of(&trace, &["export", "--to", "jsonl", "-o", "-"])
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for device in [0, 1] {
        let truth = gaps(&lines, device);
        assert!(!truth.is_empty(), "device {device} never waited");
        assert_eq!(told(&lines, device), truth, "device {device}");
    }
    let own = lines.iter().filter(|line| line["type"] == "device-idle");
    assert!(own.clone().all(|line| line["cause"].is_string()));
    let chrome = of(&trace, &["export", "--to", "chrome", "-o", "-"]);
    let picture = of(&trace, &["timeline"]);
    let report = of(&trace, &["report"]);
    for device in [0, 1] {
        assert!(chrome.contains(&format!("GPU {device} idle (measured), by cause")));
        assert!(picture.contains(&format!("  gpu{device} idle ")), "{picture}");
        assert!(report.contains(&format!(", device {device}: known of ")), "{report}");
    }
    assert!(chrome.contains("all GPUs of the process idle"));
}

/// Of the warps for which there is room on 132 multiprocessors with 64 each: these launches take little else, and are too few.
fn percent_of(run: &Value) -> f64 {
    let product = |axes: &Value| -> u64 {
        let axes = axes.as_array().expect("axes").iter();
        axes.map(|axis| axis.as_u64().expect("a number")).product()
    };
    let warps = product(&run["grid"]) * product(&run["block"]).div_ceil(32);
    assert!(warps < 132 * 64, "{run}");
    warps as f64 * 100.0 / f64::from(132 * 64)
}

fn kernels(trace: &Trace) -> Vec<Value> {
    let json: Value = serde_json::from_str(&of(trace, &["report", "--json"])).expect("JSON");
    let kernels = json["executed"]["devices"][0]["by_kernel"].as_array();
    kernels.expect("kernels").clone()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn kernels_say_how_far_they_can_fill_a_device_that_is_known() {
    let trace = of_training(&[]);
    let lines = of(&trace, &["export", "--to", "jsonl", "-o", "-"]);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for kernel in kernels(&trace) {
        let name = text(&kernel, "name");
        let is_run = |line: &&Value| line["type"] == "gpu" && line["name"] == name.as_str();
        let (mut all_us, mut weighted) = (0.0, 0.0);
        for run in lines.iter().filter(is_run) {
            let us = run["duration_us"].as_f64().expect("a time");
            all_us += us;
            weighted += us * percent_of(run);
        }
        let told = kernel["occupancy_percent"].as_f64().expect("a share");
        assert!(
            (told - weighted / all_us).abs() < 0.02,
            "{kernel}: {}",
            weighted / all_us
        );
        assert_eq!(kernel["limited_by"], "grid");
    }
    let report = of(&trace, &["report"]);
    assert!(report.contains("theoretical occupancy: at most "), "{report}");
    assert!(report.contains(", limited by grid"), "{report}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn of_a_part_of_a_device_no_occupancy_is_said() {
    let trace = of_training(&[("GPUSIM_CUPTI", "mig")]);
    let kernels = kernels(&trace);
    assert!(!kernels.is_empty());
    assert!(
        kernels
            .iter()
            .all(|kernel| kernel["occupancy_percent"].is_null() && kernel["limited_by"].is_null())
    );
    let report = of(&trace, &["report"]);
    assert!(
        report.contains("theoretical occupancy of kernels: not known"),
        "{report}"
    );
}

/// What NVML said of device 0 meanwhile.
fn nvml_samples(told: &str) -> Vec<(String, u64)> {
    let state = tempfile::tempdir().expect("a folder");
    std::fs::write(state.path().join("nvml"), told).expect("a file");
    let nvml = sim_folder().join("libnvidia-ml.so.1").display().to_string();
    let program = sim_text("gpusim");
    let settings = [
        ("GPUSIM_STATE", state.path().to_str().expect("a path")),
        ("GPUSCOPE_NVML", nvml.as_str()),
    ];
    let trace = recorded(&["sh", "-c", "\"$0\" train 5; sleep 4", &program], &settings);
    let lines = of(&trace, &["export", "--to", "jsonl", "-o", "-"]);
    let lines = lines
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).expect("JSON") });
    let samples = lines.filter(|line| line["name"].as_str().is_some_and(|name| name.starts_with("nvml.0.")));
    samples
        .map(|line| (text(&line, "name"), number(&line, "value")))
        .collect()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_recording_has_what_gpm_says_of_a_whole_device_and_nothing_where_there_is_none() {
    let told = nvml_samples("0 gpm.2 49.6\n0 gpm.5 40\n");
    for (name, percent) in [
        ("nvml.0.sm_percent", 50),
        ("nvml.0.tensor_percent", 40),
        ("nvml.0.dram_percent", 13),
    ] {
        assert!(told.contains(&(name.to_owned(), percent)), "{name}: {told:?}");
    }
    let without = nvml_samples("0 gpm 0\n");
    assert!(without.iter().any(|(name, _)| name == "nvml.0.power_mw"), "{without:?}");
    let of_gpm = |name: &str| name.contains("sm_") || name.contains("tensor_") || name.contains("dram_");
    assert!(!without.iter().any(|(name, _)| of_gpm(name)), "{without:?}");
}
