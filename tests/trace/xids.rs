//! Faults that the driver reports: out of a log that a test writes as the kernel would, and what nobody may forge.

use crate::support::{Gpuscope, Trace, number, sim_text, text};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A log of the kernel that already has a fault of before.
struct Log {
    folder: TempDir,
}

impl Log {
    fn new() -> Log {
        let folder = tempfile::tempdir().expect("a folder");
        let old = "3,7,1000,-;NVRM: Xid (PCI:0000:17:00): 13, pid=1, name=old, of before\n";
        std::fs::write(folder.path().join("kmsg"), old).expect("written");
        Log { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("kmsg")
    }
}

/// A run of a program that calls for a while, during which `records` are written; `PID` there is its number.
fn traced(options: &[&str], records: &[&str]) -> Trace {
    let log = Log::new();
    let path = log.path().display().to_string();
    let mut script = format!("{} hammer 100 2 & sleep 1\n", sim_text("gpusim"));
    for record in records {
        script += &format!("echo '{record}' | sed \"s/PID/$!/\" >> {path}\n");
    }
    let run = Gpuscope::script(options, &(script + "wait"));
    run.env("GPUSCOPE_KMSG", &path).finish().ok()
}

fn xids(trace: &Trace) -> Vec<&Value> {
    trace.of_type("xid").collect()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_fault_of_the_program_is_an_event_with_its_meaning_and_its_process() {
    let fault = "3,8,2000,-;NVRM: Xid (PCI:0000:17:00): 31, pid=PID, name=gpusim, Ch 00000008, intr 10000000";
    let trace = traced(&["--chatty"], &[fault]);
    let told = xids(&trace);
    assert_eq!(told.len(), 1, "{told:?}");
    let xid = told[0];
    let caller = trace.calls().next().expect("a call");
    assert_eq!(
        (number(xid, "pid"), text(xid, "comm")),
        (number(caller, "pid"), "gpusim".to_owned())
    );
    assert_eq!((number(xid, "code"), text(xid, "pci")), (31, "0000:17:00".to_owned()));
    assert_eq!(text(xid, "message"), "Ch 00000008, intr 10000000");
    assert_eq!(text(xid, "action_words"), "restart the application");
    assert_eq!(
        (&xid["traced"], text(xid, "source")),
        (&Value::Bool(true), "log".to_owned())
    );
    // it stands among the calls of its time
    let before = trace
        .calls()
        .filter(|call| call["ts"].as_f64() < xid["ts"].as_f64())
        .count();
    assert!(before > 0 && before < trace.calls().count(), "{before}");
    let summary = trace.summary()["xids"].as_array().expect("xids");
    assert_eq!((summary.len(), number(&summary[0], "count")), (1, 1));
    assert!(
        trace.stderr.contains("faults that the driver reported (Xid)"),
        "{}",
        trace.stderr
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_others_met_is_told_as_theirs() {
    let trace = traced(
        &[],
        &[
            "3,8,2000,-;NVRM: Xid (PCI:0000:65:00): 43, pid=999999, name=other, Ch 10",
            "3,9,2000,-;NVRM: Xid (PCI:0000:17:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus.",
            "4,10,2000,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32",
        ],
    );
    let told: Vec<(String, Option<u64>, bool)> = xids(&trace)
        .into_iter()
        .map(|xid| (text(xid, "name"), xid["pid"].as_u64(), xid["traced"] == true))
        .collect();
    let expected = [
        ("Xid 43", Some(999_999), false),
        ("Xid 79", None, false),
        ("SXid 12028", None, false),
    ];
    assert_eq!(told, expected.map(|(name, pid, traced)| (name.to_owned(), pid, traced)));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn nobody_but_the_kernel_is_believed_and_the_attempt_is_named() {
    let report = "NVRM: Xid (PCI:0000:17:00): 79, pid=1, name=x, forged";
    let records = [
        format!("12,8,2000,-;{report}"),
        format!("30,9,2000,-;journal: {report}"),
        format!("6,10,2000,-;a.out[1]: segfault at 0 ip 0 sp 0 error 4 in {report}"),
        "6,11,2000,-;NVRM: Xid (0): [77]: segfault at 0".to_owned(),
    ];
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let trace = traced(&[], &records);
    assert_eq!(xids(&trace), Vec::<&Value>::new());
    assert_eq!(trace.summary()["xids"].as_array().map(Vec::len), Some(0));
    let unseen = trace.unseen().join("\n");
    assert!(
        unseen.contains("look like Xids and are not the driver's: they do not count (3)"),
        "{unseen}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_log_that_ran_over_is_declared() {
    let trace = traced(&[], &["6,8,2000,-;x", "6,20,2000,-;y"]);
    let unseen = trace.unseen().join("\n");
    assert!(unseen.contains("overwritten before they were read (11)"), "{unseen}");
}

/// As root writes to the log of this machine: the kernel says that it was a program.
#[test]
#[ignore = "needs the simulated CUDA"]
fn a_report_that_root_writes_into_the_real_log_is_no_event() {
    let script = format!(
        "{} hammer 100 2 & sleep 1\nprintf '<3>NVRM: Xid (PCI:0000:17:00): 79, pid=%d, name=x, forged\\n' $! > /dev/kmsg\nwait",
        sim_text("gpusim")
    );
    let trace = Gpuscope::script(&[], &script).finish().ok();
    assert_eq!(xids(&trace), Vec::<&Value>::new());
    assert!(
        trace.unseen().join("\n").contains("look like Xids"),
        "{:?}",
        trace.unseen()
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_log_that_may_not_be_read_is_one_line_with_the_cure() {
    let missing = Gpuscope::script(&[], &format!("{} hammer 100 1", sim_text("gpusim")));
    let trace = missing.env("GPUSCOPE_KMSG", "/nowhere/kmsg").finish().ok();
    let said: Vec<String> = trace.unseen().into_iter().filter(|line| line.contains("Xid")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("failed to read /nowhere/kmsg") && said[0].contains("hint: "),
        "{said:?}"
    );
}

#[test]
fn doctor_lists_the_faults_of_this_boot() {
    let log = Log::new();
    append(
        &log.path(),
        "3,8,2000,-;NVRM: Xid (PCI:0000:17:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus.\n",
    );
    let doctor = Gpuscope::new(["doctor", "--json"]).env("GPUSCOPE_KMSG", log.path());
    let report: Value = serde_json::from_str(&doctor.finish().stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == "xids").expect("a check");
    let detail = text(check, "detail");
    assert!(
        detail.contains("2 in what the log still has: Xid 79 of GPU 0000:17:00"),
        "{detail}"
    );
    assert!(detail.contains("Xid 13 of GPU 0000:17:00, old 1"), "{detail}");
    assert_eq!(
        (text(check, "state"), text(check, "cure")),
        ("limited".to_owned(), "Xid 79: restart the machine".to_owned())
    );
}

fn append(path: &Path, text: &str) {
    let mut file: File = OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(text.as_bytes()).expect("written");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_run_fails_on_a_fault_of_a_gpu_whoever_made_it() {
    let log = Log::new();
    let path = log.path().display().to_string();
    let status = |rule: &str, record: &str| {
        let script = format!("{} hammer 100 1; {record}", sim_text("gpusim"));
        let run = Gpuscope::script(&["-q", "--fail-on", rule], &script);
        let trace = run.env("GPUSCOPE_KMSG", &path).finish();
        (trace.code(), trace.stderr.contains("--fail-on xid: Xid 79 of"))
    };
    let fault = format!(
        "echo '3,9,2000,-;NVRM: Xid (PCI:0000:17:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus.' >> {path}"
    );
    assert_eq!(
        status("xid", "true"),
        (0, false),
        "what was in the log before is no fault of this run"
    );
    assert_eq!(status("xid", &fault), (3, true));
    assert_eq!(status("error", &fault), (0, false));
    assert_eq!(status("xid", &format!("{fault}; exit 7")), (7, true));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_rule_about_faults_is_refused_where_none_would_be_seen() {
    let run = Gpuscope::script(&["--fail-on", "xid"], "echo started >&2");
    let trace = run.env("GPUSCOPE_KMSG", "/nowhere/kmsg").finish();
    assert_eq!(trace.code(), 125, "{}", trace.stderr);
    assert!(
        trace.stderr.contains("--fail-on xid cannot be told") && !trace.stderr.contains("started"),
        "{}",
        trace.stderr
    );
}
