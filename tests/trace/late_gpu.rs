//! What the GPU executes, asked of programs that run already: those that `gpuscope preload` has started tell it, as often as wanted,
//! and go their way.

use crate::gpu::{copies, coverage, device};
use crate::standby::Preload;
use crate::support::{Gpuscope, Program, Running, Trace, compile, eventually, number, sim_cupti, sim_text, text};
use crate::work_truth::log::{Log, Logs, Operation};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a program shares with one gpuscope that asks.
const SHARED_MIB: u64 = 16;
/// Kernels of a step.
const STEP: usize = 4;
/// Work that goes on until SIGTERM.
const WORK: [&str; 11] = [
    "stall",
    "--steps",
    "0",
    "--kernels",
    "4",
    "--kernel-ns",
    "1000000",
    "--host-ns",
    "10000000",
    "--sync",
    "device",
];

fn started(preload: &Preload, logs: &Logs, settings: &[(&str, &str)]) -> Program {
    started_as(preload.of(OsStr::new(&sim_text("gpusim"))), logs, settings)
}

/// `command` ends with the program.
fn started_as(command: Command, logs: &Logs, settings: &[(&str, &str)]) -> Program {
    started_doing(&WORK, command, logs, settings)
}

/// It may not have done anything yet.
fn begun(mut command: Command, logs: &Logs) -> Program {
    command
        .env("GPUSIM_WORK", logs.setting())
        .env("GPUSCOPE_CUPTI", sim_cupti());
    Program::start(command.stdin(Stdio::null()))
}

fn started_doing(work: &[&str], mut command: Command, logs: &Logs, settings: &[(&str, &str)]) -> Program {
    command.args(work).envs(settings.iter().copied());
    let before = logs.written_bytes();
    let program = begun(command, logs);
    eventually("its first work", || logs.written_bytes() > before);
    program
}

/// What a program has mapped.
fn address_space_mib(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("it runs");
    let pages: u64 = statm.split(' ').next().expect("a size").parse().expect("a number");
    pages / 256
}

fn assert_ends_well(program: Program) {
    program.signal(libc::SIGTERM);
    let ended = program.finish();
    assert!(ended.status.success(), "{}", ended.status);
}

fn tracing(pid: u32, options: &[&str]) -> Gpuscope {
    let pid = pid.to_string();
    Gpuscope::trace(&[&["-p", &pid, "--duration", "700ms"], options].concat())
}

fn traced(pid: u32, options: &[&str]) -> Trace {
    tracing(pid, options).finish().ok()
}

/// From the first activity on nothing is missing: each is of the next launch that was seen, and was executed when the driver says.
fn assert_executed(trace: &Trace, log: &Log, what: &str) {
    let devices = trace.summary()["gpu"]["devices"].as_array().expect("devices");
    assert_eq!(devices.len(), 1, "{what}: {}", trace.stderr);
    let told = &devices[0];
    let (first, last) = (number(told, "first_ns"), number(told, "last_ns"));
    // one that ran when it began to be asked counts from then on
    let ran = |one: &&Operation| one.op == "kernel" && first < one.end_ns && one.end_ns <= last;
    let within: Vec<&Operation> = log.operations.iter().filter(ran).collect();
    let ns: u64 = within.iter().map(|one| one.end_ns - one.start_ns.max(first)).sum();
    let kernels: Vec<_> = trace
        .of_type("gpu")
        .filter(|line| line["activity"] == "kernel")
        .collect();
    assert!(kernels.len() > 40, "{what}: {}", trace.stderr);
    assert_eq!(kernels.len(), within.len(), "{what}: {}", trace.stderr);
    let busy = (told["busy_us"].as_f64().expect("a time") * 1e3).round() as u64;
    assert_eq!(busy, ns, "{what}");
    // calls of the step that was under way had been made before
    let early = kernels.iter().take_while(|line| line["match"] == "none").count();
    assert!(early <= STEP, "{what}: {early}");
    let launches: Vec<u64> = trace
        .calls_of("cudaLaunchKernel")
        .map(|call| number(call, "event_id"))
        .collect();
    let caused: Vec<u64> = kernels[early..].iter().map(|line| number(line, "call_id")).collect();
    let from = launches.iter().position(|call| *call == caused[0]).expect("its call");
    let behind = &launches[from..];
    assert_eq!(behind[..caused.len().min(behind.len())], caused, "{what}");
    // of the last step devices may have done nothing, and on a busy machine calls cease to count a moment later
    assert!(
        behind.len() - caused.len() <= 5 * STEP,
        "{what}: {} of {}",
        caused.len(),
        behind.len()
    );
    assert!(
        kernels[early..].iter().all(|line| text(line, "match") == "ordered"),
        "{what}"
    );
}

