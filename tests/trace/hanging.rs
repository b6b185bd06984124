//! A call that does not return is told of while it hangs, and at the end.

use crate::support::{self, Gpuscope, compile, number, text};
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;
use tempfile::TempDir;

const HOOKS: &str = r#"
[[library]]
name = "hanging"
match = "libhanging.so*"
[[function]]
library = "hanging"
symbol = "hang_ms"
class = "context"
args = ["ms: i32"]
returns = "i32"
[[function]]
library = "hanging"
symbol = "hang_not"
class = "context"
args = ["value: i32"]
returns = "i32"
[[function]]
library = "hanging"
symbol = "hang_around"
class = "context"
args = ["ms: i32"]
returns = "i32"
[[function]]
library = "hanging"
symbol = "spin_ms"
class = "context"
args = ["ms: i32"]
returns = "i32"
"#;

fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let library = compile(
            path,
            "libhanging.so.1",
            include_str!("../support/not_returning.c"),
            &["-shared", "-fPIC"],
        );
        let library = library.to_str().expect("UTF-8");
        let user = include_str!("../support/hanging_user.c");
        compile(path, "user", user, &[library, "-Wl,-rpath,$ORIGIN"]);
        let spinning = include_str!("../support/spinning_user.c");
        compile(path, "spinning", spinning, &[library, "-Wl,-rpath,$ORIGIN"]);
        let switching = include_str!("../support/switching_user.c");
        compile(path, "switching", switching, &[library, "-Wl,-rpath,$ORIGIN"]);
        std::fs::write(path.join("hooks.toml"), HOOKS).expect("a file");
        folder
    });
    folder.path()
}

