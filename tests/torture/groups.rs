//! Control groups with little memory, where the kernel ends whoever takes more without a word, and with few processes.

use crate::effort::{Chance, all_or, rounds, tried};
use crate::starved::{WAYS, assert_ran_or_refused};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::tracer::{Tracer, program};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const WATCHING: [&[&str]; 3] = [
    &["trace", "--all", "-o", "OUT/t.jsonl"],
    &["record", "--all", "-o", "OUT/t.arrows"],
    &["serve", "--listen", "127.0.0.1:0"],
];

/// Groups so far: tests run side by side.
static GROUPS: AtomicU32 = AtomicU32::new(0);

/// A group of its own; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// `old`, `new`: what the limit is called in groups of either version.
    fn limited(controller: &str, old: &str, new: &str, limit: u64) -> Group {
        let root = Path::new("/sys/fs/cgroup");
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let own = format!("gpuscope-torture-{controller}-{}-{number}", std::process::id());
        let (folder, file) = if root.join(controller).join("cgroup.procs").exists() {
            (root.join(controller).join(own), old)
        } else {
            // most have it already, and some may not be asked
            let _ = std::fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
            (root.join(own), new)
        };
        std::fs::create_dir_all(&folder).expect("a group: root may make one");
        std::fs::write(folder.join(file), limit.to_string()).expect("a limit");
        Group(folder)
    }

    fn of_memory(bytes: u64) -> Group {
        Group::limited("memory", "memory.limit_in_bytes", "memory.max", bytes)
    }

    fn of_processes(count: u64) -> Group {
        Group::limited("pids", "pids.max", "pids.max", count)
    }

    /// What the program said, and what gpuscope did, as members of the group.
    fn run(&self, subject: &Subject, way: &[&str]) -> Output {
        let mut command = Command::new("sh");
        let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", self.0.display());
        command.args(["-c", &enter, "sh"]).arg(program());
        Tracer::start_by(&mut command, &[way, &["--"], &subject.command()].concat()).finish()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The kernel has ended nobody: it was told before that the tables do not fit, or they did. How often that was tried.
fn assert_fits_or_is_refused(bytes: u64) -> u64 {
    let (group, ways) = (Group::of_memory(bytes), all_or(1, &WAYS));
    for way in &ways {
        let subject = Subject::new("jumping", &[]);
        let output = group.run(&subject, way);
        assert_ran_or_refused(&subject, &output, &format!("{} MiB, {way:?}", bytes >> 20));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let says_how_much = stderr.contains("control group") && stderr.contains("\nhint: ");
        assert!(output.status.code() != Some(125) || says_how_much, "{stderr}");
    }
    ways.len() as u64
}

#[test]
#[ignore = "needs root and BPF"]
fn where_memory_is_short_it_says_how_much_it_needs() {
    let (mut runs, mut chance) = (0, Chance::new());
    for _ in 0..rounds(1, 1, 20, 500) {
        runs += assert_fits_or_is_refused(64 << 20);
        runs += assert_fits_or_is_refused((24 + chance.below(200)) << 20);
    }
    assert_no_probe_is_left();
    tried(runs, "runs in a control group with little memory");
}

/// Threads are processes to a group.
#[test]
#[ignore = "needs root and BPF"]
fn where_processes_are_few_it_says_so_or_works() {
    let mut runs = 0;
    for most in 1..=rounds(3, 8, 24, 24) {
        let (group, ways) = (Group::of_processes(most), all_or(1, &WAYS));
        for way in &ways {
            let subject = Subject::new("jumping", &[]);
            let output = group.run(&subject, way);
            assert_ran_or_refused(&subject, &output, &format!("{most} processes, {way:?}"));
            let stderr = String::from_utf8_lossy(&output.stderr);
            let says_what_is_short = stderr.contains("pids.max") && stderr.contains("\nhint: ");
            assert!(
                output.status.code() != Some(125) || says_what_is_short,
                "{most}: {stderr}"
            );
        }
        runs += ways.len() as u64;
    }
    assert_no_probe_is_left();
    tried(runs, "runs in a control group with few processes");
}

/// A group that the program leaves, and that is removed, while it is traced.
#[test]
#[ignore = "needs root and BPF"]
fn a_group_that_is_removed_takes_nobody_with_it() {
    let times = rounds(1, 2, 20, 200);
    for _ in 0..times {
        for way in all_or(1, &WATCHING) {
            let group = Group::of_processes(1000);
            let subject = Subject::new("signals", &["1500"]);
            let child = subject.start();
            let pid = child.id().to_string();
            std::fs::write(group.0.join("cgroup.procs"), &pid).expect("it may move");
            let tracer = Tracer::start(way).until_attached();
            let outside = group.0.parent().expect("a group").join("cgroup.procs");
            std::fs::write(outside, &pid).expect("it may move");
            std::fs::remove_dir(&group.0).expect("it is empty");
            let output = child.wait_with_output().expect("it ends");
            subject.assert_as_alone(&output, &format!("{way:?}"));
            tracer.signal(libc::SIGTERM);
            let output = tracer.finish();
            assert!(output.status.success(), "{way:?}: {output:?}");
        }
    }
    assert_no_probe_is_left();
    tried(times, "control groups removed under a program that is traced");
}
