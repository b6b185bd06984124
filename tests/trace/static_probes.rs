//! Static probes of libraries, described by rows of a hook file: PyTorch's allocator and every kind of argument.

use crate::support::{Gpuscope, Program, TIERS, Trace, compile, compile_as, kernel_version, number, ways};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

const MARKED: &str = r#"
[[library]]
name = "marked"
match = "libmarked.so*"

[[struct]]
name = "pair"
size = 8
fields = ["low: u32 @0", "high: u32 @4"]

[[function]]
library = "marked"
probe = "marked:places"
args = ["a: u64", "b: i8", "c: u16", "d: i64", "e: ptr", "f: i64", "g: u32", "h: u32", "i: i64", "j: size", "k: u8",
    "l: i8"]
bytes = "k*j"

[[function]]
library = "marked"
probe = "marked:pointers"
args = ["text: cstr", "pair: *struct:pair (in)", "gone: u32", "far: ptr"]

[[function]]
library = "marked"
probe = "marked:red_zone"
args = ["saved: i64", "value: i64"]

[[function]]
library = "marked"
probe = "marked:many_*"
args = ["which: i32"]

[[function]]
library = "marked"
probe = "marked:long_nop"
args = []

[[function]]
library = "marked"
probe = "marked:symbolic"
args = ["word: u64"]

[[function]]
library = "marked"
probe = "marked:short"
args = ["one: u64", "two: u64"]

[[function]]
library = "marked"
probe = "marked:nowhere"
args = []

[[function]]
library = "marked"
probe = "marked:absent"
args = []

[[function]]
library = "marked"
symbol = "marked_*"
returns = "void"
args = []
"#;

fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(built).path()
}

/// The libraries and programs in a folder of their own.
fn built() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("static_probe.h"), include_str!("../support/static_probe.h")).expect("a file");
    std::fs::write(path.join("marked.toml"), MARKED).expect("a file");
    let shared = ["-shared", "-fPIC"];
    compile(path, "libmarked.so", include_str!("../support/marked.c"), &shared);
    let tensors = include_str!("../support/tensors.cpp");
    let flags = ["-shared", "-fPIC", "-lstdc++"];
    compile_as("c++", path, "libc10_cuda.so", tensors, &flags);
    let with = |library: &str| path.join(library).to_str().expect("UTF-8").to_owned();
    let flags = [&with("libmarked.so"), "-Wl,-rpath,$ORIGIN"];
    compile(path, "marked_user", include_str!("../support/marked_user.c"), &flags);
    let user = include_str!("../support/tensor_user.cpp");
    let flags = [&with("libc10_cuda.so"), "-Wl,-rpath,$ORIGIN", "-lstdc++"];
    compile_as("c++", path, "tensor_user", user, &flags);
    folder
}

fn text_of(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("UTF-8")
}

fn file(name: &str) -> String {
    text_of(folder().join(name))
}

/// The hook file that gpuscope ships.
fn pytorch_hooks() -> String {
    text_of(Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/pytorch.toml"))
}

/// Ways of hooking from outside.
fn tiers() -> impl Iterator<Item = &'static str> {
    let kernel = kernel_version();
    TIERS
        .iter()
        .filter(move |tier| kernel >= tier.since)
        .map(|tier| tier.name)
}

fn functions(library: &Path, hooks: &str) -> Vec<Value> {
    let library = library.to_str().expect("UTF-8");
    let listed = Gpuscope::new(["functions", "--json", "--hooks", hooks, "--lib", library])
        .finish()
        .ok();
    listed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|line: &Value| !line["static_probe"].is_null())
        .collect()
}

