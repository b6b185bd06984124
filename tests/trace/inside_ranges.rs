//! Ranges and marks (NVTX): what a program calls its phases is in every output, and the program is told what any tool tells it.

use crate::support::{Gpuscope, Trace, compile, number, sim_cupti, sim_folder, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

fn fetched(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/tools/nvtx")
        .join(path);
    assert!(path.exists(), "{} is missing: scripts/fetch-tools.sh", path.display());
    path
}

/// A program that annotates itself, compiled with NVIDIA's headers.
struct Annotated {
    _folder: TempDir,
    program: String,
}

impl Annotated {
    fn new() -> Annotated {
        let folder = tempfile::tempdir().expect("a folder");
        let headers = format!("-I{}", fetched("include").display());
        let source = include_str!("../support/annotated.c");
        let program = compile(folder.path(), "annotated", source, &[&headers, "-ldl"]);
        Annotated {
            program: program.to_str().expect("a path").to_owned(),
            _folder: folder,
        }
    }

    fn run(&self, parts: &[&str]) -> Trace {
        let command = [&[self.program.as_str()], parts].concat();
        inside(Gpuscope::run(&[], &command)).finish()
    }
}

fn inside(gpuscope: Gpuscope) -> Gpuscope {
    gpuscope.tier("inside")
}

/// Domain and name, how deep, and whether it is a mark.
type Told = (String, String, u64, bool);

fn told(trace: &Trace) -> Vec<Told> {
    let all = trace.of_type("range").chain(trace.of_type("mark"));
    let one = |line: &Value| {
        let is_mark = line["type"] == "mark";
        assert_eq!(is_mark, line.get("duration_us").is_none(), "{line}");
        (text(line, "domain"), text(line, "name"), number(line, "depth"), is_mark)
    };
    all.map(one).collect()
}

fn named<'a>(trace: &'a Trace, name: &str) -> &'a Value {
    let all = trace.of_type("range").chain(trace.of_type("mark"));
    let found = all.into_iter().find(|line| line["name"] == name);
    found.unwrap_or_else(|| panic!("no range {name:?}: {:?}", told(trace)))
}

fn lost(trace: &Trace) -> u64 {
    let words = trace
        .unseen()
        .into_iter()
        .find(|words| words.contains("ranges and marks"));
    words.map_or(0, |words| {
        words.split(' ').next().expect("a number").parse().expect("a number")
    })
}

