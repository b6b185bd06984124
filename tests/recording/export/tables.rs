//! Parquet and CSV, as DuckDB reads them.

use super::docs::example_for;
use super::fleet::{Fleet, HOSTS};
use super::made::Made;
use super::{exported, folder_with};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The answer of DuckDB, each row as JSON.
fn asked(folder: &Path, question: &str) -> Vec<Value> {
    let readers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tools/readers");
    let script = "import duckdb, json, sys\n\
                  for row in duckdb.sql(sys.argv[1]).fetchall(): print(json.dumps([str(cell) for cell in row]))";
    let output = Command::new("python3")
        .args(["-c", script, question])
        .env("PYTHONPATH", readers)
        .current_dir(folder)
        .output()
        .expect("python3: scripts/setup.sh test installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    // it draws a progress bar there, too
    let rows = lines.lines().filter(|line| line.starts_with('['));
    rows.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
#[ignore = "needs target/tools"]
fn duckdb_reads_the_traces_of_many_hosts_as_one() {
    let fleet = Fleet::new();
    let rows = asked(
        fleet.folder.path(),
        "select host, date, name, count(*), sum(dur_ns)::bigint, epoch_ns(min(time)) from \
         read_parquet('traces/*/*/*.parquet', hive_partitioning = true) where type = 'userspace' \
         and name = 'cuLaunchKernel' group by all order by all",
    );
    let (count, ns) = fleet.made.calls["cuLaunchKernel"];
    let expected: Vec<_> = HOSTS
        .iter()
        .zip(["2026-11-01", "2026-11-02", "2026-10-31"])
        .map(|((host, start), date)| {
            // the first step of the first thread
            let first = (start + 1_000_400).to_string();
            serde_json::json!([host, date, "cuLaunchKernel", count.to_string(), ns.to_string(), first])
        })
        .collect();
    assert_eq!(rows, expected);
}

#[test]
#[ignore = "needs target/tools"]
fn the_query_of_the_documentation_is_answered_by_duckdb() {
    let fleet = Fleet::new();
    let rows = asked(fleet.folder.path(), &example_for("DuckDB"));
    let seconds: Vec<f64> = rows.iter().map(|row| text(&row[3]).parse().unwrap()).collect();
    assert!(seconds.is_sorted_by(|one, next| one >= next), "{seconds:?}");
    let row = |row: &Value| (text(&row[0]), text(&row[1]), text(&row[2]), nanoseconds(&row[3]));
    let found: BTreeSet<_> = rows.iter().map(row).collect();
    // the third one traced in October
    let expected: BTreeSet<_> = HOSTS[..2]
        .iter()
        .flat_map(|(host, _)| {
            let of_host =
                move |(name, count, ns): (&str, u64, u64)| ((*host).to_owned(), name.to_owned(), count.to_string(), ns);
            fleet.calls().map(of_host)
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), rows.len(), "{rows:?}");
}

fn text(cell: &Value) -> String {
    cell.as_str().expect("a text").to_owned()
}

fn nanoseconds(seconds: &Value) -> u64 {
    (text(seconds).parse::<f64>().expect("seconds") * 1e9).round() as u64
}

#[test]
#[ignore = "needs target/tools"]
fn one_file_of_parquet_and_one_of_csv_hold_every_row() {
    let made = Made::trace(50);
    let (folder, recording) = folder_with(&made.recording("node-7"));
    exported(&recording, "t.parquet");
    exported(&recording, "t.csv");
    for (file, host) in [("t.parquet", "host"), ("t.csv", "'node-7'")] {
        let question = format!(
            "select {host}, count(*), sum(dur_ns)::bigint, max(args) from '{file}' where type <> 'summary' group by 1"
        );
        let rows = asked(folder.path(), &question);
        let sum: u64 = made.calls.values().map(|(_, ns)| ns).sum::<u64>() + 2000;
        let expected = [
            "node-7",
            &made.rows().to_string(),
            &sum.to_string(),
            "{\"a\":\"0x1\",\"b\":[1,2,3],\"c\":{\"d\":null}}",
        ];
        assert_eq!(rows, [serde_json::json!(expected)], "{file}");
    }
}
