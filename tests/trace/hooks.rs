//! A row in a file of one's own adds a function of any library, without a word about it in gpuscope.

use crate::support::{self, Gpuscope, Trace, assert_same, compile, is_inside, number, ways};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

const HOOKS: &str = r#"
[[enum]]
name = "mine_status"
values = ["0=MINE_OK", "7=MINE_BROKEN"]

[[struct]]
name = "mine_box"
size = 24
fields = ["width: u32 @0", "height: u32 @4", "place.x: i16 @16", "place.kind: u8 @20"]

[[library]]
name = "mine"
match = "libmine.so*"
errors = "mine_status"

[[function]]
library = "mine"
symbol = "mine_eight"
args = ["name: cstr", "a: u32", "b: i64", "p: ptr", "size: size", "small: u8", "second: cstr", "last: i32"]
bytes = "size"
class = "copy"
direction = "HtoD"
returns = "i32"

[[function]]
library = "mine"
symbol = "mine_fill"
class = "memset"
args = ["box: *struct:mine_box (in)", "result: *u64 (out)"]

[[function]]
library = "mine"
symbol = "mine_scale"
args = ["x: f64 (unreadable)", "n: u32"]
returns = "void"

[[function]]
library = "mine"
symbol = "mine_get_*"
class = "query"
args = ["value: i64"]
returns = "i32"

[[function]]
library = "mine"
symbol = "mine_red_zone"
args = ["value: i64"]
returns = "i32"

[[function]]
library = "mine"
symbol = "mine_wait"
args = []
returns = "void"

[[function]]
library = "mine"
symbol = "mine_data"

[[function]]
library = "mine"
symbol = "mine_undecodable"

[[function]]
library = "mine"
symbol = "mine_absent"

[[function]]
library = "mine"
symbol = "yours_*"
"#;

/// The library, its user and the hook file, compiled once.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::write(path.join("mine.h"), include_str!("../support/mine.h")).expect("a file");
        std::fs::write(path.join("hooks.toml"), HOOKS).expect("a file");
        compile(
            path,
            "libmine.so.1",
            include_str!("../support/mine.c"),
            &["-shared", "-fPIC", "-fno-ipa-icf"],
        );
        let library = path.join("libmine.so.1");
        let flags = [library.to_str().expect("UTF-8"), "-Wl,-rpath,$ORIGIN"];
        compile(path, "mine_user", include_str!("../support/mine_user.c"), &flags);
        folder
    });
    folder.path()
}

fn file(name: &str) -> PathBuf {
    folder().join(name)
}

fn text_of(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn trace() -> &'static Trace {
    static TRACE: OnceLock<Trace> = OnceLock::new();
    TRACE.get_or_init(|| {
        let (hooks, user) = (text_of(&file("hooks.toml")), text_of(&file("mine_user")));
        // which system calls a confined child may make is docs/inside.md's business
        let command = [user.as_str(), "unconfined"];
        let command = &command[..if is_inside() { 2 } else { 1 }];
        Gpuscope::run(&["--hooks", &hooks, "--ring-size", "64MiB"], command)
            .finish()
            .ok()
    })
}

