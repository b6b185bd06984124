//! The unit of systemd.

use super::{read, run, succeeded};
use std::process::Command;

const UNIT: &str = "deploy/systemd/gpuscope.service";
/// What the manual asks for; more exposed than this it must not become.
const WORST_EXPOSURE: f64 = 3.0;

/// The unit with a program that is there, in a folder of its own.
fn unit() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = read(UNIT).replace("/usr/bin/gpuscope", env!("CARGO_BIN_EXE_gpuscope"));
    std::fs::write(folder.path().join("gpuscope.service"), text).expect("a unit");
    folder
}

fn setting(name: &str) -> String {
    let text = read(UNIT);
    let lines = text.lines().filter_map(|line| line.strip_prefix(&format!("{name}=")));
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn it_can_do_no_more_than_it_needs() {
    let needed = "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_LEASE CAP_SYSLOG";
    assert_eq!(setting("CapabilityBoundingSet"), needed);
    assert_eq!(setting("AmbientCapabilities"), needed);
    assert_eq!(
        (setting("NoNewPrivileges"), setting("DynamicUser")),
        ("yes".into(), "yes".into())
    );
}

#[test]
#[ignore = "needs systemd-analyze"]
fn systemd_accepts_it() {
    let folder = unit();
    let path = folder.path().join("gpuscope.service");
    let said = succeeded(&run(Command::new("systemd-analyze").arg("verify").arg(path)));
    assert!(said.is_empty(), "{said}");
}

#[test]
#[ignore = "needs systemd-analyze"]
fn systemd_finds_it_little_exposed() {
    let folder = unit();
    let path = folder.path().join("gpuscope.service");
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=true", "--no-pager"]).arg(path);
    let said = succeeded(&run(&mut command));
    let (_, after) = said
        .split_once("Overall exposure level for gpuscope.service: ")
        .expect("a level");
    let level: f64 = after.split(' ').next().unwrap_or_default().parse().expect("a number");
    assert!(level <= WORST_EXPOSURE, "{said}");
}
