//! Parquet and CSV, as DuckDB reads them.

use super::made::Made;
use super::{exported, folder_with, gpuscope};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The answer of DuckDB, each row as JSON.
fn asked(folder: &Path, question: &str) -> Vec<serde_json::Value> {
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
    let made = Made::trace(50);
    let (folder, _) = folder_with(&[]);
    for host in ["node-7", "node-8"] {
        let recording = folder.path().join(host).with_extension("arrows");
        std::fs::write(&recording, made.recording(host)).unwrap();
        let traces = folder.path().join("traces/");
        let arguments = [
            "export",
            recording.to_str().unwrap(),
            "--to",
            "parquet",
            "-o",
            traces.to_str().unwrap(),
        ];
        let output = gpuscope(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let rows = asked(
        folder.path(),
        "select host, date, name, count(*), sum(dur_ns)::bigint, epoch_ns(min(time)) from \
         read_parquet('traces/*/*/*.parquet', hive_partitioning = true) where type = 'userspace' \
         and name = 'cuLaunchKernel' group by all order by all",
    );
    let (count, ns) = made.calls["cuLaunchKernel"];
    // the first step of the first thread
    let first = "1700000000001000400";
    let expected = |host: &str| {
        let cells = [
            host,
            "2023-11-14",
            "cuLaunchKernel",
            &count.to_string(),
            &ns.to_string(),
            first,
        ];
        serde_json::json!(cells)
    };
    assert_eq!(rows, [expected("node-7"), expected("node-8")]);
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