/// The arguments of each call of a function, in order.
fn arguments(name: &'static str) -> Vec<&'static Value> {
    trace().calls_of(name).map(|call| &call["args"]).collect()
}

/// Threads, signals, seccomp, vfork and cancellation: results are right (its exit status) and counts are exact.
#[test]
#[ignore = "needs the simulated CUDA"]
fn every_call_is_counted_under_threads_signals_and_confinement() {
    let said: BTreeMap<String, u64> = serde_json::from_str(&trace().stdout).expect("the program's counts");
    let name = |key: (String, String)| key.1.replace("mine_get_alias", "mine_get_two");
    let entered = trace()
        .entered()
        .into_iter()
        .map(|(key, count)| (name(key), count))
        .collect();
    assert_same("calls", &said, &entered);
    let mut events = BTreeMap::new();
    for (key, count) in trace().written().into_iter().chain(trace().totals("lost")) {
        *events.entry(name(key)).or_default() += count;
    }
    let mut returned = said;
    returned.remove("mine_wait");
    assert_same("events, written or lost", &returned, &events);
    let unfinished = trace().totals("unfinished");
    assert_eq!(
        unfinished,
        [(("mine".to_owned(), "mine_wait".to_owned()), 1)].into(),
        "it was cancelled"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn eight_arguments_are_read_with_texts_and_stack() {
    let calls = arguments("mine_eight");
    let expected = json!({"name": "first \u{1b}[31m", "a": 7, "b": -9, "p": calls[0]["p"], "size": 4096, "small": 255,
        "second": "second", "last": -1});
    assert_eq!(*calls[0], expected);
    assert!(
        calls[0]["p"]
            .as_str()
            .is_some_and(|address| address.starts_with("0x7f")),
        "{}",
        calls[0]
    );
    assert_eq!(calls[1]["name"], "0x0", "a null pointer");
    assert_eq!(calls[1]["second"], Value::Null, "an address that nothing is mapped at");
    let first = trace().calls_of("mine_eight").next().expect("a call");
    assert_eq!(
        (number(first, "size"), &first["direction"], &first["category"]),
        (4096, &json!("HtoD"), &json!("copy"))
    );
    assert_eq!((&first["layer"], &first["ret"]), (&json!("mine"), &json!(4351)));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn fields_behind_a_pointer_are_read() {
    let calls: Vec<&Value> = trace().calls_of("mine_fill").collect();
    let expected = json!({"width": 640, "height": 480, "place.x": -3, "place.kind": 200});
    assert_eq!(calls[0]["args"]["box"], expected);
    assert_eq!(calls[0]["args"]["result"], 640 * 480, "read at return");
    assert_eq!(
        (&calls[0]["error"], &calls[1]["error"]),
        (&json!("MINE_OK"), &json!("MINE_BROKEN"))
    );
    assert_eq!(calls[1]["args"]["box"], "0x0", "a null pointer");
    assert_eq!(trace().failures(), [(("mine_fill".to_owned(), 7), 1)].into());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_glob_names_each_function_and_counts_an_alias_once() {
    let calls = trace().totals("calls");
    let names: Vec<&str> = calls
        .keys()
        .map(|(_, name)| name.as_str())
        .filter(|name| name.contains("get"))
        .collect();
    assert!(
        names == ["mine_get_one", "mine_get_two"] || names == ["mine_get_alias", "mine_get_one"],
        "{names:?}"
    );
    assert_eq!(arguments("mine_get_one").last(), Some(&&json!({"value": 1})));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_cannot_be_hooked_is_named_and_the_rest_is_traced() {
    let unseen = trace().unseen();
    for (name, why) in [
        ("mine_data", "has no function"),
        ("mine_undecodable", "no instruction"),
        ("mine_absent", "has no function"),
        ("yours_*", "has no function"),
    ] {
        let named = |line: &String| line.contains(name) && line.contains(why);
        assert!(unseen.iter().any(named), "{name} {why:?} is not in {unseen:?}");
    }
}

/// More than patterns may add.
const MANY: usize = 5000;
const ADDED: usize = 4096;

const MANY_HOOKS: &str = r#"
[[library]]
name = "many"
match = "libmany.so*"

[[function]]
library = "many"
symbol = "many_*"
returns = "i32"

[[function]]
library = "many"
symbol = "versioned"
returns = "i32"
"#;

/// A library of so many functions, and its user, which calls the first and both versions of another one.
fn compile_many() -> PathBuf {
    let functions = (0..MANY).map(|number| format!("int many_{number}(void) {{ return {number}; }}\n"));
    let versions = r#"
        int versioned_old(void) { return 1; }
        int versioned_new(void) { return 2; }
        __asm__(".symver versioned_old,versioned@OLD\n.symver versioned_new,versioned@@NEW");"#;
    std::fs::write(file("many.map"), "OLD {}; NEW {} OLD;").expect("a file");
    let script = format!("-Wl,--version-script={}", text_of(&file("many.map")));
    let source = functions.chain([versions.to_owned()]).collect::<String>();
    compile(folder(), "libmany.so.1", &source, &["-shared", "-fPIC", &script]);
    let user = r#"
        int versioned(void), old(void), many_0(void);
        __asm__(".symver old,versioned@OLD");
        int main(void) { return many_0() + 10 * old() + versioned(); }"#;
    let library = text_of(&file("libmany.so.1"));
    compile(folder(), "many_user", user, &[&library, "-Wl,-rpath,$ORIGIN"])
}

/// What a pattern matches has a limit, and what lies beyond it is said.
#[test]
#[ignore = "needs the simulated CUDA"]
fn beyond_what_patterns_may_add_functions_are_said_not_to_be_hooked() {
    let (user, hooks) = (compile_many(), file("many.toml"));
    std::fs::write(&hooks, MANY_HOOKS).expect("a file");
    let trace = Gpuscope::run(&["--hooks", &text_of(&hooks)], &[&text_of(&user)]).finish();
    assert_eq!(trace.code(), 12, "{}", trace.stderr);
    let beyond = format!(
        "{} functions are not hooked: patterns may add {ADDED} in all; hint: ",
        MANY - ADDED
    );
    let unseen = trace.unseen();
    assert!(unseen.iter().any(|line| line.contains(&beyond)), "{unseen:?}");
    // with both versions of one
    let attached = trace.summary()["attached"].to_string();
    assert!(
        attached.contains(&format!("libmany.so.1 ({} ", ADDED + 2)),
        "{attached}"
    );
    assert_eq!(trace.totals("calls")[&("many".to_owned(), "versioned".to_owned())], 2);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_double_is_refused_with_the_reason_unless_it_is_declared() {
    let calls = trace().calls_of("mine_scale").collect::<Vec<_>>();
    assert_eq!(
        (&calls[0]["args"]["x"], &calls[0]["args"]["n"]),
        (&Value::Null, &json!(4))
    );
    let hooks = file("doubles.toml");
    std::fs::write(&hooks, HOOKS.replace(" (unreadable)", "")).expect("a file");
    let user = text_of(&file("mine_user"));
    let refused = Gpuscope::run(&["--hooks", &text_of(&hooks)], &[&user]).finish();
    assert_eq!(refused.code(), 125);
    let line = HOOKS.lines().position(|line| line.contains("f64")).expect("a line") + 1;
    for part in [
        format!("doubles.toml:{line}: "),
        "xmm registers".into(),
        "x: f64 (unreadable)".into(),
    ] {
        assert!(refused.stderr.contains(&part), "{part}: {}", refused.stderr);
    }
    assert_eq!(refused.stdout, "", "the command did not run");
}

const THROWER: &str = r#"
[[library]]
name = "thrower"
match = "thrower"

[[function]]
library = "thrower"
symbol = "*thrown_through*"
args = ["value: i32"]
returns = "i32"

[[function]]
library = "thrower"
symbol = "c_calls_back"
args = ["back: fn", "value: i32"]
returns = "i32"
"#;

/// A C++ exception cannot pass a return probe: such functions are seen at entry, and that is said.
#[test]
#[ignore = "needs the simulated CUDA"]
fn exceptions_pass_through_what_is_hooked() {
    let hooks = file("thrower.toml");
    std::fs::write(&hooks, THROWER).expect("a file");
    let thrower = support::compile_as(
        "c++",
        folder(),
        "thrower",
        include_str!("../support/thrower.cpp"),
        &["-lstdc++"],
    );
    for way in ways() {
        let run = Gpuscope::run(&["--hooks", &text_of(&hooks)], &[&text_of(&thrower)]).tier(way);
        let trace = run.finish();
        assert_eq!(
            (trace.code(), trace.stdout.as_str()),
            (0, "caught 20\n"),
            "{way}: {}",
            trace.stderr
        );
        let counts: Vec<u64> = trace.totals("calls").into_values().collect();
        assert_eq!((counts, trace.calls().count()), (vec![20, 20], 40), "{way}");
        let said = trace
            .unseen()
            .iter()
            .filter(|line| line.contains("seen at entry only"))
            .count();
        assert_eq!(said, 1, "{:?}", trace.unseen());
    }
}
