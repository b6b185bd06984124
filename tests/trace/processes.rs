//! Which processes and libraries are found: running ones, later ones, and those at unusual places.

use crate::support::{
    self, Counts, ENGINE, Gpuscope, Program, Stepper, Trace, assert_same, engine, eventually, sim, text,
};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const RUNTIME: &str = "libcudart.so.13";

/// A new file with the runtime in it, in a folder of that name.
fn copy_of_runtime(folder: &Path, name: impl AsRef<OsStr>) -> PathBuf {
    let path = folder.join(name.as_ref());
    std::fs::create_dir_all(&path).expect("a folder");
    std::fs::copy(sim(RUNTIME), path.join(RUNTIME)).expect("a copy");
    path.join(RUNTIME)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn trace_of(stepper: &Stepper, options: &[&str]) -> support::Running {
    let pid = stepper.pid().to_string();
    Gpuscope::trace(&[&["-p", &pid], options].concat())
        .start()
        .until_attached()
}

/// A stepper that a shell starts as `"$@"`, with the runtime loaded; its number is the shell's.
fn launched(script: &str, settings: &[(&str, &OsStr)]) -> Stepper {
    let mut shell = Command::new("bash");
    shell.args(["-c", script, "launcher"]).arg(Stepper::program());
    shell.envs(settings.iter().copied());
    let mut stepper = Stepper::start_in(&mut shell, &[sim(RUNTIME).as_os_str()]);
    stepper.load(0);
    stepper
}

/// The stepper's calls: it makes as many allocations as frees.
fn stepper_calls(times: u64) -> Counts {
    let names = ["cudaMalloc", "cudaFree"];
    names
        .map(|name| (("runtime".to_owned(), name.to_owned()), times))
        .into()
}

/// Those calls among the totals and among the events of one process.
fn assert_stepper(trace: &Trace, pid: u32, times: u64) {
    let only = |mut counts: Counts| {
        counts.retain(|key, _| stepper_calls(1).contains_key(key));
        counts
    };
    let what = format!(
        "process {pid}; unseen {:?}; attached {}",
        trace.unseen(),
        trace.summary()["attached"]
    );
    let expected = if times == 0 {
        Counts::new()
    } else {
        stepper_calls(times)
    };
    assert_same(&what, &expected, &only(trace.written_by(&[u64::from(pid)].into())));
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_running_process_is_traced_from_the_attach_to_the_detach() {
    let mut stepper = Stepper::start(&[sim(RUNTIME).as_os_str()]);
    stepper.load(0);
    stepper.call(10);
    let running = trace_of(&stepper, &[]);
    stepper.call(7);
    let trace = running.stop().ok();
    stepper.call(5);
    assert_stepper(&trace, stepper.pid(), 7);
    assert_same("unfinished", &Counts::new(), &trace.totals("unfinished"));
    assert!(stepper.end().success());
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn who_was_started_by_a_process_before_it_is_traced_is_traced_as_well() {
    let mut stepper = launched("sleep 1000 & (\"$@\"; true); kill %1", &[]);
    stepper.call(10);
    let running = trace_of(&stepper, &["--filter", "cudaMalloc", "--filter", "cudaFree"]);
    let said = running.stderr();
    assert!(said.contains(", also of 1 descendant that uses CUDA; Ctrl-C"), "{said}");
    stepper.call(7);
    assert!(stepper.end().success());
    // it ends when all of them have
    let trace = running.finish().ok();
    assert_same("all", &stepper_calls(7), &trace.totals("calls"));
    let hidden = |what: &String| what.contains("looked at");
    assert!(!trace.unseen().iter().any(hidden), "{:?}", trace.unseen());
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_launcher_may_end_before_what_it_has_started() {
    let folder = folder();
    let go = folder.path().join("go");
    let script = "exec 3<&0; \"$@\" <&3 3<&- & until [ -e \"$GO\" ]; do sleep 0.05; done";
    let mut stepper = launched(script, &[("GO", go.as_os_str())]);
    let running = trace_of(&stepper, &["--filter", "cudaMalloc", "--filter", "cudaFree"]);
    stepper.call(3);
    std::fs::write(&go, "").expect("a file");
    let stat = format!("/proc/{}/stat", stepper.pid());
    eventually("the launcher has ended", || {
        std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "))
    });
    stepper.call(4);
    assert!(stepper.end().success());
    assert_same("all", &stepper_calls(7), &running.finish().ok().totals("calls"));
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_library_loaded_while_traced_is_seen_from_its_first_call() {
    let mut stepper = Stepper::start(&[sim(RUNTIME).as_os_str()]);
    let running = trace_of(&stepper, &[]);
    for _ in 0..50 {
        stepper.load(0);
        stepper.call(1);
        stepper.unload();
    }
    let trace = running.stop().ok();
    assert_stepper(&trace, stepper.pid(), 50);
}

/// Without a command to hold back, the first calls of a new library may pass; the library is picked up.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn trace_all_picks_up_new_processes_and_libraries() {
    let folder = folder();
    let path = copy_of_runtime(folder.path(), "new");
    let running = Gpuscope::trace(&["--all", "--filter", "cudaMalloc", "--filter", "cudaFree"])
        .start()
        .until_attached();
    let mut stepper = Stepper::start(&[path.as_os_str()]);
    stepper.load(0);
    eventually("the new library is probed", || {
        running.probes_in(stepper.pid(), "new/libcudart.so.13") > 0
    });
    stepper.call(9);
    let mut second = Stepper::start(&[path.as_os_str()]);
    second.load(0);
    second.call(4);
    let trace = running.stop().ok();
    assert_stepper(&trace, stepper.pid(), 9);
    assert_stepper(&trace, second.pid(), 4);
}

/// The same path is another file in each mount namespace.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn each_mount_namespace_has_its_own_library() {
    let folder = folder();
    let (first, second) = (copy_of_runtime(folder.path(), "a"), copy_of_runtime(folder.path(), "b"));
    let seen = copy_of_runtime(folder.path(), "seen");
    let inside = |file: &Path| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", "mount --bind \"$0\" \"$1\" && shift && exec \"$@\""]);
        command.args([file, &seen]).arg(Stepper::program());
        Stepper::start_in(&mut command, &[seen.as_os_str()])
    };
    let (mut one, mut two, mut outside) = (inside(&first), inside(&second), Stepper::start(&[seen.as_os_str()]));
    let pids = [one.pid(), two.pid(), outside.pid()].map(|pid| pid.to_string());
    let running = Gpuscope::trace(&["-p", &pids[0], "-p", &pids[1], "-p", &pids[2]])
        .start()
        .until_attached();
    for (stepper, times) in [(&mut one, 2), (&mut two, 3), (&mut outside, 4)] {
        stepper.load(0);
        stepper.call(times);
    }
    let trace = running.stop().ok();
    for (stepper, times) in [(&one, 2), (&two, 3), (&outside, 4)] {
        assert_stepper(&trace, stepper.pid(), times);
    }
}

