//! Who else touches the code of traced programs, and where gpuscope itself runs: what is missed is named, what is not is exact.

use crate::support::{Gpuscope, OwnSim, Running, Stepper, Trace, assert_same, eventually, number, sim, sim_text};
use gpuscope::elf::{ElfFile, probe_site};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const RUNTIME: &str = "libcudart.so.13";

fn trace_of(pid: u32) -> Running {
    Gpuscope::trace(&["-p", &pid.to_string()]).start().until_attached()
}

/// How often that process was seen to call cudaMalloc.
fn seen(trace: &Trace, pid: u32) -> usize {
    let calls = trace.calls_of("cudaMalloc");
    calls.filter(|call| number(call, "pid") == u64::from(pid)).count()
}

fn is_named(trace: &Trace, words: &[&str]) -> bool {
    let unseen = trace.unseen();
    unseen.iter().any(|line| words.iter().all(|word| line.contains(word)))
}

/// In a time namespace CLOCK_MONOTONIC is another one than that of events.
fn assert_exact_in_a_time_namespace(ahead: &str) {
    let gpusim = sim_text("gpusim");
    let run = Gpuscope::run(&["--chatty"], &[&gpusim, "late-dlopen"]);
    let trace = run.under(&["unshare", "-T", "--monotonic", ahead]).finish().ok();
    assert_same("events", &trace.ledger.visible(), &trace.written());
    for call in trace.calls() {
        let at = call["ts"].as_f64().expect("a time");
        assert!((0.0..1000.0).contains(&at), "since the start, not the offset: {call}");
    }
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn where_the_clock_is_ahead_every_call_is_seen_at_its_time() {
    assert_exact_in_a_time_namespace("100000");
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn where_the_clock_is_behind_every_call_is_seen_at_its_time() {
    assert_exact_in_a_time_namespace("-1000");
}

/// Where the function is probed.
fn place_of(library: &Path, function: &str) -> u64 {
    let elf = ElfFile::open(library).expect("a library");
    let symbols = elf.symbols_where(&|name| name == function).expect("symbols");
    let offset = symbols.first().expect("the function").file_offset;
    probe_site(&elf, offset).expect("a place").offset
}

/// Where process `pid` has that code.
fn address_of(pid: u32, library: &Path, offset: u64) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a process");
    let path = library.to_str().expect("UTF-8");
    let line = maps
        .lines()
        .find(|line| line.contains(" r-xp ") && line.ends_with(path));
    let fields: Vec<&str> = line.expect("mapped code").split_whitespace().collect();
    let hex = |digits: &str| u64::from_str_radix(digits, 16).expect("a number");
    let start = hex(fields[0].split('-').next().expect("an address"));
    start + offset - hex(fields[2])
}

/// Puts back what the file has there, as a debugger does that takes its breakpoint away.
fn put_back(pid: u32, library: &Path, offset: u64) {
    let mut byte = [0];
    let file = File::open(library).expect("a file");
    file.read_exact_at(&mut byte, offset).expect("a byte");
    let memory = OpenOptions::new()
        .write(true)
        .open(format!("/proc/{pid}/mem"))
        .expect("its memory");
    memory
        .write_all_at(&byte, address_of(pid, library, offset))
        .expect("a process that lets us");
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_probe_that_a_debugger_takes_away_is_missed_by_name() {
    let own = OwnSim::new();
    let library = own.file(RUNTIME);
    let mut stepper = Stepper::start(&[library.as_os_str()]);
    stepper.load(0);
    let running = trace_of(stepper.pid());
    stepper.call(3);
    put_back(stepper.pid(), &library, place_of(&library, "cudaMalloc"));
    stepper.call(4);
    let trace = running.stop().ok();
    assert_eq!(seen(&trace, stepper.pid()), 3);
    let pid = stepper.pid().to_string();
    let words = [library.to_str().expect("UTF-8"), ": 1 of ", &pid, "a debugger"];
    assert!(is_named(&trace, &words), "{:?}", trace.unseen());
    assert!(stepper.end().success());
}

/// gdb, told what to do line by line; ended when dropped.
struct Gdb {
    child: Child,
    told: TempDir,
    steps: usize,
}

impl Gdb {
    fn follow(pid: u32) -> Gdb {
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-q", "-p", &pid.to_string()]);
        gdb.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let told = tempfile::tempdir().expect("a folder");
        let mut gdb = Gdb {
            child: gdb.spawn().expect("gdb starts"),
            told,
            steps: 0,
        };
        gdb.tell("set pagination off");
        gdb.done();
        gdb
    }

    fn tell(&mut self, command: &str) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{command}").expect("gdb reads");
    }

    /// Waits until it has done all that it was told.
    fn done(&mut self) {
        self.steps += 1;
        let file = self.told.path().join(self.steps.to_string());
        self.tell(&format!("shell touch {}", file.display()));
        eventually("gdb does as it is told", || file.exists());
    }
}

impl Drop for Gdb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that is traced, and gdb, which came later and has a breakpoint where cudaMalloc is probed.
fn with_breakpoint(stepper: &mut Stepper, library: &Path) -> (Running, Gdb) {
    stepper.load(0);
    let running = trace_of(stepper.pid());
    stepper.call(3);
    let mut gdb = Gdb::follow(stepper.pid());
    let address = address_of(stepper.pid(), library, place_of(library, "cudaMalloc"));
    gdb.tell(&format!("break *{address:#x}"));
    gdb.done();
    gdb.tell("continue");
    // of those who share the byte the kernel asks gpuscope alone
    stepper.call(1);
    (running, gdb)
}

/// Has gdb stop the program.
fn stop(gdb: &mut Gdb, stepper: &Stepper) {
    // SAFETY: plain numbers; the program has not been waited for
    assert_eq!(unsafe { libc::kill(stepper.pid() as i32, libc::SIGINT) }, 0);
    gdb.done();
}

fn detach(mut gdb: Gdb, stepper: &Stepper) {
    stop(&mut gdb, stepper);
    gdb.tell("detach");
    gdb.done();
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_breakpoint_of_gdb_that_is_deleted_before_gpuscope_ends_harms_nobody() {
    let own = OwnSim::new();
    let library = own.file(RUNTIME);
    let mut stepper = Stepper::start(&[library.as_os_str()]);
    let (running, mut gdb) = with_breakpoint(&mut stepper, &library);
    stop(&mut gdb, &stepper);
    gdb.tell("delete");
    gdb.tell("continue");
    stepper.call(4);
    let trace = running.stop().ok();
    assert!(
        is_named(&trace, &["is followed by gdb", "SIGTRAP"]),
        "{:?}",
        trace.unseen()
    );
    let lacks_probes = is_named(&trace, &["probes are not in the code"]);
    assert!(seen(&trace, stepper.pid()) == 8 || lacks_probes, "{:?}", trace.unseen());
    detach(gdb, &stepper);
    stepper.call(5);
    assert!(stepper.end().success());
}

/// gdb puts back what it has found, which is our byte: nobody can keep it from that. What can be done is to say so in time.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_breakpoint_of_gdb_that_outlives_gpuscope_is_warned_of() {
    let own = OwnSim::new();
    let library = own.file(RUNTIME);
    let mut stepper = Stepper::start(&[library.as_os_str()]);
    let (running, gdb) = with_breakpoint(&mut stepper, &library);
    let trace = running.stop().ok();
    assert!(
        is_named(&trace, &["is followed by gdb", "SIGTRAP"]),
        "{:?}",
        trace.unseen()
    );
    detach(gdb, &stepper);
    assert!(stepper.end().success(), "it has called nothing since");
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn where_all_probes_are_in_place_none_is_missed() {
    let own = OwnSim::new();
    let mut stepper = Stepper::start(&[own.file(RUNTIME).as_os_str()]);
    stepper.load(0);
    let running = trace_of(stepper.pid());
    stepper.call(3);
    let trace = running.stop().ok();
    assert!(
        !is_named(&trace, &["probes are not in the code"]),
        "{:?}",
        trace.unseen()
    );
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_process_that_a_debugger_follows_is_named_when_it_is_attached_to() {
    let stepper = Stepper::start(&[sim(RUNTIME).as_os_str()]);
    // SAFETY: plain numbers; followed until it ends
    let followed = unsafe { libc::ptrace(libc::PTRACE_SEIZE, stepper.pid(), 0, 0) };
    assert_eq!(followed, 0);
    let running = trace_of(stepper.pid());
    assert!(running.stderr().contains("is followed by "), "{}", running.stderr());
    let trace = running.stop().ok();
    assert!(is_named(&trace, &["is followed by", "SIGTRAP"]), "{:?}", trace.unseen());
}

/// An overlay whose lower layer has the runtime; unmounted when dropped.
struct Overlay(TempDir);

impl Overlay {
    fn new() -> Overlay {
        let overlay = Overlay(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir(overlay.0.path().join("lower")).expect("a folder");
        std::fs::copy(sim(RUNTIME), overlay.0.path().join("lower").join(RUNTIME)).expect("a copy");
        overlay.shell(
            "mkdir t merged && mount -t tmpfs none t && mkdir t/upper t/work &&
             mount -t overlay overlay -o lowerdir=lower,upperdir=t/upper,workdir=t/work merged",
        );
        overlay
    }

    fn shell(&self, script: &str) {
        let mut shell = Command::new("sh");
        let status = shell.args(["-c", script]).current_dir(self.0.path()).status();
        assert!(status.expect("a shell").success(), "{script}");
    }

    fn library(&self) -> PathBuf {
        self.0.path().join("merged").join(RUNTIME)
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        unmount.args(["-l", "merged", "t"]).current_dir(self.0.path());
        let _ = unmount.status();
    }
}

/// The name of a mapped file leads to another one, and the numbers are the same.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_file_that_an_overlay_has_copied_since_it_was_mapped_is_named() {
    let overlay = Overlay::new();
    let library = overlay.library();
    let mut stepper = Stepper::start(&[library.as_os_str()]);
    stepper.load(0);
    overlay.shell(&format!("touch merged/{RUNTIME}"));
    let running = trace_of(stepper.pid());
    stepper.call(5);
    let trace = running.stop().ok();
    assert_eq!(seen(&trace, stepper.pid()), 0);
    let pid = stepper.pid().to_string();
    let words = [library.to_str().expect("UTF-8"), &pid, "an overlay copies"];
    assert!(is_named(&trace, &words), "{:?}", trace.unseen());
    assert!(!is_named(&trace, &["nested"]), "{:?}", trace.unseen());
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_file_that_an_overlay_copies_while_it_is_traced_is_seen_where_it_was_mapped_and_named_where_it_is() {
    let overlay = Overlay::new();
    let library = overlay.library();
    let start = || Stepper::start(&[library.as_os_str(), OsStr::new("/none")]);
    let (mut before, mut after) = (start(), start());
    before.load(0);
    let pids = [before.pid(), after.pid()].map(|pid| pid.to_string());
    let running = Gpuscope::trace(&["-p", &pids[0], "-p", &pids[1]])
        .start()
        .until_attached();
    before.call(2);
    overlay.shell(&format!("touch merged/{RUNTIME}"));
    before.call(3);
    after.load(0);
    after.call(4);
    let trace = running.stop().ok();
    assert_eq!(seen(&trace, before.pid()), 5);
    let is_missed = is_named(&trace, &[&pids[1], "an overlay copies"]);
    assert!(seen(&trace, after.pid()) == 4 || is_missed, "{:?}", trace.unseen());
}

/// Starts programs until one has that number.
fn with_number(pid: u32) -> Option<Stepper> {
    for _ in 0..500 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).expect("root may");
        let stepper = Stepper::start(&[sim(RUNTIME).as_os_str()]);
        if stepper.pid() == pid {
            return Some(stepper);
        }
    }
    None
}

/// The number of a traced process that has ended is another's soon.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn who_gets_the_number_of_a_traced_process_is_not_traced() {
    let start = || Stepper::start(&[sim(RUNTIME).as_os_str()]);
    let (first, mut other) = (start(), start());
    let pid = first.pid();
    let running = Gpuscope::trace(&["-p", &pid.to_string(), "-p", &other.pid().to_string()])
        .start()
        .until_attached();
    assert!(first.end().success());
    let mut heir = with_number(pid).expect("its number comes again");
    heir.load(0);
    heir.call(5);
    other.load(0);
    other.call(2);
    let trace = running.stop().ok();
    assert_eq!((seen(&trace, pid), seen(&trace, other.pid())), (0, 2));
}
