//! Bad input gets one clear message and the right exit status, and the traced program never pays for it.

use crate::support::{
    ENGINE, Gpuscope, OwnSim, Program, Stepper, Trace, assert_same, engine, eventually, sim, sim_text,
};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn run_of(command: &[&str]) -> Trace {
    Gpuscope::new([&["run", "-q", "--summary", "none", "--"], command].concat()).finish()
}

/// One message, of at most a few lines, that says all of `parts`.
fn assert_says(trace: &Trace, code: i32, parts: &[&str]) {
    assert_eq!(trace.code(), code, "{}", trace.stderr);
    assert!(
        parts.iter().all(|part| trace.stderr.contains(part)),
        "{parts:?} in {}",
        trace.stderr
    );
    assert!(
        trace.stderr.lines().count() <= 4 && !trace.stderr.contains("panicked"),
        "{}",
        trace.stderr
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_exit_status_is_the_commands_own() {
    assert_eq!(run_of(&["sh", "-c", "exit 3"]).code(), 3);
    assert_eq!(run_of(&["sh", "-c", "kill -KILL $$"]).code(), 128 + libc::SIGKILL);
    assert_eq!(run_of(&["sh", "-c", "kill -SEGV $$"]).code(), 128 + libc::SIGSEGV);
    let folder = tempfile::tempdir().expect("a folder");
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "text").expect("a file");
    let plain = plain.to_str().expect("UTF-8");
    assert_says(
        &run_of(&["no-such-command"]),
        127,
        &["\"no-such-command\": command not found", "hint:"],
    );
    assert_says(&run_of(&["/no/such/command"]), 127, &["command not found"]);
    assert_says(&run_of(&[plain]), 126, &["cannot be executed"]);
    assert_says(&run_of(&["/tmp"]), 126, &["cannot be executed"]);
}

/// What a command inherits does not depend on gpuscope, but for what has it load the agent.
#[test]
#[ignore = "needs the simulated CUDA"]
fn the_command_inherits_what_it_would_without_gpuscope() {
    let folder = tempfile::tempdir().expect("a folder");
    let look =
        "{ env | sort | grep -v -e ^_= -e ^SHLVL= -e ^LD_PRELOAD= -e ^ASAN_OPTIONS= -e ^CUDA_INJECTION64_PATH= -e ^NVTX_INJECTION64_PATH= -e ^GPUSCOPE_; pwd; umask; ulimit -a; ls -l /proc/self/fd | grep -o '[0-9]* -> .*' |
        grep -v -e /proc/ -e pipe: ; grep -e Sig -e Shd -e Cap -e NoNewPrivs -e Seccomp: /proc/self/status |
        grep -v SigQ; nice; ps -o sid=,pgid=,tty= $$ | wc -w; } > $OUT";
    let gpuscope = env!("CARGO_BIN_EXE_gpuscope");
    let script = format!(
        "trap '' HUP USR1; umask 027; exec 5</dev/null; cd {folder};
         look=$(cat look); OUT=plain; export OUT; nice -n 3 sh -c \"$look\";
         OUT=traced; nice -n 3 {gpuscope} run -q --summary none -- sh -c \"$look\"; sed -i s/traced/plain/ traced",
        folder = folder.path().display()
    );
    std::fs::write(folder.path().join("look"), look).expect("a file");
    let done = Command::new("sh")
        .args(["-c", &script])
        .env(ENGINE, engine())
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read = |name| std::fs::read_to_string(folder.path().join(name)).expect("a file");
    let (plain, traced) = (read("plain"), read("traced"));
    assert!(plain.contains("SigIgn") && plain.contains("OUT=plain"), "{plain}");
    // beyond the 31st signal they are the C library's own, for its threads
    let own = |text: &str| text.replace("SigIgn:\t00000001", "SigIgn:\t00000000");
    let (plain, traced) = (own(&plain), own(&traced));
    let differing: Vec<_> = plain
        .lines()
        .zip(traced.lines())
        .filter(|(plain, traced)| plain != traced)
        .collect();
    assert_eq!(differing, []);
    assert_eq!(plain.lines().count(), traced.lines().count(), "{plain}\n{traced}");
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_process_that_cannot_be_traced_is_refused() {
    let trace_of = |pid: &str| Gpuscope::new(["trace", "-p", pid]).finish();
    assert_says(&trace_of("4194304"), 1, &["there is no process 4194304", "hint:"]);
    assert_says(&trace_of("2"), 1, &["process 2 cannot be traced"]);
    // SAFETY: asks the kernel, and cannot fail; tests run in threads of their own
    let (own, thread) = (std::process::id(), unsafe { libc::gettid() }.to_string());
    assert_says(&trace_of(&thread), 1, &[&format!("it is a thread of process {own}")]);
    assert_eq!(trace_of("0").code(), 1);
    assert_eq!(trace_of("-1").code(), 2);
    assert_eq!(trace_of("self").code(), 2);
    let nothing = Gpuscope::new(["trace"]).finish();
    assert_says(&nothing, 2, &["nothing to trace", "hint: -p PID"]);
}

/// A program of 32 bits: an ELF header, one segment, and `pause(2)` for ever.
fn program_of_32_bits(path: &Path) {
    const BASE: u32 = 0x0804_8000;
    let code = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7]; // mov $29, %eax; int $0x80; jmp back
    let size = 52 + 32 + code.len() as u32;
    let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    for word in [1, BASE + 84, 52, 0, 0, 52 | 32 << 16, 1, 0] {
        bytes.extend_from_slice(&u32::to_le_bytes(word));
    }
    for word in [1, 0, BASE, BASE, size, size, 5, 0x1000] {
        bytes.extend_from_slice(&u32::to_le_bytes(word));
    }
    bytes.extend_from_slice(&code);
    std::fs::write(path, bytes).expect("a file");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("executable");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_of_32_bits_is_named_as_such_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small");
    program_of_32_bits(&path);
    let path = path.to_str().expect("UTF-8");
    let script = format!("{path} & sleep 0.3; kill $!; wait $!; test $? = 143 && echo it ran");
    let traced = Gpuscope::script(&[], &script).finish().ok();
    assert_eq!(traced.stdout, "it ran\n", "{}", traced.stderr);
    let program = Program::start(&mut Command::new(path));
    let refused = Gpuscope::new(["trace", "-p", &program.pid().to_string()]).finish();
    assert_says(&refused, 1, &["cannot be traced", "32-bit"]);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_corrupt_library_is_named_and_the_rest_is_traced() {
    let folder = tempfile::tempdir().expect("a folder");
    let corrupt = folder.path().join("libcuda.so.1");
    // mapped as code, as a loader would, but its section table lies beyond its end
    let mut bytes = std::fs::read(sim("libcuda.so.1")).expect("a library");
    bytes[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&corrupt, bytes).expect("a file");
    let mut stepper = Stepper::start(&[corrupt.as_os_str(), sim("libcudart.so.13").as_os_str()]);
    stepper.load(0); // the loader does not look at sections
    stepper.load(1);
    let pid = stepper.pid().to_string();
    let running = Gpuscope::trace(&["-p", &pid, "--layer", "runtime"])
        .start()
        .until_attached();
    stepper.call(2);
    let trace = running.stop().ok();
    assert_eq!(trace.calls_of("cudaMalloc").count(), 2, "{}", trace.stderr);
    let named = |line: &String| line.contains("libcuda.so.1") && line.contains("not usable");
    assert!(trace.unseen().iter().any(named), "{:?}", trace.unseen());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_hook_file_with_a_mistake_is_named_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("my hooks.toml");
    let text = "[[library]]\nname = \"mine\"\nmatch = \"libmine.so*\"\n\n[[function]]\nlibrary = \"mine\"\n\
                symbol = \"f\"\nclass = \"aloc\"\n";
    std::fs::write(&path, text).expect("a file");
    let hooks = path.to_str().expect("UTF-8");
    let wrong = Gpuscope::new(["run", "--hooks", hooks, "--", "true"]).finish();
    assert_says(
        &wrong,
        125,
        &[
            "my hooks.toml:8: unknown class \"aloc\"",
            "expected one of",
            "did you mean \"alloc\"?",
        ],
    );
    let absent = Gpuscope::new(["run", "--hooks", "/no/such.toml", "--", "true"]).finish();
    assert_says(
        &absent,
        125,
        &["failed to read the hook file /no/such.toml", "No such file"],
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn wrong_arguments_end_with_their_status_and_a_hint() {
    for arguments in [
        &["run"][..],
        &["run", "--"],
        &["run", "--ring-size", "16", "--", "true"],
        &["run", "--ring-size", "-1KiB", "--", "true"],
        &["run", "--min-duration", "10", "--", "true"],
        &["run", "--format", "xml", "--", "true"],
        &["trace", "-p", "1", "--all"],
        &["trace", "--no-such-flag"],
        &["no-such-command"],
        &[],
    ] {
        let wrong = Gpuscope::new(arguments).finish();
        // a status of `run` below 125 would be the command's
        let expected = if arguments.first() == Some(&"run") { 125 } else { 2 };
        assert_eq!(wrong.code(), expected, "{arguments:?}: {}", wrong.stderr);
        assert!(
            ["Usage", "--help", "needs a unit"]
                .iter()
                .any(|hint| wrong.stderr.contains(hint)),
            "{}",
            wrong.stderr
        );
    }
    for (filter, expected) in [
        ("@nothing", "no class is named"),
        ("cudaNothing", "no known function matches"),
        ("", "is empty"),
    ] {
        let wrong = Gpuscope::new(["run", "--filter", filter, "--", "true"]).finish();
        assert_says(&wrong, 125, &[expected, "hint:"]);
    }
    let wrong = Gpuscope::new(["run", "--layer", "gpu", "--", "true"]).finish();
    assert_says(&wrong, 125, &["no layer is named", "hint:"]);
    let wrong = Gpuscope::new(["run", "--cgroup", "/no/such", "--", "true"]).finish();
    assert_says(&wrong, 125, &["failed to find the cgroup"]);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_file_that_is_no_library_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("empty"), "").expect("a file");
    std::fs::write(path("random"), "neither ELF nor anything else").expect("a file");
    File::create(path("sparse"))
        .expect("a file")
        .set_len(2 << 30)
        .expect("a size");
    std::os::unix::fs::symlink("loop", path("loop")).expect("a link");
    assert!(
        Command::new("mkfifo")
            .arg(path("fifo"))
            .status()
            .expect("mkfifo runs")
            .success()
    );
    let own = ["empty", "random", "sparse", "loop", "fifo", "absent", ""].map(path);
    let system = ["/dev/zero", "/proc/self/mem", "/dev/full"].map(Into::into);
    for file in own.iter().chain(&system) {
        let refused = Gpuscope::new([OsStr::new("functions"), OsStr::new("--lib"), file.as_os_str()]).finish();
        assert_says(&refused, 1, &[file.to_str().expect("UTF-8")]);
    }
}

fn train(options: &[&str]) -> Gpuscope {
    let gpusim = sim_text("gpusim");
    let fixed = ["run", "--summary", "none", "--format", "jsonl"];
    Gpuscope::new(
        [
            &fixed[..],
            options,
            &["--", "sh", "-c", &format!("{gpusim} train 20 >&2; exit 7")],
        ]
        .concat(),
    )
}

/// The command ran to its end whatever happened to the output.
fn assert_trained(trace: &Trace) {
    assert!(
        trace.stderr.contains("train: 20 steps") && trace.stderr.contains("GPUSIM "),
        "{}",
        trace.stderr
    );
    assert!(!trace.stderr.contains("panicked"), "{}", trace.stderr);
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn a_full_disk_is_told_and_does_not_stop_the_command() {
    let full = train(&["-o", "/dev/full"]).finish();
    assert_says(&full, 125, &["failed to write /dev/full: No space left", "hint:"]);
    assert!(
        !full.stderr.contains("train"),
        "full from the start: the command is not begun"
    );

    let folder = tempfile::tempdir().expect("a folder");
    let script = "mount -t tmpfs -o size=64k none \"$0\" && cd \"$0\" && exec \"$@\"";
    let gpusim = sim_text("gpusim");
    let gpuscope = env!("CARGO_BIN_EXE_gpuscope");
    let rest = [
        gpuscope,
        "run",
        "--summary",
        "none",
        "-o",
        "t.jsonl",
        "--",
        &gpusim,
        "train",
        "20",
    ];
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", &format!("{script}; ")])
        .arg(folder.path())
        .args(rest)
        .env(ENGINE, engine());
    let done = command.output().expect("unshare runs");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(
        done.status.code(),
        Some(125),
        "the command succeeded, gpuscope did not: {stderr}"
    );
    assert!(String::from_utf8_lossy(&done.stdout).contains("train: 20 steps"));
    assert!(stderr.contains("failed to write t.jsonl: No space left"), "{stderr}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn an_output_that_cannot_be_made_is_refused_before_the_command_starts() {
    for output in ["/no/such/folder/t.jsonl", "/tmp"] {
        let refused = Gpuscope::new(["run", "-o", output, "--", "echo", "it ran"]).finish();
        assert_says(&refused, 125, &[&format!("failed to create {output}"), "hint:"]);
        assert_eq!(refused.stdout, "");
    }
}

/// `| head -1`: the line is whole, the end is quiet, and the command goes on.
#[test]
#[ignore = "needs the simulated CUDA"]
fn a_closed_pipe_ends_the_output_quietly() {
    let mut head = Command::new("head");
    let mut head = head
        .arg("-1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("head runs");
    let pipe = head.stdin.take().expect("a pipe");
    let trace = train(&[]).stdout(pipe).start_as_set().finish();
    let line = head.wait_with_output().expect("head ends").stdout;
    assert!(line.starts_with(b"{\"attach\"") || line.starts_with(b"{\"type\":\"meta\"") || line.starts_with(b"{"));
    assert_eq!((trace.code(), line.last()), (7, Some(&b'\n')));
    assert_trained(&trace);
    assert!(!trace.stderr.contains("ipe"), "{}", trace.stderr);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_trace_whose_reader_leaves_ends() {
    let program = Program::sim(&["train", "0"]);
    let pid = program.pid().to_string();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let running = Gpuscope::new(["trace", "-p", &pid])
        .stdout(writer)
        .start_as_set()
        .until_attached();
    drop(reader);
    assert_eq!(running.finish().code(), 0);
    program.signal(libc::SIGTERM);
    assert!(program.finish().status.success());
}

/// Little memory to lock, few descriptors: it works, or says why not.
#[test]
#[ignore = "needs the simulated CUDA"]
fn tight_limits_are_survived_or_named() {
    let gpusim = sim_text("gpusim");
    let gpuscope = env!("CARGO_BIN_EXE_gpuscope");
    for limit in ["--nofile=64", "--memlock=65536", "--nofile=16"] {
        let mut command = Command::new("prlimit");
        let done = command
            .args([limit, gpuscope, "run", "-q", "--", &gpusim, "train", "2"])
            .env(ENGINE, engine())
            .output()
            .expect("prlimit runs");
        let stderr = String::from_utf8_lossy(&done.stderr);
        let traced = stderr.contains("driver layer") && stderr.contains("runtime layer");
        let named = done.status.code() == Some(125) && stderr.starts_with("gpuscope: failed");
        assert!(traced || named, "{limit}: {stderr}");
        assert!(!stderr.contains("panicked"), "{limit}: {stderr}");
    }
}

/// Whoever starts while nobody takes what gpuscope writes waits for its probes all the same.
#[test]
#[ignore = "needs the simulated CUDA"]
fn a_reader_that_stalls_costs_those_that_start_meanwhile_no_call() {
    let own = OwnSim::new();
    let lines = own.folder().join("lines.jsonl");
    let mut slow = Command::new("sh");
    let mut slow = slow
        .args(["-c", "sleep 4; exec cat"])
        .stdin(Stdio::piped())
        .stdout(File::create(&lines).expect("a file"))
        .spawn()
        .expect("sh runs");
    let pipe = slow.stdin.take().expect("a pipe");
    let folder = own.folder().display();
    let script = format!(
        "exec >&2; {} train 60; LD_LIBRARY_PATH={folder} exec {folder}/gpusim train 2",
        sim_text("gpusim")
    );
    let options = ["run", "--chatty", "--format", "jsonl"];
    let options = [&options[..], &["--", "sh", "-c", &script]].concat();
    let trace = Gpuscope::new(options).stdout(pipe).start_as_set().finish();
    assert!(slow.wait().expect("it ends").success());
    let trace = trace.with_lines(&std::fs::read(&lines).expect("lines"));
    assert_same("totals", &trace.ledger.visible(), &trace.totals("calls"));
    assert_eq!(trace.unseen(), Vec::<String>::new());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_slow_reader_of_a_pipe_gets_whole_lines() {
    let mut slow = Command::new("sh");
    let mut slow = slow
        .args(["-c", "sleep 1; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh runs");
    let pipe = slow.stdin.take().expect("a pipe");
    let running = train(&["--chatty"]).stdout(pipe).start_as_set();
    eventually("the command ends", || running.stderr().contains("GPUSIM "));
    let lines = slow.wait_with_output().expect("sh ends").stdout;
    let trace = running.finish();
    assert_trained(&trace);
    let lines = String::from_utf8(lines).expect("UTF-8");
    for line in lines.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    }
    let count = lines.lines().count();
    assert!(count > 4000 && lines.ends_with('\n'), "{count} lines");
}
