//! What gpuscope told of the work of one process.

use super::support::{Trace, number};
use serde_json::Value;

/// The report of the only process that worked.
pub fn only(trace: &Trace) -> &Value {
    let processes = list(&trace.summary()["work"]);
    assert_eq!(processes.len(), 1, "{}", trace.summary());
    &processes[0]
}

pub fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// A time, in whole nanoseconds.
pub fn ns(report: &Value, field: &str) -> u64 {
    let micros = report[field].as_f64();
    let micros = micros.unwrap_or_else(|| panic!("no time {field:?} in {report}"));
    (micros * 1e3).round() as u64
}

/// A handle; 0 where it is null.
pub fn handle(report: &Value, field: &str) -> u64 {
    let text = report[field].as_str().unwrap_or("0x0");
    let digits = text.strip_prefix("0x").expect("a handle");
    u64::from_str_radix(digits, 16).expect("a handle")
}

/// Fails the test if records of calls were lost, or the process was met late.
pub fn assert_complete(name: &str, report: &Value) {
    let lost = &report["lost"];
    let figures = ["copies", "bytes", "others"].map(|field| number(lost, field));
    assert_eq!(figures, [0; 3], "{name}: {report}");
    assert_eq!(report["watched"], "start", "{name}");
    assert_eq!(report["gpu"]["certainty"], "bound", "{name}");
}
