//! The thread that gathers stands still: others say so, and a signal ends the process.

use super::exporter::Exporter;
use super::support::eventually;
use std::ptr;

/// No probes: what stands still is a thread, whatever it has attached.
const OPTIONS: [&str; 4] = ["--collect", "nvml,self", "--health-listen", "127.0.0.1:0"];

/// Holds the main thread of `pid` where it is, as a read that never ends would, until the process ends.
fn freeze(pid: u32) {
    let pid = pid as i32;
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: holds a child of ours, which nobody else traces
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, pid, nothing, nothing), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, pid, nothing, nothing), 0);
        assert_eq!(libc::waitpid(pid, ptr::null_mut(), libc::__WALL), pid);
    }
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: plain numbers, of a child of ours
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// `HOST:PORT` where health alone is told.
fn health_address(exporter: &Exporter) -> String {
    let mut address = None;
    eventually("health alone at http://…/", || {
        address = exporter.said_to_be_at("health alone at");
        address.is_some()
    });
    address.expect("an address")
}

fn health(address: &str) -> Result<String, ureq::Error> {
    super::exporter::get(&format!("http://{address}/healthz"), "*/*")
}

#[test]
#[ignore = "needs root"]
fn health_fails_while_the_main_thread_stands_still_and_sigterm_ends_it() {
    let mut exporter = Exporter::start(&OPTIONS);
    let address = health_address(&exporter);
    eventually("health", || health(&address).is_ok());
    assert!(exporter.scrape("*/*").contains("gpuscope_build_info"));
    freeze(exporter.pid());
    eventually("health that fails", || {
        matches!(health(&address), Err(ureq::Error::StatusCode(503)))
    });
    eventually("a word of it", || {
        exporter
            .stderr()
            .contains("gpuscope: the thread that gathers has stood still for ")
    });
    assert!(
        exporter.scrape("*/*").contains("gpuscope_build_info"),
        "the last values"
    );
    signal(exporter.pid(), libc::SIGTERM);
    let status = exporter.ended();
    let said = exporter.stderr();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains("gpuscope: asked to end, and the thread that gathers has stood still"),
        "{said}"
    );
}

#[test]
#[ignore = "needs root"]
fn a_second_signal_ends_it_at_once() {
    let mut exporter = Exporter::start(&OPTIONS);
    freeze(exporter.pid());
    // two that wait for one taker are one
    signal(exporter.pid(), libc::SIGINT);
    signal(exporter.pid(), libc::SIGTERM);
    let status = exporter.ended();
    assert!(matches!(status.code(), Some(130 | 143)), "{status}");
}

#[test]
#[ignore = "needs root"]
fn who_is_well_ends_well() {
    let mut exporter = Exporter::start(&OPTIONS);
    signal(exporter.pid(), libc::SIGTERM);
    let status = exporter.ended();
    assert!(status.success(), "{status}: {}", exporter.stderr());
}
