//! With the rights that the unit of systemd and the DaemonSet give, and no others.

use super::exporter::Exporter;
use super::workload::Workloads;
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
    let bits = u64::from_str_radix(&status_of(exporter.pid(), "CapEff:"), 16).expect("bits");
    assert_eq!(bits.count_ones() as usize, capabilities().split(',').count());
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let ledger = workloads.run("rights", "train 5").ledger;
    let calls = exporter.calls_of(&ledger);
    super::support::eventually("all calls of a program of root", || {
        exporter.sum("gpuscope_api_calls_total", &["comm=\"rights\""]) == Some(calls as f64)
    });
    assert!(exporter.get("/readyz", "*/*").contains("ready"));
}
