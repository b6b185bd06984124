//! What a frame says of samples.

use super::example::second_look;
use super::{Count, Frame, Process};

fn process(frame: &Frame, pid: u32) -> &Process {
    frame.process(pid).unwrap()
}

fn count(total: f64, per_second: f64) -> Option<Count> {
    Some(Count {
        total,
        per_second: Some(per_second),
    })
}

#[test]
fn counters_have_their_sum_and_their_pace() {
    let (frame, _) = second_look();
    let train = process(&frame, 4711);
    assert_eq!(train.launches, count(2468.0, 1234.0));
    assert_eq!(train.calls, count(10_000.0, 5000.0));
    assert_eq!(train.to_device_bytes, count(2e9, 1e9));
    assert_eq!(train.waiting_seconds, count(0.8, 0.4), "the hidden wait is among them");
    assert_eq!(train.errors, count(0.0, 0.0), "it calls, and none of that failed");
    assert_eq!(process(&frame, 4720).errors, count(6.0, 3.0));
    assert_eq!(process(&frame, 900).errors, None, "nobody looks at its calls");
}

#[test]
fn memory_of_devices_and_of_the_host_are_apart() {
    let (frame, _) = second_look();
    let train = process(&frame, 4711);
    let gib = 1024.0 * 1024.0 * 1024.0;
    assert_eq!((train.held_bytes, train.host_held_bytes), (Some(52.0 * gib), Some(gib)));
    assert_eq!(train.growth_bytes_per_second, Some(gib));
    let device = &frame.devices[0];
    assert_eq!(
        (device.tracked_bytes, device.unattributed_bytes),
        (Some(52.0 * gib), Some(gib / 2.0))
    );
}

#[test]
fn a_device_is_bounded_where_all_of_its_processes_are_known() {
    let (frame, _) = second_look();
    let busy: Vec<Option<String>> = frame
        .devices
        .iter()
        .map(|device| device.busy_at_most.map(|share| format!("{share:.2}")))
        .collect();
    assert_eq!(
        busy,
        [Some("0.43".to_owned()), None],
        "the other does not answer, and has one that is not traced"
    );
}

#[test]
fn the_busiest_kernel_and_the_longest_wait_are_first() {
    let (frame, _) = second_look();
    let train = process(&frame, 4711);
    let kernels: Vec<&str> = train.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let waits: Vec<(&str, bool)> = train
        .waits
        .iter()
        .map(|wait| (wait.what.as_str(), wait.hidden))
        .collect();
    assert_eq!(kernels, ["sgemm", "softmax"]);
    assert_eq!(waits, [("cuStreamSynchronize", false), ("item", true)]);
}

#[test]
fn a_line_of_json_has_everything_and_no_character_that_a_terminal_obeys() {
    let (frame, _) = second_look();
    let line = crate::top::json::line(&frame);
    assert!(line.ends_with("}\n") && line.lines().count() == 1 && !line.contains('\u{1b}'));
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["type"], "top");
    let pretty = serde_json::to_string_pretty(&value["processes"][1]).unwrap();
    insta::assert_snapshot!("json_of_a_process", pretty);
    let pretty = serde_json::to_string_pretty(&value["devices"][0]).unwrap();
    insta::assert_snapshot!("json_of_a_device", pretty);
}

#[test]
fn who_is_gone_and_never_called_is_not_shown() {
    let gone = |calls: f64, held_bytes| Process {
        ended: true,
        calls: count(calls, 0.0),
        held_bytes,
        ..Process::default()
    };
    assert!(gone(0.0, None).is_past_and_empty());
    assert!(!gone(1.0, None).is_past_and_empty());
    assert!(!gone(0.0, Some(4096.0)).is_past_and_empty());
    let here = Process {
        ended: false,
        ..gone(0.0, None)
    };
    assert!(!here.is_past_and_empty());
}
