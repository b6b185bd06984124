//! The examples of `docs/export.md` for ClickHouse and Spark, run by ClickHouse and Spark on files of this machine.
//!
//! `scripts/verify-readers.sh` fetches them and runs this.

#[path = "../recording/export/docs.rs"]
mod docs;
#[path = "../recording/export/fleet.rs"]
mod fleet;
#[path = "../recording/export/made.rs"]
#[allow(dead_code, reason = "tests/recording uses the rest")]
mod made;

use docs::example_for;
use fleet::{Fleet, HOSTS};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const BUCKET: &str = "s3('https://bucket.s3.amazonaws.com/traces/**/*.parquet', 'Parquet')";
const MINUTE_NS: u64 = 60_000_000_000;

/// The example for an engine with another source, and what it prints in the folder of `traces`.
fn answered(engine: &str, folder: &Path, from: &str, to: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let example = example_for(engine);
    assert_eq!(example.matches(from).count(), 1, "{example}");
    let packages = root.join("target/tools/engines");
    assert!(packages.exists(), "hint: scripts/verify-readers.sh");
    let output = Command::new("python3")
        .arg(root.join("tests/python/engines.py"))
        .args([&engine.to_lowercase(), &example.replace(from, to)])
        .env("PYTHONPATH", packages)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        // times are UTC, wherever the engine runs
        .env("TZ", "America/New_York")
        .current_dir(folder)
        .output()
        .expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
#[ignore = "needs scripts/verify-readers.sh"]
fn clickhouse_answers_the_example_of_the_documentation() {
    let fleet = Fleet::new();
    let local = "file('traces/**/*.parquet', 'Parquet')";
    let answer = answered("ClickHouse", fleet.folder.path(), BUCKET, local);
    let rows: Vec<Value> = answer
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let expected: BTreeMap<(String, String), f64> = HOSTS
        .iter()
        .zip(["2026-11-01", "2026-11-02", "2026-10-31"])
        .flat_map(|((host, start), date)| minutes(&fleet, host, *start, date))
        .collect();
    assert_eq!(rows.len(), expected.len(), "{answer}");
    assert!(rows.is_sorted_by_key(|row| row[1].to_string()), "{answer}");
    for row in rows {
        let text = |cell: &Value| cell.as_str().expect("a text").to_owned();
        let p99 = expected.get(&(text(&row[0]), text(&row[1]))).expect("such a minute");
        assert!((row[2].as_f64().expect("a number") - p99).abs() < 1e-6, "{row}: {p99}");
    }
}

/// The waits of the minutes before and after noon of a machine: the 99th percentile of each, µs.
fn minutes(fleet: &Fleet, host: &str, start: u64, date: &str) -> Vec<((String, String), f64)> {
    let first = start / MINUTE_NS;
    let minute_of = |at: i64| (start + at as u64) / MINUTE_NS;
    let waits = fleet.made.times_of("cudaStreamSynchronize");
    let of = |minute: u64, name: &str| {
        let inside = waits
            .iter()
            .filter(|(at, _)| minute_of(*at) == minute)
            .map(|(_, ns)| *ns);
        (
            (host.to_owned(), format!("{date} {name}")),
            percentile_99(inside.collect()) / 1e3,
        )
    };
    vec![of(first, "11:59:00"), of(first + 1, "12:00:00")]
}

fn percentile_99(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    let rank = 0.99 * (values.len() - 1) as f64;
    let (low, high) = (
        values[rank.floor() as usize] as f64,
        values[rank.ceil() as usize] as f64,
    );
    low + (high - low) * rank.fract()
}

#[test]
#[ignore = "needs scripts/verify-readers.sh"]
fn spark_answers_the_example_of_the_documentation() {
    let fleet = Fleet::new();
    let answer = answered("Spark", fleet.folder.path(), "s3a://bucket/traces", "traces");
    let rows = answer
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    assert_eq!(rows[0], ["host", "name", "sum(dur_ns)"]);
    let found: BTreeSet<String> = rows[1..].iter().map(|row| row.join(" ")).collect();
    let expected: BTreeSet<String> = HOSTS
        .iter()
        .flat_map(|(host, _)| {
            fleet
                .calls()
                .map(move |(name, _, ns)| format!("{host} {} {ns}", shown(name)))
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), rows.len() - 1, "{answer}");
    let columns: Value = serde_json::from_str(answer.lines().last().expect("columns")).expect("JSON");
    for (name, kind) in [
        ("time", "bigint"),
        ("host", "string"),
        ("date", "date"),
        ("size", "decimal(20,0)"),
    ] {
        assert_eq!(columns[name], json!(kind), "{columns}");
    }
}

/// As `show` cuts it.
fn shown(name: &str) -> String {
    match name.len() > 20 {
        true => format!("{}...", &name[..17]),
        false => name.to_owned(),
    }
}