/// Bind mounts, hard links and overlays show one file at several places: it is probed once.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_file_at_several_places_is_counted_once() {
    let folder = folder();
    let original = copy_of_runtime(folder.path(), "lower");
    let link = folder.path().join("linked.so");
    std::fs::hard_link(&original, &link).expect("a link");
    for name in ["upper", "work", "merged", "bound"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let script = "cd \"$0\" && mount -t tmpfs none bound && mkdir bound/upper bound/work &&
        mount -t overlay overlay -o lowerdir=lower,upperdir=bound/upper,workdir=bound/work merged && exec \"$@\"";
    let merged = folder.path().join("merged").join(RUNTIME);
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script])
        .arg(folder.path())
        .arg(Stepper::program());
    let paths = [original.as_os_str(), link.as_os_str(), merged.as_os_str()];
    let mut stepper = Stepper::start_in(&mut command, &paths);
    let running = trace_of(&stepper, &[]);
    for index in 0..paths.len() {
        stepper.load(index);
        stepper.call(3);
    }
    let trace = running.stop().ok();
    assert_stepper(&trace, stepper.pid(), 9);
}

/// A root of its own, where the runtime lies in `/`.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_process_in_a_root_and_pid_namespace_of_its_own_is_found() {
    let folder = folder();
    copy_of_runtime(folder.path(), "");
    let script = "cd \"$0\" && mkdir -p usr lib lib64 bin proc sim tmp && for d in usr lib lib64 bin; do
        mount --bind /$d $d || exit; done && mount -t proc none proc && mount --bind \"$LD_LIBRARY_PATH\" sim &&
        cp \"$1\" stepper && shift && LD_LIBRARY_PATH=/sim exec chroot . /stepper \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["-m", "-p", "-f", "sh", "-c", script])
        .arg(folder.path())
        .arg(Stepper::program());
    let mut stepper = Stepper::start_in(&mut command, &[OsStr::new("/libcudart.so.13")]);
    stepper.load(0);
    let pid = only_child(stepper.pid());
    let running = Gpuscope::trace(&["-p", &pid.to_string()]).start().until_attached();
    stepper.call(6);
    let trace = running.stop().ok();
    assert_stepper(&trace, pid, 6);
}