fn expected(domain: &str, name: &str, depth: u64, is_mark: bool) -> Told {
    (domain.to_owned(), name.to_owned(), depth, is_mark)
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn nested_ranges_are_told_with_their_levels_as_the_program_is() {
    let trace = Annotated::new().run(&["nested"]).ok();
    assert_eq!(trace.stdout, "levels 0 1 2 2 1 0 -1\n");
    let nested = [
        expected("", "outer", 0, false),
        expected("", "größer ✓", 1, false),
        expected("", "inner", 2, false),
        expected("", "a mark", 3, true),
    ];
    assert_eq!(told(&trace), nested);
    let within = |one: &Value, other: &Value| {
        let at = |line: &Value| line["ts"].as_f64().expect("a time") * 1e6;
        let end = |line: &Value| at(line) + line["duration_us"].as_f64().expect("a time");
        at(other) <= at(one) && end(one) <= end(other) + 0.002
    };
    assert!(within(named(&trace, "größer ✓"), named(&trace, "outer")));
    assert!(within(named(&trace, "inner"), named(&trace, "größer ✓")));
    assert_eq!(text(named(&trace, "outer"), "comm"), "annotated");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn domains_nest_each_on_its_own_and_registered_texts_are_texts() {
    let trace = Annotated::new().run(&["domains"]).ok();
    assert_eq!(trace.stdout, "domains 0 0 0 0\n");
    let step = named(&trace, "registered");
    assert_eq!(
        (text(step, "domain"), text(step, "color")),
        ("train".to_owned(), "#ff76b900".to_owned())
    );
    assert_eq!(number(step, "nvtx_category"), 5);
    assert!(told(&trace).contains(&expected("data", "load", 0, false)));
    assert!(told(&trace).contains(&expected("data", "load", 0, true)));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn threads_and_categories_have_the_names_that_the_program_gives_them() {
    let trace = Annotated::new().run(&["names"]).ok();
    let thread = trace.of_type("thread-name").next().expect("a name");
    assert_eq!(text(thread, "name"), "the only one");
    assert_eq!(number(thread, "tid"), number(thread, "pid"));
    let category = |kind: &str| text(trace.of_type(kind).next().expect("one"), "nvtx_category_name");
    assert_eq!(
        (category("range"), category("mark")),
        ("phases".to_owned(), "of none".to_owned())
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_range_that_ends_on_another_thread_is_one_and_threads_have_their_own() {
    let trace = Annotated::new().run(&["threads"]).ok();
    let all = told(&trace);
    assert_eq!(all.iter().filter(|one| one.1 == "of a thread").count(), 20);
    let elsewhere = named(&trace, "ends elsewhere");
    assert_eq!(elsewhere["started"], true);
    assert_ne!(number(elsewhere, "end_tid"), number(elsewhere, "tid"));
    assert_eq!(all.len(), 21, "it ends once");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_child_has_ranges_of_its_own() {
    let trace = Annotated::new().run(&["fork"]).ok();
    let (parent, child) = (named(&trace, "around a fork"), named(&trace, "of a child"));
    assert_ne!(number(parent, "pid"), number(child, "pid"));
    assert_eq!(number(child, "depth"), 0, "what its parent has open is not its own");
    assert_eq!(told(&trace).len(), 2);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn names_may_hold_anything_and_lie_anywhere() {
    let trace = Annotated::new().run(&["odd"]).ok();
    let names: Vec<String> = told(&trace).into_iter().map(|(_, name, ..)| name).collect();
    assert_eq!(names.len(), 7);
    assert_eq!(names[0], "\u{1b}[2J \"quoted\" \u{fffd}\u{fffd}");
    assert_eq!(names[1], "x".repeat(256) + "…");
    let unread: Vec<bool> = trace.of_type("range").map(|line| line["name_unread"] == true).collect();
    assert_eq!(unread, [false, false, false, true, true, true, false]);
    let raw = std::fs::read_to_string(trace.folder().join("lines.jsonl")).expect("lines");
    assert!(!raw.contains('\u{1b}'), "nothing that a terminal obeys");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_never_ends_is_told_as_open() {
    for parts in [&["open"][..], &["open", "killed"]] {
        let trace = Annotated::new().run(parts);
        for name in ["never ends", "never ends, of no thread"] {
            let open = named(&trace, name);
            assert_eq!(open["open"], true, "{open}");
            assert!(open["duration_us"].as_f64().is_some_and(|us| us > 0.0), "{open}");
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_million_ranges_are_told_or_counted_as_lost() {
    let trace = Annotated::new().run(&["many", "1000000"]).ok();
    assert_eq!(trace.of_type("range").count() as u64 + lost(&trace), 1_000_000);
    let deep = Annotated::new().run(&["deep", "200"]).ok();
    assert_eq!((deep.of_type("range").count(), lost(&deep)), (128, 72));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn domains_for_which_there_is_no_room_are_one() {
    let trace = Annotated::new().run(&["domains of", "1100", "domains of", "1100"]).ok();
    let all = told(&trace);
    let others = all.iter().filter(|one| one.0 == "(other domains)").count();
    let named: BTreeSet<&str> = all.iter().map(|one| one.0.as_str()).collect();
    // one has no name, and one is the others'
    assert_eq!((all.len(), others, named.len()), (2200, 2 * (1100 - 1022), 1023));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn another_tool_keeps_nvtx_and_that_is_said() {
    let trace = inside(Gpuscope::run(&[], &["true"])).env("NVTX_INJECTION64_PATH", "/opt/tool.so");
    let trace = trace.finish().ok();
    let words = "ranges and marks (NVTX): NVTX_INJECTION64_PATH is set to /opt/tool.so already";
    assert!(
        trace.unseen().iter().any(|said| said.contains(words)),
        "{:?}",
        trace.unseen()
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn who_loads_the_agent_late_goes_on_without_a_tool() {
    let annotated = Annotated::new();
    let script = format!("env -u LD_PRELOAD {} nested", annotated.program);
    let trace = inside(Gpuscope::script(&[], &script)).finish().ok();
    assert_eq!(trace.stdout, "levels -2 -2 -2 -2 -2 -2 -2\n");
    assert_eq!(told(&trace), []);
}

/// What a program in Python does that steps so often, recorded.
fn recorded(steps: usize) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = folder.path().join("steps");
    std::fs::write(&lines, "go\n".repeat(steps)).expect("a file");
    let program = program();
    let command: Vec<&str> = program.iter().map(String::as_str).collect();
    let record = inside(Gpuscope::record(&[], &command)).env("GPUSCOPE_CUPTI", sim_cupti());
    let record = record.env("GPUSIM_KERNEL_US", "500");
    record.stdin(File::open(lines).expect("a file")).finish().ok()
}

fn program() -> [String; 4] {
    let text = |path: PathBuf| path.to_str().expect("a path").to_owned();
    [
        "python3".to_owned(),
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/annotate.py").to_owned(),
        text(fetched("lib/libnvToolsExt.so.1")),
        text(sim_folder().join("libcudart.so.13")),
    ]
}

/// What gpuscope says of the recording.
fn said(trace: &Trace, arguments: &[&str]) -> String {
    let file = trace.folder().join("t.arrows");
    let file = file.to_str().expect("a path");
    let all = [&arguments[..1], &[file], &arguments[1..]].concat();
    Gpuscope::new(all).finish().ok().stdout
}

fn report(trace: &Trace, options: &[&str]) -> Value {
    let text = said(trace, &[&["report", "--json"], options].concat());
    serde_json::from_str(&text).expect("JSON")
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_library_of_before_is_seen_and_devices_work_for_the_innermost_range() {
    let trace = recorded(10);
    let report = report(&trace, &[]);
    let ranges = report["ranges"]["ranges"].as_array().expect("ranges");
    let of = |name: &str| ranges.iter().find(|one| one["name"] == name).expect("a range");
    assert_eq!((number(of("step"), "count"), number(of("größer"), "count")), (10, 10));
    assert_eq!(number(&report["ranges"]["marks"][0], "count"), 10);
    let steps = &report["steps"][0];
    assert_eq!(
        (text(steps, "certainty"), number(steps, "count")),
        ("marked".to_owned(), 10)
    );
    assert_eq!(text(&steps["anchor"], "range"), "step");
    let lines = said(&trace, &["export", "--to", "jsonl"]);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let ns = |line: &Value| (line["duration_us"].as_f64().expect("a time") * 1e3).round() as u64;
    let executed: u64 = lines.iter().filter(|line| line["type"] == "gpu").map(ns).sum();
    let parts = [of("step"), of("größer")].map(|one| number(one, "gpu_ns"));
    let outside = number(&report["ranges"], "gpu_outside_ns");
    assert!(parts.iter().all(|ns| *ns > 0) && outside > 0, "{parts:?} {outside}");
    assert_eq!(parts.iter().sum::<u64>() + outside, executed);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_report_an_export_and_a_picture_of_one_range_have_what_began_in_it() {
    let trace = recorded(10);
    let copies = |options: &[&str]| {
        let report = report(&trace, options);
        let layers = report["layers"].as_array().expect("layers").clone();
        let functions = layers
            .iter()
            .flat_map(|layer| layer["functions"].as_array().expect("functions"));
        let found: Vec<u64> = functions
            .filter(|one| one["name"] == "cudaMemcpy")
            .map(|one| number(one, "calls"))
            .collect();
        (found, report["notes"].to_string())
    };
    assert_eq!(copies(&[]).0, [60]);
    let (found, notes) = copies(&["--range", "step"]);
    assert_eq!(found, [50]);
    assert!(notes.contains("only what began within 10 ranges named step"), "{notes}");
    assert_eq!(copies(&["--range", "grö*"]).0, [20]);
    let lines = said(&trace, &["export", "--to", "jsonl", "--range", "größer"]);
    assert_eq!(lines.matches("\"name\":\"cudaMemcpy\"").count(), 20);
    let picture = said(&trace, &["timeline", "--range", "step"]);
    assert!(
        picture.contains("ranges") && !picture.contains("cudaMalloc"),
        "{picture}"
    );
    let file = trace.folder().join("t.arrows");
    let none = Gpuscope::new(["report", file.to_str().expect("a path"), "--range", "missing"]).finish();
    assert_eq!(none.code(), 2, "{}", none.stderr);
    assert!(none.stderr.contains("has no range of that name"), "{}", none.stderr);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_form_of_a_recording_has_ranges() {
    let trace = recorded(3);
    let chrome = said(&trace, &["export", "--to", "chrome"]);
    let chrome: Value = serde_json::from_str(&chrome).expect("JSON");
    let events = chrome["traceEvents"].as_array().expect("events");
    assert_eq!(events.iter().filter(|event| event["cat"] == "nvtx").count(), 9);
    assert_eq!(
        said(&trace, &["export", "--to", "csv"]).matches("\n\"range\",").count(),
        6
    );
    assert!(said(&trace, &["report"]).contains("Ranges (NVTX)"));
    assert!(said(&trace, &["timeline"]).contains("━"));
    let perfetto = trace.folder().join("t.pftrace");
    said(&trace, &["export", "-o", perfetto.to_str().expect("a path")]);
    let bytes = std::fs::read(perfetto).expect("a file");
    let title = b"ranges (NVTX) of thread";
    assert!(bytes.windows(title.len()).any(|part| part == title));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_that_stands_by_is_heard_from_when_somebody_asks() {
    const STEPS: usize = 20;
    let data = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(env!("CARGO_BIN_EXE_gpuscope"))
        .args(["preload", "--"])
        .args(program())
        .env("XDG_DATA_HOME", data.path())
        .env("LD_LIBRARY_PATH", sim_folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut steps = child.stdin.take().expect("a pipe");
    let answers = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut answers = std::io::BufRead::lines(answers);
    let mut step = || {
        steps.write_all(b"go\n").expect("it reads");
        assert_eq!(answers.next().expect("it answers").expect("a line"), "stepped");
    };
    step();
    let pid = child.id().to_string();
    let running = inside(Gpuscope::trace(&["-p", &pid, "--engine", "inside"]))
        .start()
        .until_attached();
    // the first ones may wake it: ranges are told of from a moment that nobody outside sees
    for _ in 0..STEPS {
        step();
        std::thread::sleep(Duration::from_millis(25));
    }
    let trace = running.stop();
    step();
    let steps_told = told(&trace).iter().filter(|one| one.1 == "step").count();
    assert!(
        (2..=STEPS).contains(&steps_told),
        "{:?}\n{}",
        told(&trace),
        trace.stderr
    );
    drop(steps);
    assert!(child.wait().expect("a child").success());
}