#[test]
#[ignore = "needs root and BPF: activities are asked for by both engines"]
fn who_was_started_by_a_program_is_asked_as_well() {
    let (preload, logs) = (Preload::new(), Logs::new());
    let mut shell = preload.of(OsStr::new("bash"));
    // as an argument of a shell that waits for it; it ends as the program does
    shell
        .args(["-c", "trap 'kill $!' TERM; \"$@\" & wait $!; wait $!", "launcher"])
        .arg(sim_text("gpusim"));
    let program = started_as(shell, &logs, &[]);
    let trace = traced(program.pid(), &["--gpu", "on"]);
    let kernels = trace.of_type("gpu").filter(|line| line["activity"] == "kernel");
    assert!(kernels.count() > 40, "{}", trace.stderr);
    assert_ends_well(program);
}

/// Keeps a program from its first call until there is a file.
const WAITS_FOR_FILE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void wait_for_file(void)
{
	while (!strcmp(program_invocation_short_name, "gpusim") && access(getenv("WAIT_FOR"), F_OK))
		usleep(10000);
}
"#;

/// A gpuscope that traces it, until it is stopped.
fn attached(program: &Program, engine: &str) -> Running {
    let pid = program.pid().to_string();
    let trace = Gpuscope::trace(&["-p", &pid, "--engine", engine]);
    trace.start().until_attached()
}

/// Somebody who carries the agent, and what works for him once there is `file`.
fn assert_asked_later(mut command: Command, file: &Path, engine: &str) {
    command.env("WAIT_FOR", file);
    let logs = Logs::new();
    let program = begun(command, &logs);
    let trace = attached(&program, engine);
    std::fs::write(file, "").expect("a file");
    trace.until_written("\"activity\":\"kernel\"");
    trace.stop().ok();
    program.signal(libc::SIGTERM);
    program.finish();
}

#[test]
#[ignore = "needs root and BPF: activities are asked for by both engines"]
fn who_has_not_called_cuda_yet_is_asked_when_it_has() {
    let (folder, preload) = (tempfile::tempdir().expect("a folder"), Preload::new());
    let library = compile(folder.path(), "waits.so", WAITS_FOR_FILE, &["-shared", "-fPIC"]);
    for engine in ["inside", "kernel"] {
        let mut command = preload.of(OsStr::new(&sim_text("gpusim")));
        command.args(WORK).env("LD_PRELOAD", &library);
        assert_asked_later(command, &folder.path().join(engine), engine);
    }
}

#[test]
#[ignore = "needs root and BPF: from inside nobody is traced before there is somebody who calls CUDA"]
fn who_is_started_while_its_parent_is_traced_is_asked_as_well() {
    let (folder, preload) = (tempfile::tempdir().expect("a folder"), Preload::new());
    let script = "until [ -e $WAIT_FOR ]; do sleep 0.05; done; trap 'kill $!' TERM; \"$@\" & wait $!; wait $!";
    let mut shell = preload.of(OsStr::new("bash"));
    shell
        .args(["-c", script, "launcher"])
        .arg(sim_text("gpusim"))
        .args(WORK);
    assert_asked_later(shell, &folder.path().join("begin"), "kernel");
}

/// Has a program execute itself anew when it is told to by SIGUSR1.
const EXECUTES_ITSELF: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static char words[4096], *argv[64];

static void execute(int signal)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", argv);
}

__attribute__((constructor)) static void prepare(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY);
	ssize_t bytes = read(fd, words, sizeof(words) - 1);
	int count = 0;

	close(fd);
	for (char *word = words; word < words + bytes && count < 63; word += strlen(word) + 1)
		argv[count++] = word;
	if (!strcmp(program_invocation_short_name, "gpusim"))
		signal(SIGUSR1, execute);
}
"#;

