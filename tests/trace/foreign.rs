//! Files of other people's programs: reached by no link that was planted, not probed while somebody may overwrite them.

use crate::support::{self, Gpuscope, Hanging, Running, Stepper, Trace, changed_beyond, compile, eventually, sim};
use object::{Object, ObjectSection};
use std::ffi::{CString, OsStr};
use std::fs::OpenOptions;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNTIME: &str = "libcudart.so.13";

fn copy_of_runtime(folder: &Path) -> PathBuf {
    let path = folder.join(RUNTIME);
    std::fs::copy(sim(RUNTIME), &path).expect("a copy");
    path
}

fn trace_of(pid: u32) -> Running {
    Gpuscope::trace(&["-p", &pid.to_string()]).start()
}

fn calls(trace: &Trace, pid: u32) -> u64 {
    let written = trace.written_by(&[u64::from(pid)].into());
    let name = ("runtime".to_owned(), "cudaMalloc".to_owned());
    written.get(&name).copied().unwrap_or(0)
}

fn said(trace: &Trace, words: &str) -> bool {
    trace.unseen().iter().any(|line| line.contains(words))
}

/// Tells of whoever opens a file, be it for a moment.
struct Watch(OwnedFd);

impl Watch {
    fn of(path: &Path) -> Watch {
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the name ends with NUL; the descriptor is nobody else's
        unsafe {
            let watch = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
            assert!(libc::inotify_add_watch(watch, name.as_ptr(), libc::IN_OPEN) >= 0);
            Watch(OwnedFd::from_raw_fd(watch))
        }
    }

    fn was_opened(&self) -> bool {
        use std::os::fd::AsRawFd;
        let mut events = [0_u8; 4096];
        // SAFETY: the buffer is as large as is said
        unsafe { libc::read(self.0.as_raw_fd(), events.as_mut_ptr().cast(), events.len()) > 0 }
    }
}

fn make_fifo(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
    // SAFETY: the name ends with NUL
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

/// A mapped library's name is made to lead to a file that its owner may not open: nobody opens that for him.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_link_planted_where_a_mapped_library_was_is_not_followed() {
    let (folder, private) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let path = copy_of_runtime(folder.path());
    let mut stepper = Stepper::start(&[path.as_os_str()]);
    stepper.load(0);
    let fifo = private.path().join("fifo");
    make_fifo(&fifo);
    std::fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink(&fifo, &path).expect("a link");
    let watch = Watch::of(&fifo);
    let running = trace_of(stepper.pid()).until_attached();
    stepper.call(3);
    let trace = running.stop().ok();
    assert!(!watch.was_opened(), "the file behind the planted link was opened");
    assert_eq!(
        calls(&trace, stepper.pid()),
        3,
        "what is mapped is traced: {:?}",
        trace.unseen()
    );
}

/// Whoever may write into a library may do so at any moment, and programs that load it then must not meet our probes.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_library_that_is_open_for_writing_is_probed_when_it_no_longer_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy_of_runtime(folder.path());
    let writer = OpenOptions::new().write(true).open(&path).expect("a file");
    let mut stepper = Stepper::start(&[path.as_os_str()]);
    stepper.load(0);
    let running = trace_of(stepper.pid()).until_attached();
    stepper.call(1);
    assert_eq!(running.probes_in(stepper.pid(), RUNTIME), 0, "it is not probed");
    overwrite(&path);
    let mut next = Stepper::start(&[path.as_os_str()]);
    next.load(0);
    next.call(1);
    assert!(next.end().success(), "who loads what was overwritten runs");
    drop(writer);
    eventually("it is probed", || running.probes_in(stepper.pid(), RUNTIME) > 0);
    stepper.call(2);
    let trace = running.stop().ok();
    assert_eq!(calls(&trace, stepper.pid()), 2);
    assert!(said(&trace, "open for writing"), "{:?}", trace.unseen());
    assert!(
        said(&trace, &format!(" {} ran for ", stepper.pid())),
        "{:?}",
        trace.unseen()
    );
}

fn overwrite(path: &Path) {
    let copied = Command::new("dd")
        .args([
            OsStr::new("conv=notrunc"),
            OsStr::new("bs=1M"),
            OsStr::new("status=none"),
        ])
        .arg(format!("if={}", sim(RUNTIME).display()))
        .arg(format!("of={}", path.display()))
        .status();
    assert!(copied.expect("dd runs").success());
}

