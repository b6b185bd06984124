//! Filters and sums of hook files are computed in the kernel, exactly, whatever threads do at the same time.

use crate::support::{Gpuscope, Trace, compile, number, ways};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

const THREADS: u64 = 8;
const ROUNDS: u64 = 2000;

const LIBRARY: &str = r#"
[[enum]]
name = "sum_kind"
values = ["0=NONE", "1=ONE", "2=TWO", "3=THREE"]
[[library]]
name = "summed"
match = "libsummed.so*"
"#;

const WORK: &str = r#"
[[function]]
library = "summed"
symbol = "sum_work"
args = ["size: size", "kind: enum:sum_kind", "path: cstr", "delta: i64", "out: *u32 (out)"]
returns = "i32"
"#;

/// The library and its user, compiled once.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let library = include_str!("../support/summed.c");
        compile(path, "libsummed.so.1", library, &["-shared", "-fPIC"]);
        let flags = [
            text_of(&path.join("libsummed.so.1")),
            "-Wl,-rpath,$ORIGIN".into(),
            "-lpthread".into(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        compile(path, "summed_user", include_str!("../support/summed_user.c"), &flags);
        folder
    });
    folder.path()
}

fn text_of(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// A hook file of the library and these rows.
fn hooks(name: &str, rows: &str) -> PathBuf {
    let path = folder().join(format!("{name}.toml"));
    std::fs::write(&path, format!("{LIBRARY}{rows}")).expect("a file");
    path
}

/// The user under gpuscope with these rows.
fn run(name: &str, rows: &str, tier: Option<&str>) -> Trace {
    let hooks = text_of(&hooks(name, rows));
    let user = text_of(&folder().join("summed_user"));
    let (threads, rounds) = (THREADS.to_string(), ROUNDS.to_string());
    let run = Gpuscope::run(
        &["--hooks", &hooks, "--ring-size", "64MiB"],
        &[&user, &threads, &rounds],
    );
    let trace = tier.into_iter().fold(run, |run, tier| run.tier(tier)).finish().ok();
    assert_eq!(trace.stdout, "jumped 17\n", "the program's own result");
    trace
}

/// One row of `sum_work` with these keys, and what it has summed up.
fn summed(name: &str, keys: &str) -> Value {
    let trace = run(name, &format!("{WORK}{keys}"), None);
    assert_eq!(trace.calls().count(), 0, "summed calls are not written");
    trace.summary()["aggregates"][0].clone()
}

/// What each call of a thread was given: size, kind, delta.
fn calls() -> impl Iterator<Item = (u64, u64, i64)> {
    (0..ROUNDS).map(|round| (round * 37, round / 50 % 4, round as i64 % 21 - 10))
}

/// Groups by name: a field of each.
fn groups(sums: &Value, field: &str) -> BTreeMap<String, i64> {
    let groups = sums["groups"].as_array().expect("groups");
    let entry = |group: &Value| {
        let by = group["by"]
            .as_str()
            .map_or_else(|| group["by"].to_string(), str::to_owned);
        (by, group[field].as_i64().expect("a number"))
    };
    groups.iter().map(entry).collect()
}

fn name_of(kind: u64) -> String {
    ["NONE", "ONE", "TWO", "THREE"][kind as usize].to_owned()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn histograms_are_exact_where_threads_meet_a_group_at_the_same_time() {
    for way in ways() {
        let rows = format!("{WORK}aggregate = \"hist(size) by kind\"");
        let trace = run("hist", &rows, Some(way));
        let sums = &trace.summary()["aggregates"][0];
        assert_eq!(
            (number(sums, "passed"), number(sums, "unknown")),
            (THREADS * ROUNDS, 0),
            "{way}"
        );
        for group in sums["groups"].as_array().expect("groups") {
            let mut expected = BTreeMap::new();
            for (size, ..) in calls().filter(|(_, kind, _)| json!(name_of(*kind)) == group["by"]) {
                *expected
                    .entry(size.checked_ilog2().map_or(0, |log| 1u64 << log))
                    .or_insert(0) += THREADS;
            }
            let buckets = group["buckets"].as_array().expect("buckets");
            let got: BTreeMap<u64, u64> = buckets
                .iter()
                .map(|bucket| (number(bucket, "from"), number(bucket, "count")))
                .collect();
            assert_eq!(got, expected, "{way}: {}", group["by"]);
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn sums_counts_and_extremes_of_signed_numbers_are_exact() {
    let sums = summed("stats", "aggregate = \"stats(delta) by kind\"");
    for kind in 0..4 {
        let deltas: Vec<i64> = calls().filter(|call| call.1 == kind).map(|call| call.2).collect();
        let name = name_of(kind);
        let group = |field| groups(&sums, field)[&name];
        assert_eq!(group("count"), deltas.len() as i64 * THREADS as i64);
        assert_eq!(group("sum"), deltas.iter().sum::<i64>() * THREADS as i64);
        assert_eq!((group("min"), group("max")), (-10, 10));
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_filter_decides_what_is_summed_up_and_the_function_is_counted_all_the_same() {
    let sums = summed(
        "filtered",
        "filter = \"size > 10KiB && kind != TWO\"\naggregate = \"max(out)\"",
    );
    let passing = calls().filter(|(size, kind, _)| *size > 10240 && *kind != 2);
    let (count, largest) = passing.fold((0, 0), |(count, most), (size, ..)| (count + 1, size.max(most)));
    assert_eq!(
        (number(&sums, "passed"), number(&sums, "calls")),
        (count * THREADS, THREADS * ROUNDS)
    );
    assert_eq!(
        number(&sums["groups"][0], "max"),
        largest + 1,
        "what the call has filled in"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn calls_are_grouped_by_text_result_thread_and_name() {
    let by_path = summed("path", "aggregate = \"count by path\"");
    let expected = |path: u64| (0..ROUNDS).filter(|round| round % 7 == path).count() as u64 * THREADS;
    let expected: BTreeMap<String, i64> = (0..7)
        .map(|path| (format!("/data/{path}"), expected(path) as i64))
        .collect();
    assert_eq!(groups(&by_path, "count"), expected);
    let by_result = summed("result", "aggregate = \"count by result\"");
    let failed = calls().filter(|call| call.1 == 3).count() as i64;
    assert_eq!(groups(&by_result, "count")["-1"], failed * THREADS as i64);
    let by_thread = summed("thread", "aggregate = \"count by thread\"");
    let counts: Vec<i64> = groups(&by_thread, "count").into_values().collect();
    assert_eq!(counts, [ROUNDS as i64; THREADS as usize]);
    let by_comm = summed("comm", "aggregate = \"count by comm\"");
    assert_eq!(
        groups(&by_comm, "count"),
        [("summed_user".to_owned(), (THREADS * ROUNDS) as i64)].into()
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_filter_without_sums_writes_the_calls_that_pass() {
    let trace = run(
        "lines",
        &format!("{WORK}filter = \"kind == THREE && result < 0\""),
        None,
    );
    let passing = calls().filter(|call| call.1 == 3).count() as u64 * THREADS;
    assert_eq!(trace.calls_of("sum_work").count() as u64, passing);
    assert!(
        trace
            .calls()
            .all(|call| call["args"]["kind"] == "THREE" && call["ret"] == -1)
    );
    let sums = &trace.summary()["aggregates"][0];
    assert_eq!((number(sums, "passed"), &sums["aggregate"]), (passing, &Value::Null));
    let all: u64 = trace.totals("calls").into_values().sum();
    assert_eq!(all, THREADS * ROUNDS, "the function is counted all the same");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn stacks_are_shown_with_lines_and_calls_are_counted_by_stack() {
    let trace = run("stacks", &format!("{WORK}filter = \"size == 37\"\nstack = true"), None);
    let stacks: Vec<String> = trace
        .calls()
        .map(|call| call["stack"][0]["function"].to_string())
        .collect();
    assert_eq!(stacks, vec!["\"run\""; THREADS as usize]);
    let sums = summed("by_stack", "filter = \"size < 3700\"\naggregate = \"count by stack\"");
    let group = &sums["groups"][0];
    assert_eq!(
        (&group["by"][0]["function"], number(group, "count")),
        (&json!("run"), 100 * THREADS)
    );
}

const PLACES: &str = r#"
[[function]]
library = "summed"
symbol = "sum_place"
offset = 3
args = ["a: i64", "b: i64"]
aggregate = "sum(a)"
[[function]]
library = "summed"
symbol = "sum_place"
return = false
args = ["a: i64", "b: i64"]
aggregate = "count"
[[function]]
library = "summed"
symbol = "sum_place"
offset = 1
[[function]]
library = "summed"
symbol = "sum_place"
offset = 4096
[[function]]
library = "summed"
symbol = "sum_jump"
args = ["value: i32"]
returns = "i32"
aggregate = "count by result"
[[function]]
library = "summed"
symbol = "longjmp_out"
args = ["value: i32"]
returns = "void"
return = false
"#;

#[test]
#[ignore = "needs root and BPF: from inside, an instruction within a function is hooked only if it is as long as a jump"]
fn places_within_a_function_are_hooked_unless_no_instruction_begins_there() {
    for way in ways() {
        let trace = run("places", PLACES, Some(way));
        let aggregates = trace.summary()["aggregates"].as_array().expect("sums").clone();
        let of = |name: &str| {
            aggregates
                .iter()
                .find(|sums| sums["name"] == name)
                .expect("sums")
                .clone()
        };
        let inside = of("sum_place+0x3");
        assert_eq!(number(&inside, "passed"), THREADS * ROUNDS, "{way}");
        assert_eq!(
            number(&inside["groups"][0], "sum"),
            (0..ROUNDS).sum::<u64>() * THREADS,
            "{way}"
        );
        assert_eq!(number(&of("sum_place"), "passed"), THREADS * ROUNDS, "{way}");
        assert_eq!(groups(&of("sum_jump"), "count"), [("17".to_owned(), 1)].into());
        for (place, why) in [
            ("sum_place+0x1:", "inside an instruction"),
            ("sum_place+0x1000:", "not probed"),
        ] {
            let named = |line: &String| line.contains(place) && line.contains(why);
            assert!(trace.unseen().iter().any(named), "{place} {why}: {:?}", trace.unseen());
        }
        assert_eq!(trace.calls_of("longjmp_out").count(), 1, "{}", way);
    }
}

#[test]
#[ignore = "needs root and BPF: what a return probe would break"]
fn functions_that_break_under_a_return_probe_are_seen_at_entry_only() {
    let rows = r#"
[[library]]
name = "c"
match = "libc.so.6"
[[function]]
library = "c"
symbol = "__longjmp_chk"
args = ["buffer: ptr", "value: i32"]
returns = "void"
return = true
[[function]]
library = "c"
symbol = "*longjmp"
args = ["buffer: ptr", "value: i32"]
returns = "void"
[[function]]
library = "c"
symbol = "_setjmp"
args = ["buffer: ptr"]
returns = "i32"
aggregate = "count by result"
"#;
    let trace = run("jumps", rows, None);
    let said = |name: &str| {
        trace
            .unseen()
            .iter()
            .any(|line| line.contains(name) && line.contains("seen at entry only"))
    };
    assert!(said("longjmp") && said("_setjmp"), "{:?}", trace.unseen());
    let setjmp = &trace.summary()["aggregates"][0];
    assert_eq!(number(setjmp, "passed"), 0, "its result is not seen");
    assert_eq!(
        number(setjmp, "unknown"),
        number(setjmp, "calls"),
        "and that is said of each call"
    );
}

fn explained(name: &str, rows: &str, arguments: &[&str]) -> (i32, String) {
    let hooks = text_of(&hooks(name, rows));
    let trace = Gpuscope::new([&["functions", "--explain", &hooks], arguments].concat()).finish();
    (trace.code(), trace.stdout)
}

#[test]
fn a_file_is_explained_without_attaching_or_privileges() {
    let library = text_of(&folder().join("libsummed.so.1"));
    let (code, said) = explained(
        "good",
        &format!("{WORK}aggregate = \"hist(size)\""),
        &["--lib", &library],
    );
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("sum_work") && said.contains("entry and return") && said.contains("hist(size)"),
        "{said}"
    );
    let (code, said) = explained("bad", PLACES, &["--lib", &library]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("inside a function") && said.contains("CANNOT: not probed"),
        "{said}"
    );
    let typo = WORK.replace("sum_work", "sum_wrok");
    let (code, said) = explained("typo", &typo, &["--lib", &library]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("hint: did you mean \"sum_work\"?"), "{said}");
    let (code, said) = explained("nowhere", WORK, &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("summed: CANNOT: no file here matches"), "{said}");
}

#[test]
fn what_cannot_be_computed_where_returns_are_refused_is_explained() {
    let rows = WORK.replace("sum_work", "_Z8sum_workv") + "filter = \"result != 0\"";
    let folder = folder();
    let source = "int _Z8sum_workv(void) { return 1; }";
    compile(folder, "libsummed.so.2", source, &["-shared", "-fPIC"]);
    let (code, said) = explained("cxx", &rows, &["--lib", &text_of(&folder.join("libsummed.so.2"))]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("needs what is known at the return") && said.contains("C++ exceptions"),
        "{said}"
    );
}