#[test]
#[ignore = "needs root and BPF: activities are asked for by both engines"]
fn a_program_is_followed_into_the_one_that_it_executes() {
    let (folder, preload) = (tempfile::tempdir().expect("a folder"), Preload::new());
    let library = compile(folder.path(), "executes.so", EXECUTES_ITSELF, &["-shared", "-fPIC"]);
    for engine in ["inside", "kernel"] {
        let logs = Logs::new();
        let mut command = preload.of(OsStr::new(&sim_text("gpusim")));
        command.env("LD_PRELOAD", &library);
        let program = started_as(command, &logs, &[]);
        let trace = attached(&program, engine);
        trace.until_written("\"activity\":\"kernel\"");
        program.signal(libc::SIGUSR1);
        let executed = "\"type\":\"process\",\"name\":\"exec\"";
        trace.until_written(executed);
        let lines_after = |what: &str| {
            let lines = trace.lines();
            let (_, after) = lines.split_once(executed).expect("it was written");
            after.contains(what)
        };
        eventually("calls", || lines_after("\"name\":\"cudaLaunchKernel\""));
        eventually("what its GPU executes", || lines_after("\"activity\":\"kernel\""));
        trace.stop().ok();
        program.signal(libc::SIGKILL);
        program.finish();
    }
}

