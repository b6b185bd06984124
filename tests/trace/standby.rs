//! Programs that carry the agent and are not traced: they go their way, and what they call is counted from the moment that
//! somebody asks until that ends, as often as wanted.

use crate::inside::{NOBODY, Public};
use crate::support::{
    Gpuscope, Program, Running, Stepper, Trace, assert_same, compile, eventually, patience, shell_script, sim_folder,
    sim_text,
};
use std::ffi::OsStr;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const GPUSCOPE: &str = env!("CARGO_BIN_EXE_gpuscope");

/// `gpuscope preload -- …` with what programs carry in a folder of the test's own.
pub(crate) struct Preload {
    data: tempfile::TempDir,
}

impl Preload {
    pub(crate) fn new() -> Preload {
        Preload {
            data: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn of(&self, program: &OsStr) -> Command {
        let mut command = Command::new(GPUSCOPE);
        command
            .args(["preload", "--"])
            .arg(program)
            .env("XDG_DATA_HOME", self.data.path());
        command
    }

    fn stepper(&self) -> Stepper {
        let runtime = sim_folder().join("libcudart.so.13");
        let mut command = self.of(Stepper::program().as_os_str());
        Stepper::start_in(&mut command, &[runtime.as_os_str()])
    }

    /// Where what programs carry lies, once one was started.
    fn folder(&self) -> PathBuf {
        let folders = std::fs::read_dir(self.data.path().join("gpuscope")).expect("a folder");
        let all: Vec<PathBuf> = folders.map(|entry| entry.expect("an entry").path()).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }

    fn sim(&self, arguments: &[&str]) -> Program {
        let sim = sim_text("gpusim");
        Program::start(self.of(OsStr::new(&sim)).args(arguments))
    }
}

fn traced(pid: u32, options: &[&str]) -> Running {
    let pid = pid.to_string();
    let all: Vec<&str> = ["-p", &pid, "--engine", "inside"]
        .into_iter()
        .chain(options.iter().copied())
        .collect();
    Gpuscope::trace(&all).start().until_attached()
}

fn said(mut command: Command) -> (Output, String) {
    let output = command.output().expect("it starts");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, words)
}

/// So many calls of both functions, and nothing else of the runtime's.
fn assert_called(trace: &Trace, times: u64) {
    let runtime = trace
        .totals("calls")
        .into_iter()
        .filter(|((layer, _), _)| layer == "runtime");
    let calls: Vec<(String, u64)> = runtime.map(|((_, name), calls)| (name, calls)).collect();
    let expected = [("cudaFree".to_owned(), times), ("cudaMalloc".to_owned(), times)];
    assert_eq!(calls, expected, "{:?}", trace.unseen());
    // of a burst, where nobody gets to read them in time
    let lost = trace.totals("lost");
    let lost_of = |name: &str| lost.get(&("runtime".to_owned(), name.to_owned())).copied().unwrap_or(0);
    for (name, times) in expected {
        assert_eq!(trace.calls_of(&name).count() as u64 + lost_of(&name), times, "{name}");
    }
    assert_eq!(trace.summary()["attach"], "inside");
}

/// What of shared memory process `pid` has in use, KiB.
fn shared_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:"));
    let words = line.expect("RssShmem").split_whitespace().next().expect("a number");
    words.parse().expect("a number")
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_is_called_while_somebody_traces_is_counted_as_often_as_wanted() {
    let preload = Preload::new();
    let mut stepper = preload.stepper();
    stepper.load(0);
    stepper.call(100);
    let mut held = Vec::new();
    for round in 1..=4 {
        let running = traced(stepper.pid(), &[]);
        stepper.call(1000 * round);
        assert_called(&running.stop().ok(), 1000 * round);
        // its first call without us: the agent lets go
        stepper.call(10);
        held.push(shared_kib(stepper.pid()));
    }
    assert!(held.iter().all(|kib| *kib < 1024), "memory stays behind: {held:?} KiB");
    assert!(stepper.end().success());
}

/// A program that has loaded the runtime is traced from inside, each call.
fn assert_stands_by(preload: &Preload) {
    let mut stepper = preload.stepper();
    stepper.load(0);
    stepper.call(1);
    let running = traced(stepper.pid(), &[]);
    stepper.call(500);
    assert_called(&running.stop().ok(), 500);
    assert!(stepper.end().success());
}

/// Its launcher carries no agent; `pid` is the launcher's.
#[test]
#[ignore = "needs the simulated CUDA"]
fn of_a_launcher_the_workers_are_traced_those_that_run_and_those_that_come() {
    let preload = Preload::new();
    let later = preload.data.path().join("later");
    let script = "until [ -e \"$LATER\" ]; do sleep 0.05; done; exec \"$GPUSCOPE\" preload -- \"$SIM\" train 1000000";
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &format!("({script}) >&2 & \"$@\"; kill %1; true"), "launcher"])
        .args([GPUSCOPE, "preload", "--"])
        .env("XDG_DATA_HOME", preload.data.path())
        .envs([("LATER", later.as_os_str()), ("GPUSCOPE", OsStr::new(GPUSCOPE))])
        .env("SIM", sim_text("gpusim"))
        .stderr(Stdio::null());
    let runtime = sim_folder().join("libcudart.so.13");
    let mut stepper = Stepper::start_in(shell.arg(Stepper::program()), &[runtime.as_os_str()]);
    stepper.load(0);
    stepper.call(1);
    let mut doctor = Command::new(GPUSCOPE);
    doctor.args(["doctor", "--json", "-p", &stepper.pid().to_string()]);
    let report: serde_json::Value = serde_json::from_slice(&said(doctor).0.stdout).expect("JSON");
    assert_eq!(
        (&report["agent"], &report["descendants"][0]["agent"]),
        (&"absent".into(), &"ready".into())
    );
    let only = ["--filter", "cudaMalloc", "--filter", "cudaFree"];
    let running = traced(stepper.pid(), &only);
    stepper.call(500);
    assert_called(&running.stop().ok(), 500);
    let running = traced(stepper.pid(), &["--filter", "cudaLaunchKernel"]);
    std::fs::write(&later, "").expect("a file");
    running.until_written("cudaLaunchKernel");
    assert!(stepper.end().success());
    let trace = running.finish().ok();
    assert!(trace.totals("calls").keys().all(|(_, name)| name == "cudaLaunchKernel"));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_was_planned_for_one_program_the_next_one_asks_nobody_for() {
    let preload = Preload::new();
    assert_stands_by(&preload);
    let planner = preload.folder().join("gpuscope");
    std::fs::remove_file(&planner).expect("a link");
    std::os::unix::fs::symlink("/bin/false", &planner).expect("a link");
    assert_stands_by(&preload);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn plans_that_were_torn_or_damaged_are_made_anew() {
    let preload = Preload::new();
    assert_stands_by(&preload);
    let plans = preload.folder().join("plans");
    let whole = std::fs::read(&plans).expect("what is kept");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    let cases = [
        &[],
        &whole[..7],
        &whole[..whole.len() / 2],
        &damaged,
        &vec![0xff; whole.len()],
    ];
    for kept in cases {
        std::fs::write(&plans, kept).expect("our own");
        assert_stands_by(&preload);
        let again = std::fs::read(&plans).expect("what is kept");
        assert_eq!(again.len(), whole.len());
    }
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn a_user_without_rights_traces_records_and_finds_leaks_of_a_program_that_runs() {
    let public = Public::new();
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new(NOBODY[0]);
        command
            .args(&NOBODY[1..])
            .arg(public.path("gpuscope"))
            .args(arguments)
            .env("XDG_DATA_HOME", public.path("data"))
            .env_remove("GPUSCOPE_ENGINE")
            .current_dir(public.path(""));
        command
    };
    let mut leaking = as_nobody(&["preload", "--", "./gpusim", "leak", "0"]);
    let mut program = Program::start(leaking.env("GPUSIM_MEMORY", "8TiB"));
    let pid = program.pid().to_string();
    let deadline = Instant::now() + patience(Duration::from_secs(30));
    let (output, words) = loop {
        let (output, words) = said(as_nobody(&[
            "trace",
            "-p",
            &pid,
            "-q",
            "--summary",
            "json",
            "--duration",
            "1s",
        ]));
        let is_early = words.contains("has loaded no library of CUDA yet");
        assert!(!is_early || Instant::now() < deadline, "{words}");
        if !is_early {
            break (output, words);
        }
    };
    assert!(output.status.success(), "{words}");
    let line = words.lines().find(|line| line.starts_with('{')).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(summary["attach"], "inside");
    assert!(summary["kernels"].as_array().is_some_and(|kernels| !kernels.is_empty()));
    let (output, words) = said(as_nobody(&["record", "-p", &pid, "-o", "t.arrows", "--duration", "1s"]));
    assert!(output.status.success(), "{words}");
    let (output, words) = said(as_nobody(&["report", "t.arrows"]));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("cudaMalloc"),
        "{words}"
    );
    let (output, words) = said(as_nobody(&[
        "leaks",
        "-p",
        &pid,
        "--duration",
        "1s",
        "--fail-on",
        "leak",
    ]));
    assert_eq!(output.status.code(), Some(3), "{words}");
    assert!(program.is_running());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_killed_gpuscope_is_followed_by_another_one() {
    let preload = Preload::new();
    let mut stepper = preload.stepper();
    stepper.load(0);
    stepper.call(1);
    let killed = traced(stepper.pid(), &[]);
    stepper.call(500);
    killed.signal(libc::SIGKILL);
    drop(killed);
    stepper.call(500);
    let running = traced(stepper.pid(), &[]);
    stepper.call(2000);
    assert_called(&running.stop().ok(), 2000);
    assert!(stepper.end().success());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn two_do_not_share_an_agent() {
    let preload = Preload::new();
    let mut stepper = preload.stepper();
    stepper.load(0);
    let running = traced(stepper.pid(), &[]);
    let mut second = Command::new(GPUSCOPE);
    second.args([
        "trace",
        "--engine",
        "inside",
        "-p",
        &stepper.pid().to_string(),
        "--duration",
        "1s",
    ]);
    let (output, words) = said(second);
    assert_eq!(output.status.code(), Some(1));
    assert!(words.contains("traced from inside by another gpuscope"), "{words}");
    stepper.call(300);
    assert_called(&running.stop().ok(), 300);
}

/// What `trace -p` and `doctor -p` say of a process.
fn words_of(pid: u32) -> (String, String) {
    let pid = pid.to_string();
    let mut trace = Command::new(GPUSCOPE);
    trace.args(["trace", "--engine", "inside", "-q", "-p", &pid, "--duration", "200ms"]);
    let mut doctor = Command::new(GPUSCOPE);
    doctor.args(["doctor", "--json", "-p", &pid]);
    let report = doctor.output().expect("it starts").stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    (said(trace).1, report["agent"].as_str().unwrap_or_default().to_owned())
}

fn assert_words(pid: u32, refusal: &str, standing: &str) {
    let (refused, stands) = words_of(pid);
    assert!(refused.contains(refusal), "{refused}");
    assert_eq!(stands, standing);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn who_cannot_be_traced_yet_or_at_all_is_told_why_and_what_to_do() {
    let mut without = Stepper::start(&[]);
    assert_words(without.pid(), "gpuscope preload -- CMD", "absent");
    without.rename("without");
    let mut early = Stepper::start_in(&mut Preload::new().of(Stepper::program().as_os_str()), &[]);
    assert_words(early.pid(), "has loaded no library of CUDA yet", "unready");
    early.rename("early");
    let preload = Preload::new();
    let mut ready = preload.stepper();
    ready.load(0);
    assert_eq!(words_of(ready.pid()).1, "ready");
    // in a mount namespace of its own, as a container has
    let mut container = Command::new("unshare");
    container.arg("--mount").arg(preload.of(OsStr::new("")).get_program());
    container.args(["preload", "--"]).arg(Stepper::program());
    container.env("XDG_DATA_HOME", preload.data.path());
    let mut elsewhere = Stepper::start_in(&mut container, &[sim_folder().join("libcudart.so.13").as_os_str()]);
    elsewhere.load(0);
    assert_words(elsewhere.pid(), "run gpuscope in there", "elsewhere");
    elsewhere.rename("elsewhere");
    replace_agent(ready.pid());
    assert_words(ready.pid(), "this gpuscope has taken that one's place", "foreign");
    std::fs::remove_file(door_of(ready.pid())).expect("its door");
    assert_words(ready.pid(), "it was removed, or", "lost");
    ready.rename("ready");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_gpuscope_that_has_taken_the_place_of_another_one_plans_nothing_for_its_programs() {
    let preload = Preload::new();
    let mut stepper = preload.stepper();
    let agent = preload.folder().join("libgpuscope_agent.so");
    let mut older = std::fs::read(&agent).expect("an agent");
    older.push(0);
    std::fs::remove_file(&agent).expect("removed");
    std::fs::write(&agent, older).expect("another agent");
    stepper.load(0);
    stepper.call(300);
    assert!(!preload.folder().join("plans").exists(), "nothing was planned");
    assert_words(stepper.pid(), "no function of CUDA was patched", "unpatched");
}

fn door_of(pid: u32) -> String {
    let owner = std::fs::metadata(format!("/proc/{pid}")).expect("a process").uid();
    format!("/dev/shm/gpuscope-doors-{owner}/{pid}")
}

/// Makes its agent one of other sources, as far as its door says.
fn replace_agent(pid: u32) {
    const BUILD: u64 = 48;
    let door = std::fs::File::options().write(true).open(door_of(pid)).expect("a door");
    door.write_all_at(&[0x55; 8], BUILD).expect("written");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn threads_and_children_are_switched_on_and_off_while_they_call() {
    let preload = Preload::new();
    let mut program = preload.sim(&["threads", "4", "100000000"]);
    eventually("it has loaded CUDA", || {
        Command::new(GPUSCOPE)
            .args([
                "trace",
                "--engine",
                "inside",
                "-q",
                "-p",
                &program.pid().to_string(),
                "--duration",
                "0.05",
            ])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    for round in 0..8 {
        // few records, but for two rounds: these threads call as fast as they can
        let options: &[&str] = if round % 4 == 3 { &[] } else { &["--errors"] };
        let running = traced(program.pid(), &[&["--filter", "@launch"], options].concat());
        std::thread::sleep(Duration::from_millis(20 * (round % 3)));
        let trace = running.stop().ok();
        assert_eq!(trace.summary()["malformed_events"], 0);
        assert!(program.is_running(), "round {round}");
    }
    program.signal(libc::SIGKILL);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_that_stands_by_does_what_it_does_alone() {
    let preload = Preload::new();
    for scenario in [
        &["train", "20"][..],
        &["errors", "5"],
        &["fork"],
        &["late-dlopen"],
        &["longjmp", "20"],
        &["recursion", "20"],
        &["exec-midcall"],
        &["static"],
    ] {
        let of = |mut command: Command| {
            let done = command.args(scenario).env("LD_LIBRARY_PATH", sim_folder()).output();
            let done = done.expect("it runs");
            let words = String::from_utf8_lossy(&done.stderr).into_owned();
            (done.status.code(), ledger_of(&done.stdout), words)
        };
        let alone = of(Command::new(sim_text("gpusim")));
        assert_eq!(of(preload.of(OsStr::new(&sim_text("gpusim")))), alone, "{scenario:?}");
    }
}

/// What a simulated program says it has called, without what differs from run to run.
fn ledger_of(stdout: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stdout).into_owned();
    let lines = text
        .lines()
        .map(|line| line.split("\"calls\":").last().unwrap_or(line).to_owned());
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

/// Waits for any child, and counts ends that it is told of.
const PARENT: &str = r#"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
static volatile int told;
static void tell(int number) { (void)number; told++; }
int main(int argc, char **argv) {
    signal(SIGCHLD, tell);
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    int (*allocate)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(library, "cudaMalloc");
    void *place;
    int failed = allocate(&place, 64);
    printf("%d %d %d\n", failed, told, waitpid(-1, NULL, 0));
    return 0;
}
"#;

#[test]
#[ignore = "needs the simulated CUDA"]
fn who_plans_for_it_is_no_child_that_a_program_would_meet() {
    let folder = tempfile::tempdir().expect("a folder");
    let parent = compile(folder.path(), "parent", PARENT, &["-ldl"]);
    let preload = Preload::new();
    let mut command = preload.of(parent.as_os_str());
    command
        .arg(sim_folder().join("libcudart.so.13"))
        .env("LD_LIBRARY_PATH", sim_folder());
    let (output, words) = said(command);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 0 -1\n", "{words}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn nsight_compute_is_started_without_what_it_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, has) in [("ncu", "no"), ("other", "has")] {
        let program = shell_script(
            folder.path(),
            name,
            "[ -n \"$CUDA_INJECTION64_PATH\" ] && echo has || echo no",
        );
        let preload = Preload::new();
        let (output, words) = said(preload.of(program.as_os_str()));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), has, "{name}: {words}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_run_within_such_an_environment_counts_each_call_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (stdout, _) = said({
        let mut command = Command::new(GPUSCOPE);
        command.arg("preload").arg("--folder").arg(folder.path());
        command
    });
    let text = String::from_utf8_lossy(&stdout.stdout).into_owned();
    let mut gpuscope = Gpuscope::run(&[], &[&sim_text("gpusim"), "train", "20"]).tier("inside");
    for line in text.lines() {
        let (name, value) = line.split_once('=').expect("NAME=VALUE");
        gpuscope = gpuscope.env(name, value);
    }
    let trace = gpuscope.finish().ok();
    assert_same("totals", &trace.ledger.visible(), &trace.entered());
}

#[test]
fn what_cannot_be_started_has_the_usual_status() {
    let folder = tempfile::tempdir().expect("a folder");
    let status_of = |program: &Path| {
        let mut command = Command::new(GPUSCOPE);
        command
            .arg("preload")
            .arg("--folder")
            .arg(folder.path())
            .arg("--")
            .arg(program);
        let (output, words) = said(command);
        (output.status.code(), words)
    };
    let (status, words) = status_of(Path::new("/no/such/program"));
    assert_eq!(status, Some(127), "{words}");
    assert!(words.contains("command not found"), "{words}");
    let no_program = folder.path().join("text");
    std::fs::write(&no_program, "words").expect("a file");
    assert_eq!(status_of(&no_program).0, Some(126));
    assert_eq!(status_of(Path::new("/bin/false")).0, Some(1));
}
