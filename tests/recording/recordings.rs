//! Recordings are what happened, for gpuscope and for everybody's readers, however the recording ended.

use crate::support::{self, Counts, Gpuscope, Ledger, Program, Trace, assert_same, eventually, number, sim_text, text};
use gpuscope::record::{Kind, Meta, Record, Taker};
use gpuscope::text::quantity::plural;
use gpuscope::trace::{End, Reader};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const READERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/readers.py");
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/readers");
const FILE: &str = "t.arrows";

/// What gpuscope itself reads.
#[derive(Default)]
struct Read {
    meta: Option<Meta>,
    calls: Counts,
    ns: BTreeMap<String, u64>,
    lost: BTreeMap<String, u64>,
    rows: u64,
    last: i64,
}

impl Taker for Read {
    fn start(&mut self, meta: &Meta) {
        self.meta = Some(meta.clone());
    }

    fn take(&mut self, event: &Record<'_>) {
        self.rows += 1;
        self.last = self.last.max(event.at);
        if event.kind == Kind::Lost {
            *self.lost.entry(event.name.to_owned()).or_default() += event.count;
        }
        if event.kind == Kind::Call {
            let key = (event.layer.to_owned(), event.name.to_owned());
            *self.calls.entry(key).or_default() += 1;
            *self.ns.entry(event.name.to_owned()).or_default() += event.ns.unwrap_or(0);
        }
    }
}

fn read(path: &Path) -> (Read, End) {
    let mut rows = Read::default();
    let reader = Reader::open(path).unwrap_or_else(|error| panic!("{error:#}"));
    let end = reader.read(&mut rows);
    (rows, end)
}

