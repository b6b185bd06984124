//! What a command may still do while it reads what anybody may have written: nothing but to write to what is open.

use crate::report::fixture;
#[cfg(feature = "serve")]
use crate::support::asked_store;
use crate::support::eventually;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Many times what a pipe holds: once all is written, most of it was read.
const BYTES: usize = 512 << 10;

const NOTHING: [(&str, &str); 5] = [
    ("CapEff", "0000000000000000"),
    ("CapPrm", "0000000000000000"),
    ("CapBnd", "0000000000000000"),
    ("NoNewPrivs", "1"),
    ("Seccomp", "2"),
];

fn status(pid: u32) -> HashMap<String, String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

/// Without CAP_SETPCAP nothing can be taken out of the bounding set, which then gives nobody anything.
fn assert_has_nothing(pid: u32, what: &str) {
    let (status, own) = (status(pid), status(std::process::id()));
    for (field, value) in NOTHING {
        let as_here = field == "CapBnd" && own["CapEff"] != own["CapBnd"];
        let expected = if as_here { own[field].as_str() } else { value };
        assert_eq!(status[field], expected, "{what}: {field}");
    }
}

fn gpuscope(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A recording of a training loop, cut off after so many bytes.
fn recording() -> Vec<u8> {
    let (mut bytes, mut whole) = (Vec::new(), Vec::new());
    let mut made = fixture::Loop::new(&mut bytes);
    for number in 0.. {
        made.step(number, 200, true);
        made.pour(&mut whole).expect("memory takes all");
        if whole.len() > BYTES {
            break;
        }
    }
    whole.truncate(BYTES);
    whole
}

fn pipe_at(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).expect("no zero");
    // SAFETY: the name ends in a zero
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

/// Its rights after it has read most of what `pipe` gives, and before the rest; then lets it end.
fn assert_reads_without_rights(mut command: Command, pipe: &Path, bytes: &[u8]) -> std::process::Output {
    let child = command.spawn().expect("gpuscope starts");
    let what = format!("{command:?}");
    let mut into = File::options().write(true).open(pipe).expect("a pipe");
    into.write_all(bytes).expect("it reads");
    assert_has_nothing(child.id(), &what);
    drop(into);
    child.wait_with_output().expect("it ends")
}

#[test]
fn whoever_reads_a_recording_has_no_rights_left_before_its_first_byte() {
    let bytes = recording();
    let commands: [&[&str]; 8] = [
        &["report", "PIPE"],
        &["report", "PIPE", "--html", "DIR/page.html"],
        &["diff", "PIPE", "DIR/other.arrows"],
        &["export", "PIPE", "--to", "jsonl"],
        &["export", "PIPE", "-o", "DIR/trace.pftrace"],
        &["export", "PIPE", "--to", "parquet", "-o", "DIR/tables/"],
        &["top", "--replay", "PIPE", "--json"],
        &["timeline", "PIPE"],
    ];
    for words in commands {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("other.arrows"), &bytes).expect("a file");
        let pipe = folder.path().join("pipe.arrows");
        pipe_at(&pipe);
        let dir = folder.path().to_str().expect("UTF-8").to_owned();
        let words: Vec<String> = words
            .iter()
            .map(|word| word.replace("PIPE", pipe.to_str().expect("UTF-8")).replace("DIR", &dir))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = assert_reads_without_rights(gpuscope(&words), &pipe, &bytes);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !stderr.contains("denied") && !stderr.contains("permitted"),
            "{words:?}: {stderr}"
        );
        let left = std::fs::read_dir(folder.path()).expect("a folder").flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        let half = left.iter().any(|name| name.to_string_lossy().ends_with(".partial"));
        assert!(!half, "{words:?}: {left:?}");
    }
}

const OF_LIBRARY: &str = r#"
[[library]]
name = "own"
match = "libcuda.so*"
[[function]]
library = "own"
symbol = "cuMem*"
"#;

const OF_KERNEL: &str = r#"
[[function]]
kprobe = "vfs_read"
args = ["count: size"]
[[function]]
tracepoint = "sched:sched_switch"
only = "prev_pid == 1"
"#;

/// Who reads nothing of what it says keeps it where it is.
#[test]
fn whoever_lists_functions_of_a_library_has_no_rights_left() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("sim/out/libcuda.so.1");
    let mut mapping = Command::new("sleep")
        .arg("60")
        .env("LD_PRELOAD", &library)
        .spawn()
        .expect("sleep");
    let pid = mapping.id().to_string();
    let maps = || std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    eventually("it maps the library", || maps().contains("libcuda.so.1"));
    let (library, folder) = (library.to_str().expect("UTF-8"), tempfile::tempdir().expect("a folder"));
    let file_of = |name: &str, rows: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, rows).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let own = file_of("own.toml", OF_LIBRARY);
    let kernel = file_of("kernel.toml", OF_KERNEL);
    let hooks = concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/pytorch.toml");
    let places: [&[&str]; 7] = [
        &["--lib", library],
        &["--hooks", hooks],
        &["-p", &pid],
        &["--kernel", "*read*"],
        &["--explain", &own, "--lib", library],
        &["--explain", &own, "-p", &pid],
        &["--explain", &kernel],
    ];
    for place in places {
        assert_speaks_without_rights(&[&["functions"], place].concat());
    }
    mapping.kill().expect("it runs");
    mapping.wait().expect("a child");
}

#[test]
#[cfg(feature = "serve")]
fn whoever_reports_of_a_job_has_no_rights_left_when_it_reads_what_exporters_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (metrics, page) = (folder.path().join("metrics"), folder.path().join("job.md"));
    std::fs::write(&metrics, "gpuscope_launches_total{job_id=\"7\"} 5\n").expect("a file");
    let from = metrics.to_str().expect("UTF-8");
    let words = ["job-report", "--from", from, "--job", "7"];
    assert_speaks_without_rights(&words);
    let to = page.to_str().expect("UTF-8");
    let written = gpuscope(&[&words[..], &["--format", "markdown", "-o", to]].concat()).output();
    let written = written.expect("gpuscope starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    assert!(std::fs::read_to_string(&page).expect("a page").contains("7"));
}

#[test]
#[cfg(feature = "serve")]
fn whoever_reports_of_all_machines_has_no_rights_left_when_it_reads_what_the_store_said() {
    let body = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"a"},"value":[1,"336"]}]}}"#;
    let (url, _asked) = asked_store("200 OK", body);
    let words = ["fleet", "--prometheus", &url];
    assert_speaks_without_rights(&words);
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("week.md");
    let to = page.to_str().expect("UTF-8");
    let written = gpuscope(&[&words[..], &["--format", "markdown", "-o", to]].concat()).output();
    let written = written.expect("gpuscope starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    assert!(std::fs::read_to_string(&page).expect("a page").contains("336"));
}

/// Its rights when it has something to say, and nobody takes it.
fn assert_speaks_without_rights(words: &[&str]) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    fill(&writer);
    let mut command = gpuscope(words);
    let child = command.stdout(writer).spawn().expect("gpuscope starts");
    drop(command);
    eventually("it gives up its rights", || status(child.id())["Seccomp"] == "2");
    assert_has_nothing(child.id(), &format!("{words:?}"));
    drop(reader);
    child.wait_with_output().expect("it ends");
}

/// Whoever writes to it now waits.
fn fill(mut writer: &std::io::PipeWriter) {
    use std::os::fd::AsRawFd;
    // SAFETY: asks for a number
    let room = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
    writer.write_all(&vec![0; room as usize]).expect("room");
}
