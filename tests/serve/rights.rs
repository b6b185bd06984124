//! With the rights that the unit of systemd and the DaemonSet give, and no others.

use super::exporter::Exporter;
use super::workload::Workloads;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const UNIT: &str = include_str!("../../deploy/systemd/gpuscope.service");

/// `+bpf,+perfmon,…`, as setpriv wants them.
fn capabilities() -> String {
    let line = UNIT
        .lines()
        .find_map(|line| line.strip_prefix("AmbientCapabilities="))
        .expect("capabilities");
    let words = line.split(' ').map(|name| name.replace("CAP_", "+").to_lowercase());
    words.collect::<Vec<_>>().join(",")
}

/// A place that others than root can run gpuscope from.
fn open_copy() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(env!("CARGO_BIN_EXE_gpuscope"), folder.path().join("gpuscope")).expect("a copy");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("open to all");
    folder
}

/// As systemd starts it: a user who is nobody, these capabilities, no more to be had, and its own view of `/tmp` and `/home`.
fn confined(folder: &Path, capabilities: &str) -> Command {
    let hide = format!(
        "mkdir -p /run/gpuscope-test && mount --bind '{}' /run/gpuscope-test && mount -t tmpfs tmpfs /home && exec \"$@\"",
        folder.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", &hide, "sh"]);
    command.args([
        "setpriv",
        "--no-new-privs",
        "--reuid",
        "64000",
        "--regid",
        "64000",
        "--clear-groups",
    ]);
    for set in ["inh-caps", "ambient-caps", "bounding-set"] {
        command.arg(format!("--{set}=-all,{capabilities}"));
    }
    command.args(["/run/gpuscope-test/gpuscope", "serve"]);
    command
}

fn status_of(pid: u32, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.trim().to_owned()
}

#[test]
#[ignore = "needs root and BPF"]
fn the_units_capabilities_are_enough_to_see_programs_of_root() {
    let folder = open_copy();
    let exporter = Exporter::start_as(&mut confined(folder.path(), &capabilities()));
    assert_eq!(status_of(exporter.pid(), "NoNewPrivs:"), "1");
    assert!(status_of(exporter.pid(), "Uid:").starts_with("64000"));
    super::support::eventually("the main thread to give up what it has used", || {
        let bits = u64::from_str_radix(&status_of(exporter.pid(), "CapEff:"), 16).expect("bits");
        // the kernel's log is open by now
        bits.count_ones() as usize == capabilities().split(',').filter(|name| *name != "+syslog").count()
    });
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let ledger = workloads.run("rights", "train 5").ledger;
    let calls = exporter.calls_of(&ledger);
    super::support::eventually("all calls of a program of root", || {
        exporter.sum("gpuscope_api_calls_total", &["comm=\"rights\""]) == Some(calls as f64)
    });
    assert!(exporter.get("/readyz", "*/*").contains("ready"));
}

/// `NAME value` of each thread of a process, by the thread's name.
fn threads_of(pid: u32, field: &str) -> BTreeMap<String, String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let texts = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let value = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.expect("a field").trim().to_owned()
    };
    texts.map(|text| (value(&text, "Name:"), value(&text, field))).collect()
}

fn capabilities_of(bits: &str) -> u64 {
    u64::from_str_radix(bits, 16).expect("bits")
}

fn mask(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |mask, number| mask | 1 << number)
}

/// Of `linux/capability.h`.
const DAC_READ_SEARCH: u64 = 2;
const SYS_PTRACE: u64 = 19;
const LEASE: u64 = 28;
const PERFMON: u64 = 38;
const BPF: u64 = 39;
const CHECKPOINT_RESTORE: u64 = 40;

#[test]
#[ignore = "needs root and BPF"]
fn root_gives_up_what_it_does_not_need_and_the_web_server_everything() {
    let exporter = Exporter::start(&["--otlp", "http://127.0.0.1:9/v1/metrics"]);
    exporter.scrape("*/*");
    super::support::eventually("the main thread to give up", || {
        threads_of(exporter.pid(), "NoNewPrivs:")
            .get("gpuscope")
            .map(String::as_str)
            == Some("1")
    });
    let effective = threads_of(exporter.pid(), "CapEff:");
    let permitted = threads_of(exporter.pid(), "CapPrm:");
    for thread in ["http", "otlp", "signals"] {
        assert_eq!(capabilities_of(&permitted[thread]), 0, "{thread}");
        assert_eq!(
            threads_of(exporter.pid(), "CapBnd:")[thread],
            permitted[thread],
            "{thread}"
        );
    }
    assert_eq!(threads_of(exporter.pid(), "Seccomp:")["http"], "2");
    assert_eq!(capabilities_of(&permitted["web-config"]), mask(&[DAC_READ_SEARCH]));
    let kept = [DAC_READ_SEARCH, SYS_PTRACE, LEASE, PERFMON, BPF, CHECKPOINT_RESTORE];
    assert_eq!(capabilities_of(&effective["gpuscope"]), mask(&kept), "{effective:?}");
    // and yet it attaches to what comes
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let ledger = workloads.run("confined", "train 5").ledger;
    let calls = exporter.calls_of(&ledger);
    super::support::eventually("all calls", || {
        exporter.sum("gpuscope_api_calls_total", &["comm=\"confined\""]) == Some(calls as f64)
    });
}