/// What the readers from PyPI find.
fn found(path: &Path) -> Value {
    assert!(
        Path::new(PACKAGES).join("versions").exists(),
        "pyarrow, polars and duckdb are missing; scripts/fetch-tools.sh fetches them"
    );
    let python = Command::new("python3")
        .arg(READERS)
        .arg(path)
        .env("PYTHONPATH", PACKAGES)
        .env_remove("LD_LIBRARY_PATH")
        .output();
    let output = python.expect("python3 runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

/// Calls and ns of each function, as a reader has them.
fn calls_found(found: &Value, reader: &str) -> BTreeMap<String, (u64, u64)> {
    let calls = found[reader]["calls"].as_object().expect("calls");
    let pair = |value: &Value| (value[0].as_u64().expect("calls"), value[1].as_u64().expect("ns"));
    calls.iter().map(|(name, value)| (name.clone(), pair(value))).collect()
}

fn functions(summary: &str) -> Vec<Value> {
    let summary: Value = serde_json::from_str(summary).expect("a summary");
    assert_eq!(number(&summary, "lost_events"), 0, "the ring was too small");
    summary["functions"].as_array().expect("functions").clone()
}

/// Calls and ns of each function that a summary has exactly.
fn calls_of(summary: &str) -> BTreeMap<String, (u64, u64)> {
    let functions = functions(summary);
    let total = |function: &Value| {
        let ns = function["total_us"]
            .as_f64()
            .map_or(0, |us| (us * 1000.0).round() as u64);
        (text(function, "name"), (number(function, "calls"), ns))
    };
    functions
        .iter()
        .map(total)
        .filter(|(_, (calls, _))| *calls > 0)
        .collect()
}

fn train(steps: &str) -> [String; 3] {
    [sim_text("gpusim"), "train".to_owned(), steps.to_owned()]
}

/// Records a training of so many steps.
fn recorded(options: &[&str], steps: &str) -> Trace {
    let command = train(steps);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    Gpuscope::record(options, &command).finish()
}

const ROOMY: [&str; 2] = ["--ring-size", "256MiB"];

#[test]
#[ignore = "needs root and BPF"]
fn pyarrow_polars_and_duckdb_find_what_the_summary_and_the_ledger_say() {
    let trace = recorded(&[&ROOMY[..], &["--chatty"]].concat(), "200").ok();
    let file = trace.folder().join(FILE);
    let found = found(&file);
    assert_eq!(
        (&found["cut"], found["metadata"]["gpuscope.format"].as_str()),
        (&Value::Bool(false), Some("5"))
    );
    let summary = found["summary"].as_str().expect("a summary");
    let expected = calls_of(summary);
    let mut done = BTreeMap::new();
    for ((_, name), calls) in trace.ledger.visible() {
        *done.entry(name).or_default() += calls;
    }
    let counted = |calls: &BTreeMap<String, (u64, u64)>| -> BTreeMap<String, u64> {
        calls.iter().map(|(name, (calls, _))| (name.clone(), *calls)).collect()
    };
    assert_same("the ledger and the summary", &done, &counted(&expected));
    for reader in ["pyarrow", "polars", "duckdb"] {
        assert_same(reader, &expected, &calls_found(&found, reader));
    }
    let (own, end) = read(&file);
    assert_eq!((end.cut, end.summary.as_deref()), (None, Some(summary)));
    let snapshots = found["duckdb"]["types"]["snapshot"].as_u64().unwrap_or(0);
    assert_eq!(
        own.rows + snapshots + 1,
        number(&found["duckdb"], "rows"),
        "and the summary"
    );
    assert_eq!(end.all_rows, number(&found["duckdb"], "rows"));
    let rows = format!("gpuscope: {}, ", plural(end.all_rows, "row"));
    for what in [&rows, " rows, ", "gpuscope report "] {
        assert!(trace.stderr.contains(what), "{what}: {}", trace.stderr);
    }
}

#[test]
#[ignore = "needs root and BPF"]
fn killed_at_any_moment_it_has_what_was_written_before() {
    let program = Program::sim(&["train", "0"]);
    let pid = program.pid().to_string();
    for _ in 0..3 {
        let running = Gpuscope::record(&["-p", &pid], &[]).start().until_attached();
        let file = running.folder().join(FILE);
        let rows = || Reader::open(&file).map_or(0, |reader| reader.read(&mut Read::default()).rows);
        eventually("two batches or more are written", || rows() > 100);
        let before = rows();
        running.signal(libc::SIGKILL);
        eventually("it is over", || {
            !Path::new(&format!("/proc/{}/exe", running.pid())).exists()
        });
        let (own, end) = read(&file);
        assert!(own.rows >= before, "{} of {before}", own.rows);
        assert!(end.summary.is_none() && end.cut.expect("a reason").contains("cut off"));
        let found = found(&file);
        for reader in ["pyarrow", "polars", "duckdb"] {
            assert_eq!(number(&found[reader], "rows"), end.all_rows, "{reader}");
        }
    }
}

/// What a report says of layers: calls that have returned, by layer and function.
fn reported(file: &Path) -> (Value, Counts) {
    let done = Gpuscope::new([OsStr::new("report"), OsStr::new("--json"), file.as_os_str()]).finish();
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let report: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let mut calls = Counts::new();
    for layer in report["layers"].as_array().expect("layers") {
        for function in layer["functions"].as_array().expect("functions") {
            calls.insert(
                (text(layer, "layer"), text(function, "name")),
                number(function, "calls"),
            );
        }
    }
    calls.retain(|_, calls| *calls > 0);
    (report, calls)
}

/// The calls of the last totals in a file that has no end.
fn latest(file: &Path) -> Option<(i64, Counts)> {
    let end = Reader::open(file).ok()?.read(&mut Read::default());
    let latest = end.snapshot?;
    let totals: Value = serde_json::from_str(&latest.totals).expect("totals");
    let functions = totals["functions"].as_array().expect("functions").iter();
    let calls = functions.map(|one| ((text(one, "layer"), text(one, "name")), number(one, "calls")));
    Some((latest.at, calls.filter(|(_, calls)| *calls > 0).collect()))
}

#[test]
#[ignore = "needs root and BPF"]
fn killed_it_has_the_exact_totals_of_its_last_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let gpusim = sim_text("gpusim");
    // it outlives its recording, and not this test
    let script = format!(
        "{gpusim} train 400; while [ -d {} ]; do sleep 0.1; done",
        folder.path().display()
    );
    let running = Gpuscope::record(&ROOMY, &["sh", "-c", &script]).start();
    let file = running.folder().join(FILE);
    let ledger = || Ledger::read(&running.folder().join("ledger")).visible();
    eventually("totals of all calls", || {
        let done = ledger();
        !done.is_empty() && latest(&file).is_some_and(|(_, calls)| calls == done)
    });
    running.signal(libc::SIGKILL);
    let (at, _) = latest(&file).expect("totals");
    let (report, calls) = reported(&file);
    assert_same("the ledger and the report", &ledger(), &calls);
    assert_eq!(
        (&report["exact"], report["exact_until_ns"].as_i64()),
        (&Value::Bool(true), Some(at))
    );
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("cut off") && notes.contains("(its last snapshot)"),
        "{notes}"
    );
}

