//! gpuscope without descriptors, memory, processes, room on the disk, or somebody who reads what it says.

use crate::effort::{Chance, all_or, rounds, tried};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::support::patience;
use crate::tracer::{Tracer, program};
use std::process::{Command, Output};
use std::time::Duration;

pub const WAYS: [&[&str]; 3] = [
    &["run", "-o", "OUT/t.jsonl"],
    &["record", "-o", "OUT/t.arrows"],
    &["leaks", "-o", "OUT/t.jsonl"],
];

/// The program ran as ever, or gpuscope said why it did not start it.
pub fn assert_ran_or_refused(subject: &Subject, output: &Output, how: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.stdout.is_empty() {
        assert_eq!(output.status.code(), Some(125), "{how}: {stderr}");
        assert!(stderr.contains("gpuscope: "), "{how}: it says nothing: {stderr}");
    } else {
        subject.assert_said(&output.stdout, how);
    }
}

/// `limit`: an option of the shell's `ulimit`, with its value in that option's unit. How often that was tried.
fn limited(limit: &str, value: u64) -> u64 {
    let ways = all_or(2, &WAYS);
    for way in &ways {
        let subject = Subject::new("jumping", &[]);
        let mut command = Command::new("sh");
        let script = format!("ulimit {limit} {value} && exec \"$@\"");
        command.args(["-c", &script, "sh"]).arg(program());
        let output = Tracer::start_by(&mut command, &[*way, &["--"], &subject.command()].concat()).finish();
        assert_ran_or_refused(&subject, &output, &format!("{limit} {value}, {way:?}"));
    }
    ways.len() as u64
}

/// The least address space, in MiB, in which the dynamic linker finds room for the program and its libraries: with less,
/// none of its code runs.
fn least_to_be_loaded_mib() -> u64 {
    let is_loaded = |mib: &u64| {
        let mut command = Command::new("sh");
        let script = format!("ulimit -v {} && LD_TRACE_LOADED_OBJECTS=1 exec \"$@\"", mib << 10);
        command.args(["-c", &script, "sh"]).arg(program());
        command.output().expect("a shell").status.success()
    };
    (1..1000).find(is_loaded).expect("it is loaded with a GiB")
}

#[test]
#[ignore = "needs root and BPF"]
fn without_descriptors_or_memory_it_says_so_or_works() {
    let (mut runs, mut chance, loaded) = (0, Chance::new(), least_to_be_loaded_mib());
    for _ in 0..rounds(1, 2, 30, 500) {
        runs += limited("-n", 4 + chance.below(80));
        runs += limited("-v", (loaded + 1 + chance.below(900)) << 10);
    }
    // no room for anything, not even to read the command line
    runs += limited("-v", (loaded + 1) << 10);
    assert_no_probe_is_left();
    tried(runs, "runs short of descriptors or memory");
}

#[test]
#[ignore = "needs root and BPF"]
fn files_that_may_not_grow_do_not_kill_it() {
    let (mut runs, mut chance) = (0, Chance::new());
    for _ in 0..rounds(1, 2, 30, 500) {
        // with none at all nothing can be said, either
        runs += limited("-f", 1 + chance.below(40));
    }
    tried(runs, "runs whose files may not grow");
}

/// A disk of a few pages, in a mount namespace of its own.
#[test]
#[ignore = "needs root and BPF"]
fn a_full_disk_costs_the_output_and_not_the_program() {
    let (mut runs, mut chance) = (0, Chance::new());
    for _ in 0..rounds(1, 2, 30, 500) {
        for way in all_or(2, &WAYS) {
            let subject = Subject::new("signals", &[]);
            let size = 4096 * (1 + chance.below(64));
            let script = format!("mkdir \"$1\" && mount -t tmpfs -o size={size} none \"$1\" && shift && exec \"$@\"");
            let mut command = Command::new("unshare");
            command.args(["-m", "sh", "-c", &script, "sh", "OUT/disk"]);
            let way: Vec<String> = way.iter().map(|part| part.replace("OUT/", "OUT/disk/")).collect();
            let gpuscope = program();
            let mut arguments = vec![gpuscope.to_str().expect("UTF-8").to_owned()];
            arguments.extend(way);
            arguments.push("--".to_owned());
            arguments.extend(subject.command().into_iter().map(str::to_owned));
            let output = start_with_folder(command, &arguments).finish();
            assert_ran_or_refused(&subject, &output, &format!("a disk of {size} bytes, {arguments:?}"));
            runs += 1;
        }
    }
    tried(runs, "runs on a full disk");
}

/// The command's own arguments name the folder, too.
fn start_with_folder(command: Command, arguments: &[String]) -> Tracer {
    let own: Vec<String> = command
        .get_args()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let mut plain = Command::new(command.get_program());
    Tracer::start_by(&mut plain, &[own, arguments.to_vec()].concat())
}

/// Whoever reads has gone, or does not read.
#[test]
#[ignore = "needs root and BPF"]
fn nobody_reads_what_it_writes() {
    let times = rounds(1, 1, 20, 500);
    for _ in 0..times {
        for script in [
            "\"$@\" | true",
            "\"$@\" | sleep 2",
            "\"$@\" >&-",
            "\"$@\" 2>&-",
            "\"$@\" 2>&1 | head -c 100 >/dev/null",
        ] {
            let subject = Subject::new("fibers", &[]);
            let mut command = Command::new("sh");
            command
                .args(["-c", &format!("{script}; echo end")])
                .arg("sh")
                .arg(program());
            let output = Tracer::start_by(&mut command, &[&["run", "--"], &subject.command()[..]].concat()).finish();
            assert!(
                String::from_utf8_lossy(&output.stdout).ends_with("end\n"),
                "{script}: {output:?}"
            );
        }
    }
    assert_no_probe_is_left();
    tried(times * 5, "runs whose output nobody reads");
}

/// Stopped and continued, told to end twice, told to end while it stands still.
#[test]
#[ignore = "needs root and BPF"]
fn stopped_continued_and_ended_twice() {
    let (times, mut chance) = (rounds(2, 3, 60, 2000), Chance::new());
    for _ in 0..times {
        let subject = Subject::new("threads", &[]);
        let mut tracer = Tracer::start(&[&["run", "-o", "OUT/t.jsonl", "--"], &subject.command()[..]].concat());
        std::thread::sleep(patience(Duration::from_millis(200 + chance.below(800))));
        for signal in [libc::SIGSTOP, libc::SIGTERM, libc::SIGTERM, libc::SIGCONT] {
            tracer.signal(signal);
            std::thread::sleep(Duration::from_millis(chance.below(200)));
        }
        tracer.wait();
        tracer.assert_session_is_over();
        if !tracer.stdout().is_empty() {
            subject.assert_said(&tracer.stdout(), "stopped and ended twice");
        }
    }
    assert_no_probe_is_left();
    tried(times, "runs that were stopped, continued and ended twice");
}
