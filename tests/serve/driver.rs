//! The collector of the kernel driver's calls beside programs that make none, and where the kernel offers no tracepoints.

use super::exporter::{Exporter, PLAIN};
use super::support::eventually;
use super::workload::Workloads;
use std::process::Command;

/// Ioctls that look like the driver's, on a device that is not: they are refused.
const OTHERS: &str = "import fcntl
with open('/dev/null') as null:
    for number in [0xc030462b, 0x30000001, 27] * 100:
        try:
            fcntl.ioctl(null, number, bytearray(48))
        except OSError:
            pass
";

fn assert_calls_are_counted(exporter: &Exporter, name: &str) {
    let workloads = Workloads::of(exporter);
    workloads.until_seen_whole(exporter);
    let ledger = workloads.run(name, "train 3").ledger;
    let calls = exporter.calls_of(&ledger) as f64;
    eventually("all calls of CUDA", || {
        exporter.sum("gpuscope_api_calls_total", &[&format!("comm=\"{name}\"")]) == Some(calls)
    });
}

#[test]
#[ignore = "needs root and BPF"]
fn ioctls_on_other_devices_are_nobodys_and_calls_of_cuda_stay_exact() {
    let exporter = Exporter::start(&["--collect", "api,getters,driver,self"]);
    let others = Command::new("python3").args(["-c", OTHERS]).status();
    assert!(others.expect("python3 starts").success());
    assert_calls_are_counted(&exporter, "d-train");
    let text = exporter.scrape(PLAIN);
    assert!(!text.contains("gpuscope_driver_calls_total{"), "{text}");
    assert!(!text.contains("comm=\"python3\""), "{text}");
    let lost = exporter.sum("gpuscope_lost_records_total", &["reason=\"driver_shares\""]);
    assert_eq!(lost, Some(0.0));
    assert!(!exporter.get("/", "*/*").contains("system calls cannot be traced"));
}

#[test]
#[ignore = "needs root and BPF"]
fn without_tracefs_all_else_is_measured_and_the_gap_is_named_with_its_cure() {
    let hide = "mount -t tmpfs tmpfs /sys/kernel/tracing && \
                { ! test -d /sys/kernel/debug || mount -t tmpfs tmpfs /sys/kernel/debug; } && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", hide, "sh"]);
    command.args([env!("CARGO_BIN_EXE_gpuscope"), "serve", "--collect", "api,driver,self"]);
    let exporter = Exporter::start_as(&mut command);
    assert_calls_are_counted(&exporter, "d-hidden");
    let page = exporter.get("/", "*/*");
    assert!(
        page.contains("system calls cannot be traced: tracefs is not mounted; hint: mount -t tracefs"),
        "{page}"
    );
    assert!(exporter.sum("gpuscope_coverage_gaps", &[]) >= Some(1.0));
    assert!(exporter.get("/readyz", "*/*").contains("ready"));
}
