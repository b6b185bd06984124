//! The black box: what a program did last is in a recording once it has failed, or somebody asks, and nothing of it is made up.

use super::exporter::{Exporter, hooked};
use super::prometheus::Prometheus;
use super::support::{Counts, Ledger, assert_same, eventually};
use super::workload::Workloads;
use gpuscope::record::{Kind, Record, Taker};
use gpuscope::trace::Reader;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const WRITTEN: &str = "gpuscope_kept_recordings_total";

/// An exporter that keeps, and programs beside it.
struct Scene {
    exporter: Exporter,
    workloads: Workloads,
    folder: TempDir,
}

/// A row of a call, as far as it is compared.
struct Row {
    pid: u32,
    layer: String,
    name: String,
    result: Option<i64>,
    failed: bool,
}

#[derive(Default)]
struct Rows {
    calls: Vec<Row>,
    /// Calls that had not returned: process, function, for how long in ns.
    open: Vec<(u32, String, u64)>,
    xids: usize,
}

impl Taker for Rows {
    fn take(&mut self, record: &Record<'_>) {
        match record.kind {
            Kind::Call => self.calls.push(Row {
                pid: record.pid,
                layer: record.layer.to_owned(),
                name: record.name.to_owned(),
                result: record.result,
                failed: record.failed,
            }),
            Kind::Open => {
                let ns = record.ns.expect("how long it has been open");
                self.open.push((record.pid, record.name.to_owned(), ns));
            }
            Kind::Xid => self.xids += 1,
            _ => {}
        }
    }
}

impl Rows {
    fn read(file: &Path) -> Rows {
        let mut rows = Rows::default();
        let reader = Reader::new(File::open(file).expect("a file")).expect("a recording");
        reader.read(&mut rows);
        rows
    }

    /// Calls of a process by function.
    fn counts(&self, pid: u32) -> Counts {
        let mut counts = Counts::new();
        for row in self.calls.iter().filter(|row| row.pid == pid) {
            *counts.entry((row.layer.clone(), row.name.clone())).or_default() += 1;
        }
        counts
    }
}

/// Calls of a program that have rows of their own: not of getters, nor of functions that are called too often.
fn expected(ledger: &Ledger) -> Counts {
    hooked(ledger, |row| !row.chatty)
}

fn pid_of(ledger: &Ledger) -> u32 {
    u32::try_from(*ledger.pids.first().expect("a process")).expect("a PID")
}

impl Scene {
    fn keeping(options: &[&str]) -> Scene {
        Scene::keeping_for("60s", options)
    }

    fn keeping_for(time: &str, options: &[&str]) -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("UTF-8");
        let exporter = Exporter::start(&[&["--keep", time, "--keep-folder", path], options].concat());
        let workloads = Workloads::of(&exporter);
        workloads.until_seen_whole(&exporter);
        Scene {
            exporter,
            workloads,
            folder,
        }
    }

    /// Runs a program one of whose calls fails.
    fn failing(&self, name: &str, arguments: &str, failure: &str) -> Ledger {
        let mut command = self.workloads.command(name, arguments);
        let program = super::support::Program::start(command.env("GPUSIM_FAIL", failure));
        program.finish().ledger
    }

    /// The only recording of that cause, once the metrics name it, and no other of the program.
    fn recording(&self, cause: &str, parts: &[&str]) -> PathBuf {
        let cause = format!("cause=\"{cause}\"");
        let parts = [&[cause.as_str()], parts].concat();
        let mut file = None;
        eventually("the metrics name a recording", || {
            let text = self.exporter.scrape(super::exporter::PLAIN);
            let is_it = |line: &&str| line.starts_with("gpuscope_kept_recording_info{");
            let mut named = text
                .lines()
                .filter(is_it)
                .filter(|line| parts.iter().all(|part| line.contains(part)));
            file = named.next().and_then(|line| {
                let (_, rest) = line.split_once("file=\"")?;
                Some(PathBuf::from(rest.split_once('"')?.0))
            });
            assert_eq!(named.next(), None, "one is enough");
            file.is_some()
        });
        let file = file.expect("a file");
        assert_eq!(file.parent(), Some(self.folder.path()));
        file
    }

    /// The answer to a request for recordings.
    fn ask(&self, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        post(&self.exporter, headers, body)
    }
}