fn only_child(pid: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("a process");
    children.trim().parse().expect("one child")
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_library_deleted_or_replaced_while_mapped_is_traced() {
    let folder = folder();
    let (deleted, replaced) = (copy_of_runtime(folder.path(), "a"), copy_of_runtime(folder.path(), "b"));
    let mut first = Stepper::start(&[deleted.as_os_str()]);
    let mut second = Stepper::start(&[replaced.as_os_str()]);
    first.load(0);
    second.load(0);
    std::fs::remove_file(&deleted).expect("deleted");
    let (one, two) = (first.pid().to_string(), second.pid().to_string());
    let mut third = Stepper::start(&[replaced.as_os_str()]);
    let three = third.pid().to_string();
    let running = Gpuscope::trace(&["-p", &one, "-p", &two, "-p", &three])
        .start()
        .until_attached();
    first.call(3);
    // as a package manager does
    let new = copy_of_runtime(folder.path(), "c");
    std::fs::rename(new, &replaced).expect("replaced");
    second.call(4);
    third.load(0);
    third.call(5);
    let trace = running.stop().ok();
    for (stepper, times) in [(&first, 3), (&second, 4), (&third, 5)] {
        assert_stepper(&trace, stepper.pid(), times);
    }
}

/// Writing into a probed file would break the next process that maps it: gpuscope lets go of it first.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_library_overwritten_in_place_is_let_go_of() {
    let folder = folder();
    let path = copy_of_runtime(folder.path(), "a");
    let mut stepper = Stepper::start(&[path.as_os_str()]);
    stepper.load(0);
    stepper.call(1);
    let running = trace_of(&stepper, &[]);
    stepper.call(2);
    assert!(running.probes_in(stepper.pid(), RUNTIME) > 0, "it is probed");
    let copied = Command::new("dd")
        .arg(format!("if={}", sim(RUNTIME).display()))
        .arg(format!("of={}", path.display()))
        .args(["conv=notrunc", "bs=1M", "status=none"])
        .status();
    assert!(copied.expect("dd runs").success());
    assert_eq!(
        running.probes_in(stepper.pid(), RUNTIME),
        0,
        "it was let go of before it was written"
    );
    let mut next = Stepper::start(&[path.as_os_str()]);
    next.load(0);
    next.call(3);
    assert!(next.end().success(), "the next process runs");
    let trace = running.stop().ok();
    assert!(
        trace.stderr.contains("is being overwritten: let go of it"),
        "{}",
        trace.stderr
    );
    assert!(
        trace.unseen().iter().any(|line| line.contains("changed on disk")),
        "{:?}",
        trace.unseen()
    );
    assert_stepper(&trace, stepper.pid(), 2);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn paths_may_hold_any_bytes() {
    let folder = folder();
    let names: [&[u8]; 5] = [
        b"with spaces",
        b"new\nline",
        b"not \xff utf-8",
        b"quote\"s'",
        b"\x1b[31mred \\012",
    ];
    let paths = names.map(|name| copy_of_runtime(folder.path(), OsString::from_vec(name.to_vec())));
    let libraries: Vec<&OsStr> = paths.iter().map(|path| path.as_os_str()).collect();
    let mut stepper = Stepper::start(&libraries);
    let running = trace_of(&stepper, &[]);
    for index in 0..paths.len() {
        stepper.load(index);
        stepper.call(1);
    }
    let trace = running.stop().ok();
    assert_stepper(&trace, stepper.pid(), paths.len() as u64);
    assert!(!trace.stderr.contains('\u{1b}'), "{}", trace.stderr);
    let attached = trace.summary()["attached"].as_array().expect("attached").len();
    assert!(attached > names.len(), "{}", trace.summary());
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_name_with_terminal_codes_is_shown_harmlessly() {
    let mut stepper = Stepper::start(&[sim(RUNTIME).as_os_str()]);
    stepper.load(0);
    stepper.rename("\u{1b}[2J\"\\\t\u{7f}\u{202e}x");
    let running = trace_of(&stepper, &[]);
    let pid = stepper.pid().to_string();
    let as_text = Gpuscope::new(["trace", "--color", "always", "-p", &pid])
        .start()
        .until_attached();
    stepper.call(1);
    let (lines, shown) = (running.stop().ok(), as_text.stop().ok());
    let comms: Vec<String> = lines.calls_of("cudaMalloc").map(|call| text(call, "comm")).collect();
    assert_eq!(comms, ["\u{1b}[2J\"\\\t\u{7f}\u{202e}x"], "JSON has it as it is");
    let own = ["\u{1b}[2m", "\u{1b}[1m", "\u{1b}[0m", "\u{1b}[1;31m"];
    let rest = own
        .iter()
        .fold(shown.stdout.clone(), |text, code| text.replace(code, ""));
    let line = rest.lines().find(|line| line.contains("cudaMalloc(")).expect("a line");
    assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
}

/// One CPU for the program that waits and for gpuscope that it waits for.
#[test]
#[ignore = "needs the simulated CUDA"]
fn one_cpu_is_enough() {
    let gpuscope = env!("CARGO_BIN_EXE_gpuscope");
    let folder = folder();
    let lines = folder.path().join("lines.jsonl");
    let mut command = Command::new("taskset");
    command.args(["-c", "0", gpuscope, "run", "--chatty", "-o"]).arg(&lines);
    command
        .arg("--")
        .arg(sim("gpusim"))
        .arg("late-dlopen")
        .env(ENGINE, engine())
        .stderr(Stdio::null());
    let ended = Program::start(&mut command).finish();
    assert!(ended.status.success());
    let text = std::fs::read_to_string(&lines).expect("lines");
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let mut written = Counts::new();
    for call in records.filter(|record| record["type"] == "userspace") {
        *written
            .entry((support::text(&call, "layer"), support::text(&call, "name")))
            .or_default() += 1;
    }
    assert_same("events", &ended.ledger.visible(), &written);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_process_that_ends_while_it_is_attached_to_is_no_trouble() {
    for delay in ["0.3", "1", "2"] {
        let program = Program::start(Command::new("sleep").arg(delay));
        let pid = program.pid().to_string();
        let reaper = std::thread::spawn(move || program.finish());
        let trace = Gpuscope::trace(&["-p", &pid]).finish();
        assert!([0, 1].contains(&trace.code()), "{}", trace.stderr);
        if trace.code() == 1 {
            assert!(trace.stderr.contains(&format!("process {pid}")), "{}", trace.stderr);
        }
        assert!(!trace.stderr.contains("panicked"), "{}", trace.stderr);
        assert!(reaper.join().expect("it ended").status.success());
    }
}

/// A 32-bit program that waits for a signal.
fn program_of_32_bits(folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    const CODE: [u8; 7] = [0xb8, 29, 0, 0, 0, 0xcd, 0x80]; // pause() by int 0x80
    const START: u32 = 0x0804_8000;
    const HEAD: u32 = 52 + 32;
    let length = HEAD + CODE.len() as u32;
    let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let halves = |bytes: &mut Vec<u8>, all: &[u16]| all.iter().for_each(|half| bytes.extend(half.to_le_bytes()));
    let words = |bytes: &mut Vec<u8>, all: &[u32]| all.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    halves(&mut bytes, &[2, 3]); // an executable for the i386
    words(&mut bytes, &[1, START + HEAD, 52, 0, 0]);
    halves(&mut bytes, &[52, 32, 1, 0, 0, 0]);
    words(&mut bytes, &[1, 0, START, START, length, length, 5, 0x1000]); // one segment, read and run
    bytes.extend(CODE);
    let path = folder.join("small32");
    std::fs::write(&path, bytes).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made a program");
    path
}

#[test]
#[ignore = "needs root and BPF: it looks at each program that begins"]
fn a_32_bit_program_is_said_not_to_be_seen() {
    let folder = folder();
    let program = program_of_32_bits(folder.path());
    let script = format!(
        "{} & sleep 1; kill $!; {} train 1",
        program.display(),
        support::sim_text("gpusim")
    );
    let trace = Gpuscope::script(&[], &script).finish();
    let said: Vec<String> = trace
        .unseen()
        .into_iter()
        .filter(|line| line.contains("32-bit"))
        .collect();
    assert_eq!(said.len(), 1, "{said:?}\n{}", trace.stderr);
    assert!(
        said[0].starts_with("small32 ") && said[0].contains("nor of the kernel driver"),
        "{said:?}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_process_that_ends_has_its_own_name_and_not_that_of_its_last_thread() {
    let program = "import ctypes, threading, time
libc = ctypes.CDLL(None)
def last():
    libc.prctl(15, b'last', 0, 0, 0)
    time.sleep(0.3)
    libc.syscall(60, 0)
threading.Thread(target=last).start()
libc.syscall(60, 0)";
    let trace = Gpuscope::run(&[], &["python3", "-c", program]).finish();
    // python3 may be a script that finds the real one
    let ends = trace.of_type("process").filter(|record| record["name"] == "exit");
    assert_eq!(
        ends.last().map(|record| text(record, "comm")).as_deref(),
        Some("python3")
    );
}