#[test]
fn probes_of_a_file_are_listed_with_their_arguments_and_why_one_is_refused() {
    let listed = functions(&folder().join("libmarked.so"), &file("marked.toml"));
    let refused = |name: &str| {
        let line = listed.iter().find(|line| line["name"] == name).expect(name);
        line["refused"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(refused("marked:places"), "");
    for (name, why) in [
        ("marked:long_nop", "five-byte nop"),
        ("marked:symbolic", "lies at 8@words+4(%rip)"),
        ("marked:short", "1 of the 2 arguments"),
        ("marked:nowhere", "semaphore"),
    ] {
        assert!(refused(name).contains(why), "{name}: {:?}", refused(name));
    }
}

fn marked(tier: &str) -> Trace {
    let (hooks, user) = (file("marked.toml"), file("marked_user"));
    let trace = Gpuscope::run(&["--hooks", &hooks, "--ring-size", "64MiB"], &[&user]);
    let trace = trace.tier(tier).finish().ok();
    assert_eq!(trace.stdout, "0 wrong\n", "{tier}: live stack was changed");
    trace
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn arguments_are_read_from_registers_memory_and_constants_with_their_sign() {
    for tier in ways() {
        let trace = marked(tier);
        let call = trace.calls_of("marked:places").next().expect("a call");
        let expected = json!({"a": 0x1122_3344_5566_7788_u64, "b": -5, "c": 0xfff6, "d": -7, "e": "0x8000000000000001",
            "f": -9, "g": 4_000_000_000_u32, "h": 2, "i": -3, "j": 0x7000, "k": 0xff, "l": -56});
        assert_eq!(call["args"], expected, "{tier}");
        assert_eq!(number(call, "size"), 0xff * 0x7000, "{tier}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_arguments_point_to_is_read_and_unreadable_memory_is_no_number() {
    for engine in ways().into_iter().take(1) {
        let trace = marked(engine);
        let call = trace.calls_of("marked:pointers").next().expect("a call");
        assert_eq!(
            call["args"],
            json!({}),
            "{engine}: the last argument lies at address 16"
        );
        let counts: Vec<&Value> = trace
            .calls_of("marked:many_one")
            .map(|call| &call["args"]["which"])
            .collect();
        assert_eq!(counts, [&json!(1)], "{engine}: a glob's probe");
    }
}

#[test]
#[ignore = "needs root and BPF: from inside, a function and a probe at its beginning are not both hooked"]
fn every_pass_is_counted_and_a_function_beside_a_probe_too() {
    for tier in tiers() {
        let trace = marked(tier);
        let count = |name: &str| {
            let calls = trace.totals("calls");
            calls.get(&("marked".to_owned(), name.to_owned())).copied().unwrap_or(0)
        };
        assert_eq!(
            (count("marked:red_zone"), count("marked_red_zone")),
            (3000, 3000),
            "{tier}"
        );
        assert_eq!(
            (count("marked:long_nop"), count("marked_long_nop")),
            (0, 3000),
            "{tier}"
        );
        let right = |(index, call): (usize, &Value)| {
            call["args"] == json!({"saved": index, "value": index}) && call["ret"].is_null()
        };
        assert!(trace.calls_of("marked:red_zone").enumerate().all(right), "{tier}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn probes_that_cannot_be_hooked_are_named() {
    let unseen = marked(ways()[0]).unseen();
    for (name, why) in [
        ("marked:long_nop", "five-byte nop"),
        ("marked:symbolic", "cannot be read from outside"),
        ("marked:short", "1 of the 2 arguments"),
        ("marked:nowhere", "semaphore"),
        ("marked:absent", "has no static probe"),
    ] {
        let named = |line: &String| line.contains(name) && line.contains(why);
        assert!(unseen.iter().any(named), "{name} {why:?} is not in {unseen:?}");
    }
}

/// The function around the probe is not hooked: both lie within the bytes that either has to move.
#[test]
#[ignore = "needs the simulated CUDA"]
fn from_inside_what_lies_below_the_stack_pointer_stays_and_every_pass_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let hooks = folder.path().join("hooks.toml");
    let (probes, _) = MARKED
        .split_once("[[function]]\nlibrary = \"marked\"\nsymbol")
        .expect("rows");
    std::fs::write(&hooks, probes).expect("a file");
    let options = ["--hooks", &text_of(hooks), "--ring-size", "64MiB"];
    let trace = Gpuscope::run(&options, &[&file("marked_user")])
        .tier("inside")
        .finish()
        .ok();
    assert_eq!(trace.stdout, "0 wrong\n", "live stack was changed");
    let calls: Vec<&Value> = trace.calls_of("marked:red_zone").collect();
    assert_eq!(calls.len(), 3000);
    let right = |(index, call): (usize, &&Value)| call["args"] == json!({"saved": index, "value": index});
    assert!(calls.iter().enumerate().all(right), "{:?}", calls.first());
    let unseen = trace.unseen();
    let named = |name: &str| {
        unseen
            .iter()
            .any(|line| line.contains(name) && line.contains("shorter"))
    };
    assert!(named("marked:many_one") && named("marked:many_two"), "{unseen:?}");
}

/// Address and bytes of what is handed out and not freed, as the calls say, in the order in which they happened.
fn held(trace: &Trace) -> (u64, u64) {
    let mut calls: Vec<&Value> = trace.calls().collect();
    calls.sort_by(|a, b| a["ts"].as_f64().partial_cmp(&b["ts"].as_f64()).expect("numbers"));
    let (mut held, mut unknown) = (BTreeMap::new(), 0);
    for call in calls {
        let address = call["args"]["address"].as_str().expect("an address").to_owned();
        match call["name"].as_str() {
            Some("pytorch:malloc") => {
                let taken = held.insert(address, number(call, "size"));
                assert_eq!(taken, None, "handed out twice: {call}");
            }
            _ => unknown += u64::from(held.remove(&address).is_none()),
        }
    }
    (held.values().sum(), unknown)
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn tensors_balance_to_the_byte_and_failures_pass() {
    for tier in ways() {
        let (hooks, user) = (pytorch_hooks(), file("tensor_user"));
        let options = ["--hooks", &hooks, "--chatty", "--ring-size", "64MiB"];
        let trace = Gpuscope::run(&options, &[&user]).tier(tier).finish().ok();
        let book: Value = serde_json::from_str(&trace.stdout).expect("the program's book");
        let totals = |field: &str, name: &str| {
            let totals = trace.totals(field);
            totals
                .get(&("pytorch".to_owned(), name.to_owned()))
                .copied()
                .unwrap_or(0)
        };
        assert_eq!(totals("calls", "pytorch:malloc"), number(&book, "handed_out"), "{tier}");
        assert_eq!(totals("bytes", "pytorch:malloc"), number(&book, "bytes"), "{tier}");
        assert_eq!(totals("calls", "pytorch:free"), number(&book, "freed"), "{tier}");
        assert_eq!(held(&trace), (number(&book, "held_bytes"), 0), "{tier}");
        assert!(number(&book, "failed") > 0, "exceptions passed through");
        let devices = |device: i64| json!({"device": device, "stream": -1 - device});
        assert!(
            trace.calls_of("pytorch:malloc").all(|call| {
                let args = &call["args"];
                (-1..3).any(|device| json!({"device": args["device"], "stream": args["stream"]}) == devices(device))
            }),
            "{tier}"
        );
        assert!(trace.unseen().is_empty(), "{tier}: {:?}", trace.unseen());
    }
}

/// The program's own counters are up exactly while gpuscope is attached, however it ends.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn semaphores_are_raised_late_and_lowered_at_the_end() {
    // whoever probes the file of another test raises the counters of all who map it
    let own = built();
    for tier in tiers() {
        for signal in [libc::SIGINT, libc::SIGKILL] {
            let program = Program::start(Command::new(own.path().join("tensor_user")).arg("wait"));
            let (hooks, pid) = (pytorch_hooks(), program.pid().to_string());
            let options = ["--hooks", &hooks, "--chatty", "-p", &pid];
            let tracer = Gpuscope::trace(&options).tier(tier).start().until_attached();
            tracer.until_written("pytorch:free");
            tracer.signal(signal);
            let ended = program.finish();
            let book: Value = serde_json::from_str(&ended.stdout).expect("the program's book");
            assert!(ended.status.success(), "{tier}");
            assert_eq!(number(&book, "before"), 0, "{tier}: skipped while nobody looks");
            assert_eq!(number(&book, "during"), 3, "{tier}: one place of malloc, two of free");
        }
    }
}