#[test]
#[ignore = "needs root and BPF"]
fn totals_grow_from_snapshot_to_snapshot_and_never_beyond_the_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    let gpusim = sim_text("gpusim");
    // processes that end while others begin, until the folder is gone
    let script = format!(
        "while [ -d {} ]; do {gpusim} train 40; sleep 0.2; done",
        folder.path().display()
    );
    let running = Gpuscope::record(&ROOMY, &["sh", "-c", &script]).start();
    let file = running.folder().join(FILE);
    let mut seen: Vec<(i64, Counts)> = Vec::new();
    eventually("four snapshots", || {
        let now = latest(&file).filter(|(at, _)| seen.last().is_none_or(|(before, _)| at > before));
        seen.extend(now);
        seen.len() >= 4
    });
    running.signal(libc::SIGKILL);
    drop(folder);
    let (_, last) = latest(&file).expect("totals");
    seen.push((i64::MAX, last.clone()));
    for pair in seen.windows(2) {
        assert!(is_within(&pair[0].1, &pair[1].1), "{pair:?}");
    }
    let ledger = || Ledger::read(&running.folder().join("ledger")).visible();
    eventually("ledgers of as many calls", || is_within(&last, &ledger()));
    let (_, calls) = reported(&file);
    let told = |counts: &Counts| -> Counts {
        let known = counts.iter().filter(|(key, _)| last.contains_key(*key));
        known.map(|(key, calls)| (key.clone(), *calls)).collect()
    };
    assert!(last.len() > 5);
    assert_same("the last snapshot and the report", &last, &told(&calls));
}

/// Whether each function was called no more often than later, and at all.
fn is_within(before: &Counts, after: &Counts) -> bool {
    let grows = |(function, calls): (&_, &u64)| *calls > 0 && after.get(function).is_some_and(|later| calls <= later);
    !before.is_empty() && before.iter().all(grows)
}

/// Records in a folder of 1 MiB; the file comes back as the second.
fn on_small_disk(command: &str) -> (std::process::Output, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let (small, copy) = (folder.path().join("small"), folder.path().join("copy.arrows"));
    std::fs::create_dir(&small).expect("a folder");
    let script = "mount -t tmpfs -o size=1m none \"$1\" && cd \"$1\" || exit 99
        \"$2\" record --ring-size 256MiB -o r.arrows -- sh -c \"$3\"; status=$?; cp r.arrows \"$4\"; exit $status";
    let done = Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(small)
        .args([env!("CARGO_BIN_EXE_gpuscope"), command])
        .arg(&copy)
        .env("LD_LIBRARY_PATH", support::sim_folder())
        .env(support::ENGINE, support::engine())
        .output();
    (done.expect("unshare runs"), copy, folder)
}

