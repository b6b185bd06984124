//! What is left out is left out exactly, and said where it matters.

use crate::support::{self, Counts, Gpuscope, Program, Trace, assert_same, sim, sim_text, text};
use gpuscope::catalog::{Catalog, Row};
use gpuscope::filter::Filter;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

fn traced(options: &[&str], scenario: &[&str]) -> Trace {
    let gpusim = sim_text("gpusim");
    Gpuscope::run(options, &[&[gpusim.as_str()], scenario].concat())
        .finish()
        .ok()
}

/// Both the totals and the events are those of the ledger for which `keep` holds.
fn assert_only(trace: &Trace, keep: impl Fn(&str, &str) -> bool) {
    let expected = trace.ledger.visible_where(keep);
    assert!(!expected.is_empty(), "nothing is left: this test tests nothing");
    assert_same("totals", &expected, &trace.totals("calls"));
    assert_same("events", &expected, &trace.written());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_glob_selects_names() {
    let trace = traced(&["--filter", "cudaMemcpy*"], &["kinds"]);
    assert_only(&trace, |_, name| name.starts_with("cudaMemcpy"));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_glob_selects_documented_names() {
    let trace = traced(&["--filter", "cuMemAlloc", "--filter", "cuMemFree"], &["churn", "3"]);
    assert_only(&trace, |_, name| ["cuMemAlloc_v2", "cuMemFree_v2"].contains(&name));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn an_exclusion_wins() {
    let options = [
        "--chatty",
        "--filter",
        "!cuda*Launch*",
        "--filter",
        "!cuGetProcAddress*",
        "--filter",
        "!__*",
    ];
    let trace = traced(&options, &["train", "2"]);
    let excluded = |name: &str| {
        let launch = name.starts_with("cuda") && name.contains("Launch");
        launch || name.starts_with("cuGetProcAddress") || name.starts_with("__")
    };
    assert_only(&trace, |_, name| !excluded(name));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_class_selects_its_functions() {
    let trace = traced(
        &["--filter", "@copy", "--filter", "@launch", "--filter", "!cudaMemcpy2D"],
        &["kinds"],
    );
    let categories: BTreeSet<String> = trace.calls().map(|call| text(call, "category")).collect();
    assert_eq!(
        categories,
        BTreeSet::from(["copy".to_owned()]),
        "this program launches nothing"
    );
    assert_only(&trace, |_, name| name.contains("Memcpy") && name != "cudaMemcpy2D");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_layer_selects_its_library() {
    let trace = traced(&["--chatty", "--layer", "driver"], &["train", "2"]);
    assert_only(&trace, |layer, _| layer == "driver");
    assert!(
        trace.calls().all(|call| call["depth"] == 0),
        "nobody above it is traced"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn only_failed_calls_are_shown_and_all_are_counted() {
    let trace = traced(&["--errors"], &["errors", "2"]);
    assert_same("totals", &trace.ledger.visible(), &trace.totals("calls"));
    let mut failed = Counts::new();
    for ((name, _), count) in &trace.ledger.errors {
        let layer = if name.starts_with("cuda") { "runtime" } else { "driver" };
        *failed.entry((layer.to_owned(), name.clone())).or_default() += count;
    }
    assert_same("events", &failed, &trace.written());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn only_long_calls_are_shown_and_all_are_counted() {
    let gpusim = sim_text("gpusim");
    let options = ["--min-duration", "15ms"];
    let running = Gpuscope::run(&options, &[&gpusim, "sync-stall", "5"]).env("GPUSIM_KERNEL_US", "20000");
    let trace = running.finish().ok();
    assert_same("totals", &trace.ledger.visible(), &trace.totals("calls"));
    let syncs = trace.calls_of("cudaDeviceSynchronize").count();
    assert_eq!(syncs, 5, "each of them waits 20 ms for the kernel");
    assert!(
        trace
            .calls()
            .all(|call| call["duration_us"].as_f64().expect("a time") >= 15_000.0)
    );
}

/// Two programs, of which one is selected; the processes of its events are its own.
fn assert_selects(options: &[&str], script: &str, selected: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = [&["--chatty"], options].concat();
    let trace = Gpuscope::script(&options, script)
        .env("LEDGERS", folder.path())
        .finish()
        .ok();
    let ledgers = support::ledgers_of(folder.path());
    assert_eq!(ledgers.len(), 2, "{ledgers:?}");
    assert_same("totals", &ledgers[selected].visible(), &trace.totals("calls"));
    assert_same(
        "events",
        &ledgers[selected].visible(),
        &trace.written_by(&ledgers[selected].pids),
    );
    assert_eq!(
        trace.written(),
        trace.written_by(&ledgers[selected].pids),
        "of no other process"
    );
}

const TWO: &str = "mkdir $LEDGERS/one $LEDGERS/two; chmod 777 $LEDGERS $LEDGERS/*;
    GPUSIM_LEDGER=$LEDGERS/one/%p ONE; GPUSIM_LEDGER=$LEDGERS/two/%p TWO";

/// The script with both commands in their places.
fn two(one: &str, two: &str) -> String {
    TWO.replace("ONE", one).replace("TWO", two)
}

#[test]
#[ignore = "needs root and BPF: only it selects by cgroup, name or user"]
fn comm_selects_threads_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("othername");
    std::os::unix::fs::symlink(sim("gpusim"), &other).expect("a link");
    let train = |program: &str| format!("{program} train 2");
    let script = two(&train(&sim_text("gpusim")), &train(other.to_str().expect("UTF-8")));
    assert_selects(&["--comm", "othername"], &script, "two");
    assert_selects(&["--comm", "nobody", "--comm", "gpu*"], &script, "one");
}

#[test]
#[ignore = "needs root and BPF: only it selects by cgroup, name or user"]
fn uid_selects_users() {
    let train = format!("{} train 2", sim_text("gpusim"));
    let script = two(&train, &format!("setpriv --reuid 54321 --clear-groups {train}"));
    assert_selects(&["--uid", "54321"], &script, "two");
    assert_selects(&["--uid", "0"], &script, "one");
}

/// Where the second version of cgroups is mounted; on hybrid machines beside the first.
fn cgroup_root() -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = fields
        .find(|fields| fields[2] == "cgroup2")
        .expect("cgroup v2 is mounted");
    PathBuf::from(mount[1])
}

struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
#[ignore = "needs root and BPF: only it selects by cgroup, name or user"]
fn cgroup_selects_its_processes() {
    let name = format!("gpuscope-test-{}", std::process::id());
    let cgroup = Cgroup(cgroup_root().join(name));
    std::fs::create_dir(&cgroup.0).expect("a cgroup");
    let path = cgroup.0.to_str().expect("UTF-8");
    let train = format!("{} train 2", sim_text("gpusim"));
    let inside = format!("sh -c 'echo $$ >{path}/cgroup.procs; exec {train}'");
    assert_selects(&["--cgroup", path], &two(&train, &inside), "two");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn chatty_getters_are_counted_and_the_output_says_that_they_are_not_shown() {
    let trace = traced(&[], &["train", "2"]);
    assert_same("totals", &trace.ledger.visible(), &trace.totals("calls"));
    let hidden = trace.summary()["counted_only"].as_array().expect("counted only");
    let hidden: BTreeSet<&str> = hidden.iter().filter_map(|name| name.as_str()).collect();
    assert!(hidden.contains("cudaGetDevice"), "{hidden:?}");
    assert_same(
        "events",
        &trace.ledger.visible_where(|_, name| !hidden.contains(name)),
        &trace.written(),
    );
    let said = trace
        .stderr
        .lines()
        .find(|line| line.starts_with("counted but not listed as lines: "));
    let said = said.expect("it is said");
    assert!(
        hidden.iter().all(|name| said.contains(name)) && said.contains("--chatty"),
        "{said}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_chatty_getter_is_shown_when_it_is_asked_for() {
    let trace = traced(&["--filter", "cudaGetDevice"], &["train", "2"]);
    assert_only(&trace, |_, name| name == "cudaGetDevice");
    assert_eq!(trace.summary()["counted_only"], serde_json::json!([]));
}

/// A process that is not among those asked for is not traced, though it maps the same library.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn only_the_process_asked_for_and_its_children_are_traced() {
    let mut asked = Program::held_sim(&["fork"]);
    let other = Program::start(Command::new(sim("gpusim")).args(["train", "0"]));
    let pid = asked.pid().to_string();
    let running = Gpuscope::trace(&["-p", &pid, "--chatty", "--ring-size", "64MiB"])
        .start()
        .until_attached();
    asked.go();
    let ended = asked.finish();
    let trace = running.finish().ok();
    assert_same("totals", &ended.ledger.visible(), &trace.totals("calls"));
    assert_same("events", &ended.ledger.visible(), &trace.written_by(&ended.ledger.pids));
    drop(other);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn getters_are_left_out_unless_asked_for() {
    let catalog = Catalog::builtin().expect("the catalogue");
    let filter = Filter::parse(&[], &["all".to_owned()])
        .expect("a filter")
        .without_queries();
    let is_hooked = |layer: &str, name: &str| {
        let library = |row: &Row| {
            catalog
                .library_with(row.library)
                .is_some_and(|library| library.name == layer)
        };
        let row = catalog.rows.iter().find(|row| row.symbol == name && library(row));
        row.is_some_and(|row| filter.selects(&catalog, row))
    };
    let trace = traced(&["--no-getters"], &["train", "100"]);
    let expected = trace.ledger.visible_where(is_hooked);
    assert!(expected.keys().all(|(_, name)| name != "cudaGetDevice"), "{expected:?}");
    assert_same("totals", &expected, &trace.totals("calls"));
    let told = trace.unseen().into_iter().any(|gap| gap.contains("hint: --getters"));
    assert!(told, "{:?}", trace.unseen());
}
