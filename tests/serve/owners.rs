//! Programs that are gone before anybody can look at them: whose they were is known all the same.

use super::exporter::Exporter;
use super::slurm::Job;
use super::support::{Ledger, Program, eventually, sim_folder};
use super::workload::Workloads;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SHORT: usize = 60;

/// A batch script that runs a program many times, as quickly as it can; what they did.
fn run(job: &Job, program: &Path, times: usize) -> Ledger {
    let ledger = tempfile::tempdir().expect("a folder");
    let script = "n=0 && while [ $n -lt \"$1\" ]; do \"$2\" train 1 || exit 1; n=$((n + 1)); done";
    let status = job
        .command(Path::new("sh"))
        .args(["-c", script, "batch"])
        .arg(times.to_string())
        .arg(program)
        .env("LD_LIBRARY_PATH", sim_folder())
        .env("GPUSIM_LEDGER", ledger.path().join("%p"))
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("a shell").success());
    Ledger::read(ledger.path())
}

/// Where the unified hierarchy is, and one of version 1 that Slurm uses, where these are mounted.
fn hierarchies() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("a file");
    let is_used = |fields: &&Vec<&str>| match fields[2] {
        "cgroup2" => true,
        "cgroup" => fields[3].split(',').any(|option| option == "freezer"),
        _ => false,
    };
    let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
    mounts
        .iter()
        .filter(is_used)
        .map(|fields| PathBuf::from(fields[1]))
        .collect()
}

#[test]
#[ignore = "needs root and BPF"]
fn short_programs_are_counted_for_the_job_that_they_ran_in() {
    let exporter = Exporter::start(&["--collect", "api,self"]);
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let hierarchies = hierarchies();
    assert!(!hierarchies.is_empty(), "no cgroups are mounted");
    for (number, hierarchy) in (4711..).zip(&hierarchies) {
        let job = Job::below(hierarchy, number);
        let name = format!("o-short{number}");
        workloads.command(&name, "");
        let calls = exporter.calls_of(&run(&job, &workloads.file(&name), SHORT)) as f64;
        let of = |labels: &[&str]| exporter.sum("gpuscope_api_calls_total", labels);
        let comm = format!("comm=\"{name}\"");
        eventually("all calls are counted", || of(&[&comm]) == Some(calls));
        let of_job = of(&[&comm, &format!("slurm_job=\"{number}\"")]);
        assert_eq!(of_job, Some(calls), "{}", hierarchy.display());
    }
    // of the whole machine, where others may run programs, too
    assert!(
        exporter
            .sum("gpuscope_owners_unknown_total", &["missing=\"place\""])
            .is_some()
    );
}

#[test]
#[ignore = "needs root and BPF"]
fn what_nobody_could_read_of_a_program_is_counted() {
    let exporter = Exporter::start(&["--collect", "api,self", "--labels", "comm,cmdline"]);
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let unread = || exporter.sum("gpuscope_owners_unknown_total", &["missing=\"program\""]);
    let before = unread();
    for _ in 0..SHORT {
        workloads.run("o-unread", "train 1");
    }
    eventually(
        "there are series without a command line if, and only if, some were not read",
        || {
            let text = exporter.scrape(super::exporter::PLAIN);
            text.contains("comm=\"o-unread\"") && lacks_command_line(&text) == (unread() > before)
        },
    );
}

/// Whether calls of it are shown without its command line.
fn lacks_command_line(text: &str) -> bool {
    let of_it = |line: &&str| line.starts_with("gpuscope_api_calls_total{") && line.contains("comm=\"o-unread\"");
    text.lines().filter(of_it).any(|line| !line.contains("cmdline="))
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn a_job_is_shown_with_its_user_program_and_rank() {
    let exporter = Exporter::start(&[
        "--collect",
        "api,launches,sync,self",
        "--labels",
        "comm,user,job,program,rank",
    ]);
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let mut command = workloads.command("o-rank", "train 1");
    command.env("PBS_JOBID", "4711.head").env("OMPI_COMM_WORLD_RANK", "3");
    let ledger = Program::start(&mut command).finish().ledger;
    let calls = exporter.calls_of(&ledger) as f64;
    let labels = [
        "user=\"root\"",
        "batch_job=\"4711.head\"",
        "program=\"o-rank\"",
        "rank=\"3\"",
    ];
    eventually("all calls are counted for it", || {
        exporter.sum("gpuscope_api_calls_total", &labels) == Some(calls)
    });
    let report = job_report(&exporter);
    assert!(report.contains("gpuscope: job 4711.head, on one node"), "{report}");
    assert!(
        report.contains("\n  launches ") && report.contains("\n  surely idle "),
        "{report}"
    );
}

/// As an epilog of PBS has it, whose environment names the job.
fn job_report(exporter: &Exporter) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    let url = format!("http://{}/metrics", exporter.address());
    command
        .args(["job-report", "--from", &url])
        .env("PBS_JOBID", "4711.head");
    let output = command.env_remove("SLURM_JOB_ID").output().expect("gpuscope starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn an_owner_that_trains_takes_fewer_than_100_series() {
    let exporter = Exporter::start(&[]);
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let _program = workloads.start("o-series", "train 0");
    let of_it = || {
        let text = exporter.scrape(super::exporter::PLAIN);
        let own = text
            .lines()
            .filter(|line| !line.starts_with('#') && line.contains("comm=\"o-series\""));
        own.map(|line| line.split('{').next().unwrap_or(line).to_owned())
            .collect::<Vec<String>>()
    };
    eventually("its waits are told, which follow all else", || {
        of_it().iter().any(|name| name == "gpuscope_sync_waits_total")
    });
    let series = of_it();
    assert!((40..100).contains(&series.len()), "{}: {series:?}", series.len());
}
