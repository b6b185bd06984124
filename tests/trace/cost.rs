//! What tracing costs is counted by the kind of place that a probe sits at, and said by every command.

use crate::support::{Gpuscope, Trace, compile, number, sim_text, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const TIMES: u64 = 5000;

const HOOKS: &str = r#"
[[library]]
name = "places"
match = "libplaces.so*"
[[library]]
name = "late"
match = "liblate.so*"
[[function]]
library = "places"
symbol = "place_push"
args = ["value: i64"]
returns = "i64"
[[function]]
library = "places"
symbol = "place_nop"
args = ["value: i64"]
returns = "i64"
[[function]]
library = "places"
symbol = "place_stepped"
args = ["value: i64"]
returns = "i64"
[[function]]
library = "places"
symbol = "place_load"
class = "context"
args = ["path: cstr"]
returns = "i32"
[[function]]
library = "late"
symbol = "late_value"
args = ["none: i32"]
returns = "i32"
"#;

/// Both libraries and their user, at paths that nobody has mapped before.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let library = ["-shared", "-fPIC", "-fcf-protection=none", "-ldl"];
    compile(path, "libplaces.so.1", include_str!("../support/places.c"), &library);
    compile(
        path,
        "liblate.so.1",
        "int late_value(void) { return 17; }",
        &library[..3],
    );
    let places = text_of(&path.join("libplaces.so.1"));
    let flags = [places.as_str(), "-Wl,-rpath,$ORIGIN", "-ldl"];
    compile(path, "places_user", include_str!("../support/places_user.c"), &flags);
    std::fs::write(path.join("hooks.toml"), HOOKS).expect("a file");
    folder
}

fn text_of(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn traced(options: &[&str]) -> Trace {
    let folder = folder();
    let file = |name: &str| text_of(&folder.path().join(name));
    let (hooks, user, late) = (file("hooks.toml"), file("places_user"), file("liblate.so.1"));
    let options = [&["--hooks", hooks.as_str()], options].concat();
    let trace = Gpuscope::run(&options, &[&user, &TIMES.to_string(), &late])
        .finish()
        .ok();
    assert!(
        trace.stdout.ends_with(" 17\n"),
        "the program's own result: {}",
        trace.stdout
    );
    trace
}

fn places(summary: &Value) -> Vec<(String, u64)> {
    let places = summary["cost"]["by_place"].as_array().expect("places");
    places
        .iter()
        .map(|place| (text(place, "place"), number(place, "hits")))
        .collect()
}

fn float(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
#[ignore = "needs root and BPF: the kinds of places that probes sit at"]
fn each_call_is_counted_at_the_kind_of_place_where_its_probe_sits() {
    let trace = traced(&[]);
    let cost = &trace.summary()["cost"];
    // `late_value` begins with a mov or a push, as the compiler likes
    let places = places(trace.summary());
    let of = |kind: &str| -> u64 {
        places
            .iter()
            .filter(|(place, _)| place == kind)
            .map(|(_, hits)| hits)
            .sum()
    };
    assert_eq!(of("nop5"), TIMES);
    assert_eq!(of("emulated") + of("single-stepped"), 2 * TIMES + 2);
    assert!((TIMES..=TIMES + 2).contains(&of("single-stepped")), "{cost:#}");
    assert_eq!(number(cost, "records"), 3 * TIMES + 2);
    let priced: f64 = cost["by_place"]
        .as_array()
        .expect("places")
        .iter()
        .map(|place| float(&place["hits"]) * float(&place["ns_per_hit"]))
        .sum();
    let records = float(&cost["records"]) * float(&cost["ns_per_record"]);
    let seconds = (priced + records) / 1e9 + float(&cost["standstill_seconds"]);
    assert!((float(&cost["program_seconds"]) - seconds).abs() < 1e-6, "{cost:#}");
    let price = |kind: &str| {
        let places = cost["by_place"].as_array().expect("places");
        let place = places.iter().find(|place| place["place"] == kind).expect("the place");
        float(&place["ns_per_hit"])
    };
    assert!(price("single-stepped") > price("emulated"), "{cost:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_time_for_which_a_loading_thread_stood_still_is_marked_on_its_call_and_in_the_cost() {
    let trace = traced(&[]);
    let load = trace.calls_of("place_load").next().expect("the call");
    let stood = float(&load["standstill_us"]);
    assert!(stood > 0.0 && stood <= float(&load["duration_us"]), "{load:#}");
    let all = float(&trace.summary()["cost"]["standstill_seconds"]);
    assert!(all * 1e6 + 0.001 >= stood, "{all} s in all, {stood} µs in the call");
    assert!(trace.calls_of("place_push").all(|call| call["standstill_us"].is_null()));
    assert_eq!(in_summary(&trace), stood);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn it_is_marked_on_functions_that_are_only_counted() {
    let folder = folder();
    let file = |name: &str| text_of(&folder.path().join(name));
    let (hooks, user, late) = (file("hooks.toml"), file("places_user"), file("liblate.so.1"));
    let options = ["-q", "--summary", "json", "--hooks", &hooks];
    let trace = Gpuscope::run(&options, &[&user, "3", &late]).finish().ok();
    let summary: Value = serde_json::from_str(trace.stderr.lines().last().expect("a line")).expect("JSON");
    let function = function_of(&summary, "place_load");
    assert!(float(&function["standstill_us"]) > 0.0, "{function:#}");
}

fn in_summary(trace: &Trace) -> f64 {
    float(&function_of(trace.summary(), "place_load")["standstill_us"])
}

fn function_of(summary: &Value, name: &str) -> Value {
    let functions = summary["functions"].as_array().expect("functions");
    let function = functions.iter().find(|function| function["name"] == name);
    function.expect("the function").clone()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_command_that_traces_says_by_how_much_it_slowed_the_program() {
    let sim = sim_text("gpusim");
    let run = Gpuscope::run(&[], &[&sim, "train", "5"]).finish().ok();
    let record = Gpuscope::record(&[], &[&sim, "train", "5"]).finish().ok();
    for trace in [&run, &record] {
        assert!(
            trace.stderr.contains("Tracing slowed the program by "),
            "{}",
            trace.stderr
        );
    }
    let quiet = Gpuscope::new(["leaks", "--", &sim, "churn", "5"]).finish().ok();
    assert!(
        quiet.stderr.contains("Tracing slowed the program by "),
        "{}",
        quiet.stderr
    );
    let leaks = Gpuscope::leaks(&[], &[&sim, "churn", "5"]).finish().ok();
    let last = leaks.records.last().expect("a report");
    assert!(number(&last["cost"], "hits") > 0, "{last:#}");
}

/// The library's functions begin as this test takes for granted.
#[test]
fn the_functions_begin_with_an_instruction_of_each_kind() {
    let folder = folder();
    let library: PathBuf = folder.path().join("libplaces.so.1");
    let elf = gpuscope::elf::ElfFile::open(&library).expect("an ELF file");
    for (name, cost) in [
        ("place_push", gpuscope::elf::Cost::Emulated),
        ("place_nop", gpuscope::elf::Cost::Nop5),
        ("place_stepped", gpuscope::elf::Cost::SingleStepped),
    ] {
        let symbol = elf.symbols_where(&|known| known == name).expect("symbols");
        let site = gpuscope::elf::probe_site(&elf, symbol[0].file_offset).expect("a site");
        assert_eq!(site.cost, cost, "{name}");
    }
}