fn post(exporter: &Exporter, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(30)))
        .http_status_as_error(false)
        .build()
        .into();
    let mut request = agent.post(format!("http://{}/-/keep", exporter.address()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = request.send(body).expect("an answer");
    let text = answer.body_mut().read_to_string().expect("a text");
    (answer.status().as_u16(), text)
}

/// What a report says of a recording.
fn reported(file: &Path) -> String {
    let mut report = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    let report = report.arg("report").arg(file).output().expect("a report");
    String::from_utf8_lossy(&report.stdout).into_owned()
}

fn alert(labels: &str) -> String {
    format!(r#"{{"version":"4","alerts":[{{"status":"firing","labels":{{{labels}}}}}]}}"#)
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn a_program_that_fails_for_good_leaves_each_of_its_last_calls() {
    let scene = Scene::keeping(&[]);
    let ledger = scene.failing("k-fatal", "train 1", "cuLaunchKernel:5+=719");
    let pid = pid_of(&ledger);
    let process = format!("process=\"{pid}\"");
    let file = scene.recording("fatal_error", &[&process, "comm=\"k-fatal\""]);
    let rows = Rows::read(&file);
    assert_same("rows of calls", &expected(&ledger), &rows.counts(pid));
    let launches: Vec<&Row> = rows.calls.iter().filter(|row| row.name == "cuLaunchKernel").collect();
    let failed: Vec<Option<i64>> = launches.iter().filter(|row| row.failed).map(|row| row.result).collect();
    assert_eq!(failed, [Some(719)]);
    assert_eq!(launches.iter().position(|row| row.failed), Some(4), "the fifth");
    assert!(
        rows.calls.iter().all(|row| row.pid == pid),
        "nobody else is of that owner"
    );
    let said = reported(&file);
    assert!(
        said.contains("Nothing works any more behind cudaErrorLaunchFailure"),
        "{said}"
    );
    assert_eq!(scene.exporter.sum(WRITTEN, &["fatal_error", "written"]), Some(1.0));
    super::queries::those_of_the_black_box_give_data(&Prometheus::of(&scene.exporter));
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn what_comes_after_a_want_of_memory_or_an_xid_is_written_too() {
    let scene = Scene::keeping(&[]);
    let short = scene.failing("k-short", "train 1", "cuMemAlloc_v2:2=2");
    let rows = Rows::read(&scene.recording("out_of_memory", &["comm=\"k-short\""]));
    assert_same("rows of calls", &expected(&short), &rows.counts(pid_of(&short)));
    assert!(rows.calls.iter().any(|row| row.failed && row.result == Some(2)));
    let whole = scene.workloads.run("k-xid", "train 2").ledger;
    let pid = pid_of(&whole);
    let told = format!("3,1,2,-;NVRM: Xid (PCI:0000:01:00): 31, pid={pid}, name=k-xid, Ch 00000008\n");
    std::fs::write(scene.exporter.state().join("kmsg"), format!("6,0,1,-;boot\n{told}")).expect("a file");
    let rows = Rows::read(&scene.recording("xid", &[&format!("process=\"{pid}\"")]));
    assert_same("rows of calls", &expected(&whole), &rows.counts(pid));
    assert_eq!(rows.xids, 1);
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn an_alert_has_the_programs_written_that_its_labels_mean() {
    let scene = Scene::keeping(&[]);
    let (one, other) = (
        scene.workloads.run("k-one", "train 1").ledger,
        scene.workloads.run("k-other", "train 1").ledger,
    );
    assert_eq!(scene.ask(&[], "no JSON").0, 400);
    assert_eq!(scene.ask(&[("Origin", "http://example.org")], "").0, 403);
    assert_eq!(
        scene
            .ask(&[], &alert(r#""comm":"k-one""#).replace("firing", "resolved"))
            .0,
        200
    );
    eventually("both are known by their names", || {
        let is_known = |name| scene.exporter.sum("gpuscope_api_calls_total", &[name]).is_some();
        is_known("comm=\"k-one\"") && is_known("comm=\"k-other\"")
    });
    let (code, said) = scene.ask(&[], &alert(r#""alertname":"Slow","comm":"k-one""#));
    assert_eq!(code, 202, "{said}");
    let rows = Rows::read(&scene.recording("webhook", &[]));
    assert_same("rows of who is meant", &expected(&one), &rows.counts(pid_of(&one)));
    assert!(rows.counts(pid_of(&other)).is_empty(), "the other is not meant");
    let codes: Vec<u16> = (0..6).map(|_| scene.ask(&[], &alert(r#""comm":"nobody""#)).0).collect();
    assert!(codes.ends_with(&[429]), "so many are too many: {codes:?}");
}

/// Its last row is long forgotten: the call that it hangs in is all that there is to tell.
#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn the_call_that_a_program_hangs_in_is_kept_though_it_has_said_nothing_for_long() {
    let scene = Scene::keeping_for("1s", &[]);
    let hang = "stall --steps 2 --kernels 1 --kernel-ns 600000000000 --host-ns 1000 --sync device";
    let program = scene.workloads.start("k-hang", hang);
    eventually("it is known, and nothing of it is kept any more", || {
        let is_known = scene
            .exporter
            .sum("gpuscope_api_calls_total", &["comm=\"k-hang\""])
            .is_some();
        is_known && scene.exporter.sum("gpuscope_kept_memory_bytes", &[]) == Some(0.0)
    });
    assert_eq!(scene.ask(&[], &alert(r#""comm":"k-hang""#)).0, 202);
    let file = scene.recording("webhook", &[]);
    let rows = Rows::read(&file);
    assert!(rows.calls.is_empty(), "{} rows", rows.calls.len());
    let open: Vec<&str> = rows.open.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(open, ["cudaDeviceSynchronize", "cuCtxSynchronize_v2"]);
    let is_its = |(pid, _, ns): &(u32, String, u64)| *pid == program.pid() && *ns >= 1_000_000_000;
    assert!(rows.open.iter().all(is_its), "{:?}", rows.open);
    let said = reported(&file);
    assert!(
        said.contains("Calls that had not returned") && said.contains("cudaDeviceSynchronize"),
        "{said}"
    );
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn memory_stays_within_its_bound_and_what_is_dropped_is_counted() {
    let scene = Scene::keeping(&["--keep-memory", "1MiB"]);
    let program = scene.workloads.start("k-much", "train 0");
    let mut most: f64 = 0.0;
    eventually("rows are dropped", || {
        let bytes = scene.exporter.sum("gpuscope_kept_memory_bytes", &[]).unwrap_or(0.0);
        most = most.max(bytes);
        scene.exporter.sum("gpuscope_kept_dropped_rows_total", &[]) > Some(10_000.0)
    });
    assert!(most > 0.0 && most <= f64::from(1 << 20), "{most} bytes");
    let pid = program.pid();
    assert_eq!(scene.ask(&[], &alert(&format!(r#""pid":"{pid}""#))).0, 202);
    let rows = Rows::read(&scene.recording("webhook", &[]));
    assert!(rows.calls.len() > 1000, "{} rows", rows.calls.len());
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn without_keep_nobody_can_ask_for_it() {
    let exporter = Exporter::start(&["--collect", "nvml,self"]);
    let (code, said) = post(&exporter, &[], "");
    assert!(
        code == 404 && said.contains("hint: gpuscope serve --keep 60s"),
        "{code} {said}"
    );
    assert_eq!(exporter.sum(WRITTEN, &[]), None, "there is nothing to be told");
    let mut homeless = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    let homeless = homeless.args(["serve", "--keep", "60s"]).env_remove("STATE_DIRECTORY");
    let ended = homeless.output().expect("gpuscope starts");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--keep: there is no folder for recordings\nhint: --keep-folder DIR"),
        "{said}"
    );
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn a_disk_without_room_costs_the_recording_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=8k none \"$0\" && exec \"$@\"";
    command.args(["-m", "sh", "-c", script, path, env!("CARGO_BIN_EXE_gpuscope"), "serve"]);
    let exporter = Exporter::start_as(command.args(["--keep", "60s", "--keep-folder", path]));
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let scene = Scene {
        exporter,
        workloads,
        folder,
    };
    scene.failing("k-full", "train 1", "cuLaunchKernel:5+=719");
    eventually("it is counted", || {
        scene.exporter.sum(WRITTEN, &["fatal_error", "failed"]) == Some(1.0)
    });
    let said = scene.exporter.stderr();
    assert!(
        said.contains("gpuscope: the last moments (fatal_error) are lost: ") && said.contains("No space left"),
        "{said}"
    );
    let there = format!("/proc/{}/root{}", scene.exporter.pid(), scene.folder.path().display());
    assert_eq!(
        std::fs::read_dir(there).expect("a folder").count(),
        0,
        "half a recording"
    );
    let calls = scene
        .exporter
        .calls_of(&scene.workloads.run("k-after", "train 1").ledger);
    eventually("others are counted as ever", || {
        scene.exporter.sum("gpuscope_api_calls_total", &["comm=\"k-after\""]) == Some(calls as f64)
    });
}
