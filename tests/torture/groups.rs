//! Control groups with little memory: the kernel ends whoever takes more, without a word.

use crate::effort::{Chance, all_or, rounds, tried};
use crate::starved::{WAYS, assert_ran_or_refused};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::tracer::{Tracer, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A group of its own; removed when dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn new(bytes: u64) -> MemoryGroup {
        let root = Path::new("/sys/fs/cgroup");
        let own = format!("gpuscope-torture-{}", std::process::id());
        let old = root.join("memory");
        let (folder, limit) = if old.join("memory.limit_in_bytes").exists() {
            (old.join(own), "memory.limit_in_bytes")
        } else {
            // most have it already, and some may not be asked
            let _ = std::fs::write(root.join("cgroup.subtree_control"), "+memory");
            (root.join(own), "memory.max")
        };
        std::fs::create_dir_all(&folder).expect("a group: root may make one");
        std::fs::write(folder.join(limit), bytes.to_string()).expect("a limit");
        MemoryGroup(folder)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The kernel has ended nobody: it was told before that the tables do not fit, or they did. How often that was tried.
fn assert_fits_or_is_refused(bytes: u64) -> u64 {
    let (group, ways) = (MemoryGroup::new(bytes), all_or(1, &WAYS));
    for way in &ways {
        let subject = Subject::new("jumping", &[]);
        let mut command = Command::new("sh");
        let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.0.display());
        command.args(["-c", &enter, "sh"]).arg(program());
        let output = Tracer::start_by(&mut command, &[*way, &["--"], &subject.command()].concat()).finish();
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
