//! Libraries that no process has mapped before, and programs that nobody announced: what of them is counted, and what is
//! said where something is missing.

use crate::support::{
    Counts, Ended, Gpuscope, Program, Running, Trace, assert_same, eventually, number, sim_folder, text,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use tempfile::TempDir;

/// The simulated program and its libraries, in files that nobody has ever mapped.
struct Fresh(TempDir);

impl Fresh {
    fn new() -> Fresh {
        let folder = tempfile::tempdir().expect("a folder");
        for file in std::fs::read_dir(sim_folder()).expect("a folder") {
            let file = file.expect("a file").path();
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            if name.contains(".so.") || name == "gpusim" {
                std::fs::copy(&file, folder.path().join(&name)).expect("a copy");
            }
        }
        Fresh(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn program(&self) -> PathBuf {
        self.path().join("gpusim")
    }

    /// `gpusim ARGUMENTS…` with its own libraries, from its first instruction to its end.
    fn run(&self, arguments: &[&str]) -> (u32, Ended) {
        let script = "exec env LD_LIBRARY_PATH=\"$0\" \"$@\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(self.path()).arg(self.program());
        let program = Program::start(shell.args(arguments));
        let pid = program.pid();
        let ended = program.finish();
        assert!(ended.status.success(), "{}", ended.status);
        (pid, ended)
    }
}

/// The process of the last report of `leaks`, if it was seen at all.
fn held_by(trace: &Trace, pid: u32) -> Option<&Value> {
    let last = trace.records.last().expect("a report");
    let processes = last["processes"].as_array().expect("processes");
    processes
        .iter()
        .find(|process| number(process, "pid") == u64::from(pid))
}

/// What the driver was asked for and what it was given back, as far as was seen.
fn allocated(process: &Value) -> (u64, u64) {
    let families = process["families"].as_array().expect("families").iter();
    let own: Vec<&Value> = families
        .filter(|one| !["registered", "mapped", "reserved"].contains(&text(one, "family").as_str()))
        .collect();
    let sum = |field| own.iter().map(|family| number(family, field)).sum();
    (sum("allocated_bytes"), sum("freed_bytes"))
}

fn watching(gpuscope: Gpuscope) -> Running {
    gpuscope.start().until_attached()
}

/// Every time other files than those that were there before.
const TIMES: usize = 20;

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn what_a_process_holds_is_exact_from_its_first_call() {
    let running = watching(Gpuscope::leaks(&["--all"], &[]));
    let ran: Vec<(u32, Ended)> = (0..TIMES).map(|_| Fresh::new().run(&["leak", "20"])).collect();
    let trace = running.stop().ok();
    for (pid, ended) in ran {
        let process = held_by(&trace, pid).unwrap_or_else(|| panic!("{pid}\n{}", trace.stderr));
        let truth = (ended.ledger.bytes["alloc"], ended.ledger.bytes["free"]);
        assert_eq!(allocated(process), truth);
        let said = (&process["late"], &process["exact"]);
        assert_eq!(
            said,
            (&false.into(), &true.into()),
            "{pid}: {}",
            trace.records.last().expect("a report")["notes"]
        );
    }
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn calls_are_counted_from_the_first_one() {
    let running = watching(Gpuscope::trace(&["--all", "--chatty"]));
    let ran: Vec<(u32, Ended)> = (0..TIMES).map(|_| Fresh::new().run(&["leak", "20"])).collect();
    let trace = running.stop().ok();
    for (pid, ended) in ran {
        let seen: Counts = trace.written_by(&[u64::from(pid)].into());
        assert_same(&format!("process {pid}"), &ended.ledger.visible(), &seen);
    }
    let early: Vec<String> = trace
        .unseen()
        .into_iter()
        .filter(|words| words.contains("were probed"))
        .collect();
    assert_eq!(early, Vec::<String>::new());
}

/// All of them stop for the same files, for two seconds at most: on a busy machine some may have to be called late.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn many_that_come_at_once_are_each_counted_from_the_first_call_or_it_is_said() {
    let running = watching(Gpuscope::trace(&["--all", "--chatty"]));
    let fresh = Fresh::new();
    let ran: Vec<(u32, Ended)> = std::thread::scope(|scope| {
        let each: Vec<_> = (0..TIMES).map(|_| scope.spawn(|| fresh.run(&["train", "1"]))).collect();
        each.into_iter().map(|one| one.join().expect("a run")).collect()
    });
    let trace = running.stop().ok();
    let unseen = trace.unseen().join("\n");
    for (pid, ended) in ran {
        // what ended before it could be looked at has no name
        let is_said = unseen.contains(&format!("gpusim {pid} ran for")) || unseen.contains("were not looked at before");
        if !is_said {
            let seen: Counts = trace.written_by(&[u64::from(pid)].into());
            assert_same(&format!("process {pid}; {unseen}"), &ended.ledger.visible(), &seen);
        }
    }
}

/// A debugger holds the thread already: it cannot be held once more, and waits in the kernel instead.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_process_that_is_debugged_is_counted_from_its_first_call_too() {
    let running = watching(Gpuscope::trace(&["--all", "--chatty"]));
    let fresh = Fresh::new();
    let script = "exec strace -f -o /dev/null env LD_LIBRARY_PATH=\"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(fresh.path()).arg(fresh.program());
    let ended = Program::start(shell.args(["leak", "20"])).finish();
    let trace = running.stop().ok();
    assert!(ended.status.success());
    let pids = ended.ledger.pids.iter().copied().collect();
    assert_same("a debugged process", &ended.ledger.visible(), &trace.written_by(&pids));
}

/// Has each lease that a thread takes of files there, which it does of each that it attaches to, take longer than anybody is held;
/// ended when dropped.
struct Slowed(Child);

impl Slowed {
    fn new(pid: u32, folder: &Path) -> Slowed {
        let mut strace = Command::new("strace");
        strace.args(["-qq", "-o", "/dev/null", "-e", "inject=fcntl:delay_enter=2500000"]);
        for file in std::fs::read_dir(folder).expect("a folder") {
            strace.arg("-P").arg(file.expect("a file").path());
        }
        let slowed = Slowed(strace.args(["-p", &pid.to_string()]).spawn().expect("strace starts"));
        let follower = slowed.0.id().to_string();
        eventually("strace to follow gpuscope", || status(pid, "TracerPid") == follower);
        slowed
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        // SAFETY: plain numbers; the child has not been waited for
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

fn status(pid: u32, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let value = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(":")?.trim().to_owned());
    text.lines().find_map(value).expect("a field")
}

/// `sh -c …`: says which process it is, and becomes the program when it is told to.
fn told_to_start(fresh: &Fresh) -> Vec<String> {
    let script = "mkfifo \"$0/go\"; echo $$ >\"$0/new\"; mv \"$0/new\" \"$0/pid\"; \
        read go <\"$0/go\"; export LD_LIBRARY_PATH=\"$0\"; exec \"$@\"";
    let (folder, program) = (
        fresh.path().display().to_string(),
        fresh.program().display().to_string(),
    );
    ["sh", "-c", script, &folder, &program, "threads", "2", "0"]
        .map(str::to_owned)
        .to_vec()
}

/// Lets that program start while `gpuscope` is slow, until it is probed.
fn start_beside_a_slow_one(fresh: &Fresh, gpuscope: &Running) -> u32 {
    let file = |name| fresh.path().join(name);
    eventually("the script", || file("pid").exists());
    let pid = std::fs::read_to_string(file("pid")).expect("a file");
    let pid: u32 = pid.trim().parse().expect("a number");
    let slowed = Slowed::new(gpuscope.pid(), fresh.path());
    std::fs::write(file("go"), "go\n").expect("a pipe");
    eventually("it runs, whatever gpuscope does", || status(pid, "Threads") == "3");
    assert_eq!(status(pid, "TracerPid"), "0");
    drop(slowed);
    eventually("it is probed", || gpuscope.probes_in(pid, "libcuda.so.1") > 0);
    pid
}

fn end(pid: u32) {
    // SAFETY: plain numbers; nobody has waited for it
    unsafe { libc::kill(pid as i32, libc::SIGTERM) };
}

fn assert_is_called_late(trace: &Trace, pid: u32, how: &str) {
    let unseen = trace.unseen().join("\n");
    let words = [
        &format!("gpusim {pid} ran for "),
        "did not wait until their probes were in place",
    ];
    for words in words {
        assert!(unseen.contains(words), "{how}: {unseen}");
    }
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn whoever_waits_too_long_is_let_go_and_called_late() {
    let fresh = Fresh::new();
    let script = told_to_start(&fresh);
    let command: Vec<&str> = script.iter().map(String::as_str).collect();
    let running = Gpuscope::run(&[], &command).with_usual_patience().start();
    let pid = start_beside_a_slow_one(&fresh, &running);
    end(pid);
    assert_is_called_late(&running.finish().ok(), pid, "run");
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn whoever_waits_too_long_is_called_late_also_where_it_or_all_are_traced() {
    for all in [false, true] {
        let fresh = Fresh::new();
        let script = told_to_start(&fresh);
        let program = Program::start(Command::new(&script[0]).args(&script[1..]));
        let pid = program.pid().to_string();
        let whom: &[&str] = if all { &["--all"] } else { &["-p", &pid] };
        let running = watching(Gpuscope::trace(whom).with_usual_patience());
        let pid = start_beside_a_slow_one(&fresh, &running);
        // one that ends while it is looked at is said to have ended instead
        let trace = running.stop().ok();
        end(pid);
        assert!(program.finish().status.success());
        assert_is_called_late(&trace, pid, &format!("{whom:?}"));
    }
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn what_a_process_holds_that_was_let_go_is_not_exact() {
    let fresh = Fresh::new();
    let script = told_to_start(&fresh);
    let command: Vec<&str> = script.iter().map(String::as_str).collect();
    let running = Gpuscope::leaks(&[], &command).with_usual_patience().start();
    let pid = start_beside_a_slow_one(&fresh, &running);
    end(pid);
    let trace = running.finish().ok();
    let process = held_by(&trace, pid).unwrap_or_else(|| panic!("{pid}: {:?}", trace.records.last()));
    assert_eq!((&process["late"], &process["exact"]), (&true.into(), &false.into()));
}
