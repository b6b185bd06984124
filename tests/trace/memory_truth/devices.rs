//! The driver's own figures beside ours.

use super::account::only;
use super::support::{Gpuscope, Running, Trace, eventually, number, sim_text, text};
use serde_json::Value;
use std::io::PipeWriter;

const MIB: u64 = 1 << 20;
const UUIDS: [&str; 2] = [
    "GPU-47505553-434f-5045-2d53-494d00000001",
    "GPU-47505553-434f-5045-2d53-494d00000002",
];

/// A program that holds 100 MiB until the writer is dropped, on a machine with two devices.
fn holding(settings: &[(&str, &str)]) -> (Running, PipeWriter) {
    let gpusim = sim_text("gpusim");
    let (stdin, held) = std::io::pipe().expect("a pipe");
    let command = [gpusim.as_str(), "hold", "--count", "100", "--size", "1048576"];
    let mut gpuscope = Gpuscope::leaks(&["--interval", "200ms"], &command).env("GPUSIM_DEVICES", "2");
    for (name, value) in settings {
        gpuscope = gpuscope.env(name, value);
    }
    (gpuscope.stdin(stdin).start(), held)
}

/// Waits until the driver was asked while everything was held, then lets it end.
fn reconciled(settings: &[(&str, &str)]) -> Trace {
    let state = tempfile::tempdir().expect("a folder");
    let (folder, nvml) = (state.path().to_str().expect("UTF-8"), sim_text("libnvidia-ml.so.1"));
    let more = [("GPUSIM_STATE", folder), ("GPUSCOPE_NVML", nvml.as_str())];
    let (running, held) = holding(&[settings, &more].concat());
    eventually("the driver is asked", || {
        let lines = running.lines();
        let last = lines.lines().last().and_then(|line| line.parse::<Value>().ok());
        last.is_some_and(|report| {
            let device = &report["processes"][0]["devices"][0];
            let [said, left] = ["driver_bytes", "unattributed_bytes"].map(|field| device[field].as_i64());
            said.zip(left)
                .is_some_and(|(said, left)| said - left == (100 * MIB) as i64)
        })
    });
    drop(held);
    running.finish().ok()
}

fn assert_device(trace: &Trace, uuid: &str) {
    let process = only(trace);
    let devices = process["devices"].as_array().expect("devices");
    assert_eq!(devices.len(), 1, "{devices:?}");
    let device = &devices[0];
    assert_eq!(
        (&device["device"], text(device, "uuid").as_str()),
        (&Value::from(0), uuid)
    );
    assert_eq!(text(device, "name"), "Simulated GPU");
    assert_eq!(
        (&device["inferred"], number(device, "held_bytes")),
        (&Value::Bool(false), 100 * MIB)
    );
    let unattributed = device["unattributed_bytes"].as_i64().expect("a number");
    assert_eq!(number(device, "driver_bytes") as i64 - unattributed, (100 * MIB) as i64);
    assert!(
        device["driver_ts"].as_f64() <= process["ended_ts"].as_f64(),
        "{process}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_the_driver_says_stands_beside_what_was_allocated() {
    assert_device(&reconciled(&[]), UUIDS[0]);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_programs_first_device_may_be_the_machines_second() {
    assert_device(&reconciled(&[("CUDA_VISIBLE_DEVICES", "1")]), UUIDS[1]);
    let list = format!("{},{}", UUIDS[1], UUIDS[0]);
    assert_device(&reconciled(&[("CUDA_VISIBLE_DEVICES", &list)]), UUIDS[1]);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn without_a_driver_to_ask_the_figures_are_null_and_a_note_says_why() {
    let (running, held) = holding(&[("GPUSCOPE_NVML", "/nonexistent/libnvidia-ml.so.1")]);
    running.until_written("\"outstanding\":100");
    drop(held);
    let trace = running.finish().ok();
    let device = &only(&trace)["devices"][0];
    for field in ["uuid", "name", "driver_bytes", "driver_ts", "unattributed_bytes"] {
        assert_eq!(device[field], Value::Null, "{field}");
    }
    assert_eq!(number(device, "held_bytes"), 100 * MIB);
    let notes = trace.records.last().expect("a report")["notes"].to_string();
    assert!(notes.contains("NVML") && notes.contains("hint"), "{notes}");
}