/// The kernel does not wait for ever for who has a lease: a tracer that is stopped is ended before that.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_library_that_is_overwritten_while_gpuscope_is_stopped_harms_no_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy_of_runtime(folder.path());
    let mut stepper = Stepper::start(&[path.as_os_str()]);
    stepper.load(0);
    let running = trace_of(stepper.pid()).until_attached();
    stepper.call(1);
    let unknown = tempfile::tempdir().expect("a folder");
    let mut control = Stepper::start(&[copy_of_runtime(unknown.path()).as_os_str()]);
    control.load(0);
    running.signal(libc::SIGSTOP);
    overwrite(&path);
    assert_eq!(
        changed_beyond(control.pid(), stepper.pid(), RUNTIME),
        [0_u64; 0],
        "no probe of ours is left when it is written to"
    );
    let mut next = Stepper::start(&[path.as_os_str()]);
    next.load(0);
    next.call(2);
    assert!(next.end().success(), "who loads it then runs");
    assert!(stepper.end().success(), "who has it runs on");
    assert!(
        running.stderr().contains("did not let go of a file"),
        "{}",
        running.stderr()
    );
}

/// A copy of the runtime in a file system that can be made to hang, and a program that has loaded it.
fn loaded_from(hanging: &Hanging) -> Stepper {
    let mut stepper = Stepper::start(&[hanging.file().as_os_str()]);
    stepper.load(0);
    stepper.call(1);
    stepper
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_library_on_a_file_system_that_hangs_keeps_nobody_else_from_being_traced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy_of_runtime(folder.path());
    let hanging = Hanging::with(&path);
    let mut stuck = loaded_from(&hanging);
    let mut other = Stepper::start(&[path.as_os_str()]);
    hanging.hang();
    let (one, two) = (stuck.pid().to_string(), other.pid().to_string());
    let running = Gpuscope::trace(&["-p", &one, "-p", &two]).start().until_attached();
    other.load(0);
    other.call(3);
    stuck.call(1);
    let trace = running.stop().ok();
    assert_eq!(calls(&trace, other.pid()), 3, "{:?}", trace.unseen());
    assert_eq!(calls(&trace, stuck.pid()), 0);
    assert!(said(&trace, "does not answer"), "{:?}", trace.unseen());
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_library_is_probed_when_its_file_system_answers_again() {
    let hanging = Hanging::with(&sim(RUNTIME));
    let mut stepper = loaded_from(&hanging);
    hanging.hang();
    let running = trace_of(stepper.pid()).until_attached();
    hanging.go_on();
    eventually("it is probed", || running.probes_in(stepper.pid(), "/file") > 0);
    stepper.call(2);
    let trace = running.stop().ok();
    assert_eq!(calls(&trace, stepper.pid()), 2, "{:?}", trace.unseen());
    assert!(said(&trace, "no lease"), "{:?}", trace.unseen());
}

/// An overlay whose file lies in the layer below; gone when dropped.
struct Overlay(tempfile::TempDir);

impl Overlay {
    fn over(file: &Path) -> Overlay {
        let folder = tempfile::tempdir().expect("a folder");
        let [top, merged] = ["top", "merged"].map(|name| folder.path().join(name));
        for path in [&top, &merged] {
            std::fs::create_dir(path).expect("a folder");
        }
        let below = file.parent().expect("a folder");
        let layers = format!("lowerdir={}:{}", top.display(), below.display());
        let mut mount = Command::new("mount");
        mount.args(["-t", "overlay", "overlay", "-o", &layers]).arg(&merged);
        assert!(mount.status().expect("mount").success());
        Overlay(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("merged/file")
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.0.path().join("merged"))
            .status();
    }
}

/// Opening and closing a file of an overlay is left to the layer below.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn an_overlay_hangs_as_the_file_system_below_it_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy_of_runtime(folder.path());
    let hanging = Hanging::with(&path);
    let overlay = Overlay::over(&hanging.file());
    let mut stuck = Stepper::start(&[overlay.file().as_os_str()]);
    stuck.load(0);
    let mut other = Stepper::start(&[path.as_os_str()]);
    hanging.hang();
    let (one, two) = (stuck.pid().to_string(), other.pid().to_string());
    let running = Gpuscope::trace(&["-p", &one, "-p", &two]).start().until_attached();
    other.load(0);
    other.call(3);
    let trace = running.stop().ok();
    assert_eq!(calls(&trace, other.pid()), 3, "{:?}", trace.unseen());
    assert!(said(&trace, "does not answer"), "{:?}", trace.unseen());
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn an_overlay_keeps_a_lease_where_the_file_systems_below_it_do() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(sim(RUNTIME), folder.path().join("file")).expect("a copy");
    let hanging = Hanging::with(&sim(RUNTIME));
    for (file, leased) in [(folder.path().join("file"), true), (hanging.file(), false)] {
        let overlay = Overlay::over(&file);
        let mut stepper = Stepper::start(&[overlay.file().as_os_str()]);
        stepper.load(0);
        let running = trace_of(stepper.pid()).until_attached();
        stepper.call(2);
        let trace = running.stop().ok();
        assert_eq!(calls(&trace, stepper.pid()), 2, "{:?}", trace.unseen());
        assert_eq!(!said(&trace, "no lease"), leased, "{:?}", trace.unseen());
    }
}