#[test]
#[ignore = "needs root and BPF"]
fn a_full_disk_ends_the_recording_and_not_the_command() {
    let gpusim = sim_text("gpusim");
    for (end, status) in [("", 125), ("; exit 7", 7)] {
        let (done, copy, _folder) = on_small_disk(&format!("{gpusim} train 20000{end}"));
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{stderr}");
        assert!(
            String::from_utf8_lossy(&done.stdout).contains("train: 20000 steps"),
            "{stderr}"
        );
        for what in [
            "failed to write r.arrows: No space left",
            "hint: free some space",
            "goes on",
        ] {
            assert!(stderr.contains(what), "{what}: {stderr}");
        }
        let (own, end) = read(&copy);
        assert!(own.rows > 1000 && end.summary.is_none() && end.cut.is_some());
        let rows = format!("gpuscope: {}, ", plural(end.all_rows, "row"));
        assert!(stderr.contains(&rows), "{rows}: {stderr}");
        assert_eq!(number(&found(&copy)["polars"], "rows"), end.all_rows);
    }
}

#[test]
#[ignore = "needs root and BPF"]
fn a_budget_ends_the_recording_and_its_totals_are_of_its_rows() {
    let trace = recorded(&[&ROOMY[..], &["--max-size", "1MiB"]].concat(), "20000").ok();
    assert!(trace.stderr.contains("--max-size is reached"), "{}", trace.stderr);
    assert!(trace.stdout.contains("train: 20000 steps"));
    let file = trace.folder().join(FILE);
    let bytes = std::fs::metadata(&file).expect("a file").len();
    assert!(bytes <= 1 << 20, "{bytes}");
    let (own, end) = read(&file);
    assert_eq!(end.cut, None);
    assert!(own.lost.values().sum::<u64>() > 0, "some came after it was full");
    assert_rows_are(&own, end.summary.as_deref().expect("totals"));
}

/// Each function that has rows has as many as it had calls, together with those that are said to be lost.
fn assert_rows_are(own: &Read, summary: &str) {
    let expected: Counts = functions(summary)
        .iter()
        .map(|function| {
            (
                (text(function, "layer"), text(function, "name")),
                number(function, "calls"),
            )
        })
        .filter(|(key, _)| own.calls.contains_key(key))
        .collect();
    assert!(own.calls.len() > 5);
    let with_lost = |((layer, name), calls): (&(String, String), &u64)| {
        let lost = own.lost.get(name).copied().unwrap_or(0);
        ((layer.clone(), name.clone()), calls + lost)
    };
    assert_same("rows and totals", &expected, &own.calls.iter().map(with_lost).collect());
}

#[test]
#[ignore = "needs root and BPF"]
fn parts_are_read_as_one_recording() {
    let trace = recorded(&[&ROOMY[..], &["--rotate", "50KiB"]].concat(), "2000").ok();
    let folder = trace.folder();
    assert!(folder.join("t.0002.arrows").exists() && !folder.join(FILE).exists());
    let (own, end) = read(&folder.join(FILE));
    assert_eq!(end.cut, None);
    assert_rows_are(&own, end.summary.as_deref().expect("totals"));
    let first = folder.join("t.0001.arrows");
    let (part, end) = read(&first);
    assert!(part.rows > 0 && part.rows < own.rows && end.cut.expect("a reason").contains("a part"));
    assert_eq!(number(&found(&first)["duckdb"], "rows"), end.all_rows);
}

#[test]
#[ignore = "needs root and BPF"]
fn a_flight_recorder_writes_when_asked_and_at_the_end() {
    let program = Program::sim(&["train", "0"]);
    let pid = program.pid().to_string();
    let running = Gpuscope::record(&["--ring", "2s", "-p", &pid], &[])
        .start()
        .until_attached();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(
        !running.folder().join("t.dump-0001.arrows").exists(),
        "nothing has happened"
    );
    running.signal(libc::SIGUSR1);
    eventually("a file", || running.stderr().contains("SIGUSR1 came"));
    let trace = running.stop();
    assert_eq!(trace.code(), 0, "{}", trace.stderr);
    assert!(trace.stderr.contains("the trace ended: the last "), "{}", trace.stderr);
    for name in ["t.dump-0001.arrows", "t.dump-0002.arrows"] {
        let (own, end) = read(&trace.folder().join(name));
        assert!(own.rows > 100 && end.summary.is_none(), "{name}");
        assert!(end.cut.expect("a reason").contains("the last moments"));
    }
    let start = |name: &str| read(&trace.folder().join(name)).0.last;
    assert!(start("t.dump-0002.arrows") > start("t.dump-0001.arrows"));
}