#[test]
#[ignore = "needs root and BPF: activities are asked for by both engines"]
fn a_program_that_runs_tells_what_its_gpu_executes_as_often_as_somebody_asks() {
    let (preload, logs) = (Preload::new(), Logs::new());
    let program = started(&preload, &logs, &[]);
    let (mut traces, mut mapped) = (Vec::new(), Vec::new());
    for engine in ["inside", "kernel", "inside", "inside"] {
        traces.push((engine, traced(program.pid(), &["--engine", engine, "--gpu", "on"])));
        mapped.push(address_space_mib(program.pid()));
    }
    let without = traced(program.pid(), &["--engine", "inside", "--gpu", "off"]);
    assert_ends_well(program);
    let log = logs.only();
    for (engine, trace) in &traces {
        assert_executed(trace, &log, engine);
        assert!(trace.stderr.contains("CUPTI stays in gpusim"), "{}", trace.stderr);
    }
    assert!(
        mapped[3] < mapped[0] + SHARED_MIB,
        "what was shared stays mapped, MiB: {mapped:?}"
    );
    assert_eq!(without.of_type("gpu").count(), 0);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_gpuscope_that_is_killed_leaves_the_program_alone_and_the_next_one_is_told() {
    let (preload, logs) = (Preload::new(), Logs::new());
    let program = started(&preload, &logs, &[]);
    let pid = program.pid().to_string();
    for _ in 0..2 {
        let options = ["-p", &pid, "--engine", "inside", "--gpu", "on"];
        let running = Gpuscope::trace(&options).start().until_attached();
        running.signal(libc::SIGKILL);
        drop(running);
    }
    let trace = traced(program.pid(), &["--engine", "inside", "--gpu", "on"]);
    assert_ends_well(program);
    assert_executed(&trace, &logs.only(), "after two that were killed");
}

#[test]
#[ignore = "needs root and BPF: one of the programs carries no agent"]
fn where_a_program_that_runs_cannot_tell_it_is_said_why() {
    let (preload, logs) = (Preload::new(), Logs::new());
    let program = started(&preload, &logs, &[("GPUSIM_CUPTI", "held")]);
    let trace = traced(program.pid(), &["--engine", "inside", "--gpu", "on"]);
    let why = &trace.summary()["gpu"]["coverage"][0]["why"];
    assert!(
        why.as_str().is_some_and(|why| why.contains("another tool holds CUPTI")),
        "{why}"
    );
    assert!(
        trace.calls_of("cuLaunchKernel").count() > 0,
        "calls are traced all the same"
    );
    let other = Program::sim(&WORK);
    let pid = other.pid().to_string();
    let refused = Gpuscope::trace(&["-p", &pid, "--gpu", "on", "--duration", "1s"]).finish();
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("hint: gpuscope preload -- CMD"),
        "{}",
        refused.stderr
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn of_who_has_put_copies_into_graphs_while_it_was_recorded_no_copies_are_told_of_again() {
    let (preload, logs) = (Preload::new(), Logs::new());
    let command = preload.of(OsStr::new(&sim_text("gpusim")));
    let work = ["by-hand", "--steps", "1500", "--replays", "40000"];
    let program = started_doing(&work, command, &logs, &[]);
    let pid = program.pid().to_string();
    let first = Gpuscope::trace(&["-p", &pid, "--duration", "12s"]).finish().ok();
    let since = number(coverage(&first), "no_copies_ns");
    let second = traced(program.pid(), &[]);
    let told = coverage(&second);
    assert!(number(told, "no_copies_ns") > since, "{}", second.stderr);
    assert_eq!(told["seen"], true, "{}", second.stderr);
    let copies = copies(&second);
    assert!(copies.is_empty(), "{copies:?}");
    assert!(number(device(&second), "kernels") > 0, "{}", second.stderr);
    assert!(
        second.calls_of("cudaGraphLaunch").count() > 0,
        "it goes on: {}",
        second.stderr
    );
}

/// As XLA's library is called: what a graph of a program that has it holds is not known to who comes late.
#[test]
#[ignore = "needs the simulated CUDA"]
fn of_a_program_that_has_xla_no_copies_are_told_of_to_who_comes_late() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = compile(
        folder.path(),
        "xla_cuda_plugin.so",
        "int nothing;",
        &["-shared", "-fPIC"],
    );
    let logs = Logs::new();
    for (loaded, is_told) in [("", true), (library.to_str().expect("a path"), false)] {
        let preload = Preload::new();
        let mut command = preload.of(OsStr::new(&sim_text("gpusim")));
        command.env("LD_PRELOAD", loaded);
        let program = started_doing(&["train", "1000000"], command, &logs, &[]);
        let trace = traced(program.pid(), &[]);
        assert!(number(device(&trace), "kernels") > 0, "{}", trace.stderr);
        let copies = copies(&trace);
        assert_eq!(!copies.is_empty(), is_told, "{copies:?}");
        assert_eq!(coverage(&trace)["no_copies_ns"].is_null(), is_told, "{}", trace.stderr);
        program.signal(libc::SIGKILL);
        program.finish();
    }
}

/// A machine of which NVML says for how much of the time its device has a kernel running.
struct Machine(tempfile::TempDir);

impl Machine {
    fn with(percent: u32) -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("nvml"), format!("0 gpu_percent {percent}\n")).expect("a folder to write to");
        Machine(folder)
    }

    fn state(&self) -> (&str, &str) {
        ("GPUSIM_STATE", self.0.path().to_str().expect("a path"))
    }

    fn traced(&self, pid: u32, options: &[&str]) -> Trace {
        let (name, state) = self.state();
        let asks = tracing(pid, options).env(name, state);
        asks.env("GPUSCOPE_NVML", sim_text("libnvidia-ml.so.1")).finish().ok()
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn who_may_run_a_kernel_that_never_ends_is_not_asked_but_where_that_is_told() {
    let (preload, logs, machine) = (Preload::new(), Logs::new(), Machine::with(100));
    let program = started(&preload, &logs, &[machine.state()]);
    let spared = machine.traced(program.pid(), &[]);
    assert_eq!(spared.of_type("gpu").count(), 0, "{}", spared.stderr);
    for words in [
        "device 0 of process",
        "was never idle",
        "hint: --gpu on asks all the same",
    ] {
        assert!(spared.stderr.contains(words), "{words}: {}", spared.stderr);
    }
    assert!(spared.calls_of("cudaLaunchKernel").count() > 0, "{}", spared.stderr);
    let said = spared.stderr.matches("gpuscope: what the GPU executes is not recorded");
    assert_eq!(said.count(), 1, "{}", spared.stderr);
    let asked = machine.traced(program.pid(), &["--gpu", "on"]);
    assert!(asked.of_type("gpu").count() > 40, "{}", asked.stderr);
    assert_ends_well(program);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn whose_device_is_idle_now_and_then_is_asked() {
    let (preload, logs, machine) = (Preload::new(), Logs::new(), Machine::with(99));
    let program = started(&preload, &logs, &[machine.state()]);
    let asked = machine.traced(program.pid(), &[]);
    assert!(asked.of_type("gpu").count() > 40, "{}", asked.stderr);
    assert_ends_well(program);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn who_waits_for_cupti_is_said_and_nobody_is_asked_beside_it() {
    let (preload, logs) = (Preload::new(), Logs::new());
    let mut shell = preload.of(OsStr::new("bash"));
    let both = "trap 'kill $(jobs -p)' TERM; GPUSIM_CUPTI=waits \"$@\" & sleep 1; \"$@\" & wait; wait";
    shell.args(["-c", both, "launcher"]).arg(sim_text("gpusim"));
    let program = started_as(shell, &logs, &[]);
    eventually("both work", || logs.begun() > 1);
    let pid = program.pid().to_string();
    let trace = Gpuscope::trace(&["-p", &pid, "--duration", "1500ms"])
        .env("GPUSCOPE_NVML", "/nowhere/libnvidia-ml.so.1")
        .finish()
        .ok();
    for words in [
        "CUPTI has not answered",
        "it was not asked, as CUPTI of another process has not answered",
    ] {
        assert!(trace.stderr.contains(words), "{words}: {}", trace.stderr);
    }
    let told = trace.summary()["gpu"]["coverage"].as_array().expect("processes").len();
    assert_eq!(told, 1, "{}", trace.stderr);
    assert_ends_well(program);
}