/// What looks like an interpreter has its memory in a file that cannot be read: reading it would never end.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn memory_that_cannot_be_read_keeps_nobody_from_being_traced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy_of_runtime(folder.path());
    let hanging = Hanging::with(&path);
    let source = include_str!("../support/interpreter.c");
    let interpreter = compile(folder.path(), "libpython3.11.so", source, &["-shared", "-fPIC"]);
    let mut program = Command::new(Stepper::program());
    program.env("LD_PRELOAD", interpreter).env("HANGS_AT", hanging.file());
    let mut stepper = Stepper::start_in(&mut program, &[path.as_os_str()]);
    stepper.load(0);
    hanging.hang();
    let pid = stepper.pid().to_string();
    let running = Gpuscope::trace(&["-p", &pid, "--stacks", "all"])
        .start()
        .until_attached();
    stepper.call(3);
    let trace = running.stop().ok();
    assert_eq!(calls(&trace, stepper.pid()), 3, "{:?}", trace.unseen());
    assert!(said(&trace, "Python frames are not seen"), "{:?}", trace.unseen());
}

/// A program whose line table names a file that is not there, for the lines of its functions from the second on.
fn program_with_a_wrong_line_table(folder: &Path) -> PathBuf {
    let caller = include_str!("../support/caller.c");
    let second = caller.find("__attribute__((noinline))").expect("a second function");
    let source = format!("{}#line 20 \"other.c\"\n{}", &caller[..second], &caller[second..]);
    let program = compile(folder, "caller", &source, &["-g", "-gz=none", "-ldl"]);
    let mut bytes = std::fs::read(&program).expect("a program");
    let elf = object::read::elf::ElfFile64::<object::Endianness>::parse(bytes.as_slice()).expect("an ELF file");
    let lines = elf
        .section_by_name(".debug_line")
        .and_then(|section| section.file_range());
    let (start, size) = lines.expect("a line table");
    // DW_LNS_set_file, the file that gcc names first
    let table = &mut bytes[start as usize..(start + size) as usize];
    let places: Vec<usize> = (0..table.len() - 1).filter(|at| table[*at..at + 2] == [4, 1]).collect();
    assert!(!places.is_empty(), "nothing to make wrong");
    places.into_iter().for_each(|at| table[at + 1] = 0x7e);
    std::fs::write(&program, bytes).expect("written");
    program
}

/// Whoever reads such a table may die of it. What was counted and which functions called is told all the same.
#[test]
#[ignore = "needs the simulated CUDA"]
fn debug_information_that_is_damaged_costs_source_lines_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program_with_a_wrong_line_table(folder.path());
    let (program, library) = (program.to_string_lossy(), support::sim_text("libcuda.so.1"));
    let trace = Gpuscope::run(&["--stacks", "alloc"], &[&program, &library])
        .finish()
        .ok();
    let allocations: Vec<String> = trace.calls_of("cuMemAlloc_v2").map(ToString::to_string).collect();
    assert_eq!(allocations.len(), 2);
    for call in allocations {
        assert!(call.contains("reserve") && !call.contains("other.c"), "{call}");
    }
    assert!(
        said(&trace, "source lines and inlined functions are not shown"),
        "{:?}",
        trace.unseen()
    );
}

/// Without the right to raise the limit, each file that is probed takes of the few descriptors that there are.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn files_for_which_no_descriptor_is_left_are_said_not_to_be_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let copies = (0..60).map(|number| {
        let folder = folder.path().join(number.to_string());
        std::fs::create_dir(&folder).expect("a folder");
        copy_of_runtime(&folder)
    });
    let copies: Vec<PathBuf> = copies.collect();
    let names: Vec<&OsStr> = copies.iter().map(|path| path.as_os_str()).collect();
    let mut stepper = Stepper::start(&names);
    (0..copies.len()).for_each(|index| stepper.load(index));
    let starved = [
        "--bounding-set",
        "-sys_resource",
        "prlimit",
        "--nofile=110:110",
        env!("CARGO_BIN_EXE_gpuscope"),
    ];
    let pid = stepper.pid().to_string();
    let running = Gpuscope::of(Path::new("setpriv"), starved.into_iter().chain(["trace", "-p", &pid]))
        .start()
        .until_attached();
    stepper.call(1);
    let trace = running.stop();
    let said = format!("{}{}", trace.stdout, trace.stderr);
    assert!(said.contains("Too many open files"), "{said}");
}
