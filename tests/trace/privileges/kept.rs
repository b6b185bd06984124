//! What a command may still do once it has attached: threads of gpuscope, as the kernel describes them.

use crate::support::{ENGINE, engine, eventually, sim};
use std::process::{Child, Command, Stdio};

/// Of `linux/capability.h`: those that make a process the machine's owner, and that nothing here needs.
const NEVER: [(&str, u32); 7] = [
    ("SETPCAP", 8),
    ("NET_ADMIN", 12),
    ("NET_RAW", 13),
    ("SYS_MODULE", 16),
    ("SYS_RAWIO", 17),
    ("SYS_BOOT", 22),
    ("MAC_ADMIN", 33),
];
const SYS_ADMIN: u32 = 21;
const SYS_PTRACE: u32 = 19;
const BPF: u32 = 39;

fn field(pid: u32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

fn permitted(pid: u32) -> u64 {
    let bits = field(pid, "CapPrm:").expect("a status");
    u64::from_str_radix(&bits, 16).expect("bits")
}

fn started(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command
        .args(arguments)
        .env(ENGINE, engine())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("gpuscope starts")
}

fn end(mut child: Child) {
    // SAFETY: plain numbers; the child has not been waited for, so its id is its own
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let _ = child.wait();
}

fn until_confined(child: &Child) {
    eventually("no new privileges", || {
        field(child.id(), "NoNewPrivs:").as_deref() == Some("1")
    });
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_trace_of_everything_gives_up_what_it_does_not_need() {
    let child = started(&["trace", "--all", "-q"]);
    until_confined(&child);
    let has = permitted(child.id());
    for (name, bit) in NEVER {
        assert_eq!(has >> bit & 1, 0, "{name}");
    }
    assert_eq!((has >> SYS_PTRACE & 1, has >> BPF & 1), (1, 1));
    end(child);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_command_keeps_what_it_was_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = folder.path().join("told");
    let script = format!(
        "cat /proc/self/status > {0}.new && mv {0}.new {0}; sleep 1000",
        told.display()
    );
    let child = started(&["run", "-q", "--", "/bin/sh", "-c", &script]);
    eventually("the command to tell", || told.exists());
    let text = std::fs::read_to_string(&told).expect("a status");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.expect("a field").trim().to_owned()
    };
    let own = |name: &str| field(std::process::id(), name).expect("a status");
    for name in ["CapPrm:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"] {
        assert_eq!(value(name), own(name), "{name}");
    }
    until_confined(&child);
    assert_eq!(permitted(child.id()) >> SYS_ADMIN & 1, 0);
    end(child);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn what_is_mapped_later_is_attached_to_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = folder.path().join("lines");
    let output = std::fs::File::create(&lines).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command
        .args(["trace", "--all", "--filter", "cudaMalloc"])
        .stdin(Stdio::null());
    let child = command
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .expect("gpuscope starts");
    until_confined(&child);
    // a library that nobody has mapped before
    let copies = tempfile::tempdir().expect("a folder");
    for name in ["libcudart.so.13", "libcuda.so.1"] {
        std::fs::copy(sim(name), copies.path().join(name)).expect("a copy");
    }
    eventually("a call of a new library", || {
        let mut program = Command::new(sim("gpusim"));
        program
            .args(["train", "2"])
            .env("LD_LIBRARY_PATH", copies.path())
            .stdout(Stdio::null());
        program.stderr(Stdio::null()).status().expect("a program");
        std::fs::read_to_string(&lines).expect("lines").contains("cudaMalloc")
    });
    end(child);
}