fn file(name: &str) -> String {
    folder().join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_call_that_hangs_is_a_line_while_it_does() {
    let (hooks, user) = (file("hooks.toml"), file("user"));
    let run = Gpuscope::new(["run", "--hooks", &hooks, "--", &user, "600000"]).start();
    support::eventually("a line of the open call", || {
        run.stdout().contains("hang_ms(ms=600000) … has not returned after ")
    });
    assert!(
        run.stdout()
            .contains("hang_around(ms=600000) … has not returned after "),
        "{}",
        run.stdout()
    );
    assert!(!run.stdout().contains("hang_not(value=3) … "), "{}", run.stdout());
    // the innermost function whose frame is kept, as the C library keeps none, and who called it
    let told = run.stdout();
    let (_, below) = told.split_once("hang_ms(ms=600000) … ").expect("the line");
    assert!(below.contains("hang_around") && below.contains("main (user)"), "{told}");
    run.signal(libc::SIGTERM);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_call_that_never_leaves_its_cpu_says_where_it_is_all_the_same() {
    let (hooks, spinning) = (file("hooks.toml"), file("spinning"));
    let run = Gpuscope::new(["run", "--hooks", &hooks, "--", &spinning, "120000"]).start();
    support::eventually("a line of the open call, and where it is", || {
        let told = run.stdout();
        let below = told.split_once("spin_ms(ms=120000) … has not returned after ");
        below.is_some_and(|(_, below)| below.contains("turn (libhanging.so.1)") && below.contains("main (spinning)"))
    });
    run.signal(libc::SIGTERM);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn where_a_call_was_stays_known_when_its_process_is_killed() {
    let (hooks, spinning) = (file("hooks.toml"), file("spinning"));
    let place = tempfile::tempdir().expect("a folder");
    let number = place.path().join("pid");
    let script = format!("{spinning} 120000 & echo $! > {}; wait", number.display());
    let run = Gpuscope::script(&["--hooks", &hooks], &script).start();
    support::eventually("a line of the open call, and where it is", || {
        let lines = run.lines();
        let mut open = lines.lines().filter(|line| line.contains("\"type\":\"open\""));
        open.any(|line| line.contains("\"turn\""))
    });
    let number = std::fs::read_to_string(number).expect("a PID");
    let pid: i32 = number.trim().parse().expect("a number");
    // SAFETY: a signal to a process that the script awaits
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    let trace = run.finish();
    let open = &trace.summary()["open_calls"];
    let functions = functions_of(&open[0]["stack"]);
    let has = |name: &str| functions.iter().any(|function| function == name);
    assert!(open[0]["ended"] == true && has("turn") && has("main"), "{open:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn with_phases_each_call_begins_and_ends_by_time_even_if_it_hangs_in_between() {
    let (hooks, user) = (file("hooks.toml"), file("user"));
    let run = Gpuscope::run(&["--hooks", &hooks, "--phases"], &[&user, "3000"]).start();
    support::eventually("the entry of the open call", || {
        run.lines()
            .lines()
            .any(|line| line.contains("\"hang_ms\"") && line.contains("\"phase\":\"B\""))
    });
    let has_ended = |line: &str| line.contains("\"hang_ms\"") && line.contains("\"phase\":\"E\"");
    assert!(!run.lines().lines().any(has_ended), "it hangs still:\n{}", run.lines());
    let trace = run.finish().ok();
    let calls: Vec<&Value> = trace.calls().collect();
    let of = |phase: &str| {
        calls
            .iter()
            .filter(|call| call["phase"] == phase)
            .map(|call| number(call, "event_id"))
            .collect::<Vec<_>>()
    };
    let (mut entries, mut returns) = (of("B"), of("E"));
    assert_eq!(calls.len(), 2 * 23, "20 quick calls, and one around two");
    entries.sort_unstable();
    returns.sort_unstable();
    assert_eq!(entries, returns);
    let open = |name: &str, phase: &str| {
        let mut named = calls
            .iter()
            .filter(|call| text(call, "name") == name && call["phase"] == phase);
        *named.next().expect("the record")
    };
    let (begin, end) = (open("hang_ms", "B"), open("hang_ms", "E"));
    assert_eq!((number(&begin["args"], "ms"), number(end, "ret")), (3000, 3000));
    assert_eq!(begin["parent_id"], open("hang_around", "B")["event_id"]);
    assert!(functions_of(&begin["stack"]).contains(&"main".to_owned()), "{begin:#}");
    assert!(begin["duration_us"].is_null() && end["duration_us"].as_f64() >= Some(3e6));
    let lasts = end["ts"].as_f64().expect("a time") - begin["ts"].as_f64().expect("a time");
    assert!((lasts * 1e6 - end["duration_us"].as_f64().expect("a duration")).abs() < 0.01);
    let quick: Vec<f64> = calls
        .iter()
        .take(40)
        .map(|call| call["ts"].as_f64().expect("a time"))
        .collect();
    assert!(quick.is_sorted(), "{quick:?}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_summary_says_which_calls_have_not_returned_and_for_how_long() {
    let summary = summary_of_one_killed(&[], "3");
    let open = summary["open_calls"].as_array().expect("open calls");
    let names: Vec<String> = open.iter().map(|call| text(call, "name")).collect();
    assert_eq!(names, ["hang_around", "hang_ms"], "{summary:#}");
    for call in open {
        assert_eq!(call["ended"], true, "{call:#}");
        assert!(call["open_us"].as_f64() > Some(1e6), "{call:#}");
        let functions = functions_of(&call["stack"]);
        assert!(
            ["hang_around", "main"]
                .iter()
                .all(|name| functions.iter().any(|one| one == name)),
            "{call:#}"
        );
    }
}

/// From inside, what a process was in is read when it ends; elsewhere it is looked at each second.
#[test]
#[ignore = "needs the simulated CUDA"]
fn from_inside_a_call_is_known_to_have_been_open_however_soon_its_process_is_killed() {
    let summary = summary_of_one_killed(&["--engine", "inside"], "1.05");
    let open = summary["open_calls"].as_array().expect("open calls");
    let names: Vec<String> = open.iter().map(|call| text(call, "name")).collect();
    assert_eq!(names, ["hang_around", "hang_ms"], "{summary:#}");
    assert!(open.iter().all(|call| call["ended"] == true), "{summary:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_call_that_has_not_returned_by_the_end_is_in_a_recording_and_in_lines_and_one_that_has_is_not() {
    let (hooks, user) = (file("hooks.toml"), file("user"));
    let killed = |entered: &Path| {
        let entered = entered.join("entered");
        format!(
            "{user} 1500; ENTERED={0} {user} 600000 & until test -e {0}; do sleep 0.1; done; sleep 3; kill -9 $!; wait",
            entered.display()
        )
    };
    let places = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let [recorded, told] = places.each_ref().map(|place| killed(place.path()));
    let recorded = Gpuscope::record(&["--hooks", &hooks], &["sh", "-c", &recorded]).finish();
    let told = Gpuscope::script(&["--hooks", &hooks], &told).finish();
    for (trace, name) in [(recorded, "t.arrows"), (told, "lines.jsonl")] {
        let file = trace.folder().join(name);
        let report = Gpuscope::new(["report", "--json", file.to_str().expect("UTF-8")])
            .finish()
            .ok();
        let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
        let longest = report["unreturned"]["longest"].as_array().expect("calls");
        let names: Vec<String> = longest.iter().map(|call| text(call, "name")).collect();
        assert_eq!(names, ["hang_around", "hang_ms"], "{name}: {:#}", report["unreturned"]);
        assert_eq!(report["unreturned"]["count"], 2, "{name}");
        for call in longest {
            assert_eq!(call["args"]["ms"], 600_000, "{name}: {call:#}");
            assert!(call["ns"].as_u64() >= Some(2_000_000_000), "{name}: {call:#}");
        }
    }
}

/// The summary of a program that was killed so many seconds after it had entered a call.
fn summary_of_one_killed(options: &[&str], seconds: &str) -> Value {
    let (hooks, user) = (file("hooks.toml"), file("user"));
    let place = tempfile::tempdir().expect("a folder");
    let entered = place.path().join("entered");
    let script = format!(
        "ENTERED={0} {user} 600000 & until test -e {0}; do sleep 0.1; done; sleep {seconds}; kill -9 $!; wait",
        entered.display()
    );
    let options = [options, &["-q", "--summary", "json", "--hooks", &hooks]].concat();
    let trace = Gpuscope::script(&options, &script).finish();
    let summary = trace.stderr.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(summary.expect("a summary")).expect("JSON")
}

/// Names of the frames of a stack, innermost first.
fn functions_of(stack: &Value) -> Vec<String> {
    let frames = stack.as_array().expect("a stack").iter();
    frames.map(|frame| text(frame, "function")).collect()
}

#[test]
#[ignore = "needs root and BPF: from inside, the switches of a thread that ends are known to our last look at it"]
fn context_switches_are_those_of_threads_that_call_from_their_first_call_on() {
    let (hooks, switching) = (file("hooks.toml"), file("switching"));
    let trace = Gpuscope::run(&["--hooks", &hooks], &[&switching]).finish().ok();
    let told: u64 = trace.stdout.trim().parse().expect("a number");
    let switches = &trace.summary()["totals"]["context_switches"];
    assert_eq!(
        (number(switches, "threads"), number(switches, "unknown_threads")),
        (2, 0)
    );
    // the end of each thread comes after the program has looked
    let (seen, slack) = (number(switches, "voluntary"), 20);
    assert!(
        (100..).contains(&told) && (told..=told + slack).contains(&seen),
        "{told} told, {switches:#}"
    );
}