#[test]
#[ignore = "needs root and BPF"]
fn a_flight_recorder_writes_when_a_call_fails() {
    let [program, scenario, _] = train("0");
    let options = [&ROOMY[..], &["--ring", "1min", "--dump-on", "error"]].concat();
    let trace = Gpuscope::record(&options, &[&program, &scenario, "0"])
        .env("GPUSIM_FAIL", "cudaMemcpyAsync:2000+=719")
        .finish();
    assert_eq!(
        trace.code(),
        1,
        "as the command, which ends at the error: {}",
        trace.stderr
    );
    assert!(trace.stderr.contains("a call failed: the last "), "{}", trace.stderr);
    let file = trace.folder().join("t.dump-0001.arrows");
    let (own, end) = read(&file);
    let types = found(&file);
    assert!(
        own.rows > 100 && number(&types["duckdb"], "rows") == end.all_rows,
        "with those of totals"
    );
    let mut failed = 0;
    let mut look = Look(|event: &Record<'_>| failed += u64::from(event.failed));
    let _ = Reader::open(&file).expect("a recording").read(&mut look);
    assert!(failed > 0, "the call that failed is in it");
}

struct Look<F: FnMut(&Record<'_>)>(F);

impl<F: FnMut(&Record<'_>)> Taker for Look<F> {
    fn take(&mut self, event: &Record<'_>) {
        self.0(event);
    }
}

#[test]
#[ignore = "needs root and BPF"]
fn run_records_beside_its_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.arrows");
    let mut words = vec![
        "run".to_owned(),
        "-o".to_owned(),
        file.display().to_string(),
        "--".to_owned(),
    ];
    words.extend(train("20"));
    let trace = Gpuscope::new(words).finish().ok();
    assert!(trace.stderr.contains("cudaLaunchKernel"), "{}", trace.stderr);
    let (own, end) = read(&file);
    assert_eq!(end.cut, None);
    assert_rows_are(&own, end.summary.as_deref().expect("totals"));
    let meta = own.meta.expect("what describes it");
    assert_eq!(meta.command, train("20"));
}

#[test]
#[ignore = "needs root and BPF"]
fn without_a_name_it_goes_to_the_folder_traces_and_the_status_is_the_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = Command::new(env!("CARGO_BIN_EXE_gpuscope"))
        .args(["record", "--", "sh", "-c", "exit 5"])
        .env(support::ENGINE, support::engine())
        .current_dir(folder.path())
        .output()
        .expect("gpuscope runs");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(5), "{stderr}");
    let files: Vec<PathBuf> = std::fs::read_dir(folder.path().join("traces"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("trace_2") && name.ends_with(".arrows"), "{name}");
    assert!(stderr.contains(&format!("gpuscope report traces/{name}")), "{stderr}");
    assert_eq!(read(file).1.cut, None);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (words, what) in [
        (&["record"][..], "nothing to record"),
        (&["record", "--all", "-o", "-", "--ring", "1min"], "stdout is one file"),
        (
            &["record", "--all", "--rotate", "1GiB", "--max-size", "1GiB"],
            "no room for two files",
        ),
        (&["record", "--all", "--max-size", "1KiB"], "--max-size is too small"),
        (&["record", "--all", "--ring", "1ms"], "--ring is too short"),
        (
            &["record", "--all", "--ring", "1min", "--rotate", "1h"],
            "cannot be used with",
        ),
        (&["record", "--all", "--dump-on", "error"], "--ring"),
        (&["record", "--all", "--rotate", "5"], "neither a size nor a time"),
        (&["trace", "--all", "-q", "-o", "x.arrows"], "-q writes no rows"),
    ] {
        let refused = Gpuscope::new(words).finish();
        assert_eq!(refused.code(), 2, "{words:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(what), "{words:?}: {}", refused.stderr);
    }
    let refused = Gpuscope::new(["record", "--max-size", "1KiB", "--", "true"]).finish();
    assert_eq!(refused.code(), 125, "{}", refused.stderr);
}
