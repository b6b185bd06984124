use super::*;
use crate::owner::tree::Tree;
use proptest::prelude::*;
use std::process::{Child, Command, Stdio};

fn wanted(labels: &[&str]) -> Wanted {
    let labels = labels.iter().map(|word| word.parse().unwrap()).collect();
    Wanted::new(labels, 1000).unwrap()
}

fn portrait(tree: &Tree, labels: &[&str]) -> Portrait {
    Portrait::read(&tree.root().join("proc"), 7, &wanted(labels)).unwrap()
}

fn value(portrait: &Portrait, label: &str) -> String {
    portrait.value(&label.parse().unwrap()).to_owned()
}

#[test]
fn a_name_may_look_like_the_fields_after_it() {
    for name in ["", "a", ") S 1 2 3", "((", "a b\nc", "S 1) R (", "\u{1b}[2J"] {
        let tree = Tree::default();
        tree.process(7, name, 4711);
        let found = Stat::read(&tree.root().join("proc/7")).unwrap();
        assert_eq!((found.comm, found.start_ticks), (name.as_bytes().to_vec(), 4711));
    }
}

#[test]
fn what_is_no_stat_is_no_process() {
    for text in [
        "",
        "7",
        "7 (a",
        "7 a)",
        ") (",
        "7 (a) S 1 2",
        "7 (a) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 x 9",
    ] {
        let tree = Tree::default();
        tree.file("proc/7/stat", text.as_bytes());
        assert_eq!(
            Portrait::read(&tree.root().join("proc"), 7, &wanted(&["comm"])),
            None,
            "{text:?}"
        );
    }
}

#[test]
fn a_process_without_program_has_none_of_its_labels() {
    let tree = Tree::default();
    tree.process(7, "kworker/0:1", 2)
        .file("proc/7/cmdline", b"")
        .file("proc/7/environ", b"");
    let portrait = portrait(&tree, &["comm", "exe", "cmdline", "env:A"]);
    let values = ["comm", "exe", "cmdline", "env:A", "unit"].map(|label| value(&portrait, label));
    assert_eq!(values, ["kworker/0:1", "", "", "", ""]);
}

#[test]
fn hostile_values_are_bounded_and_clean() {
    let tree = Tree::default();
    let long = [b"\x1b]0;\xff\n".as_slice(), &[b'x'; 1 << 20]].concat();
    tree.process(7, "a", 2).file("proc/7/cmdline", &long);
    tree.file("proc/7/environ", &[b"A=".as_slice(), &long].concat());
    tree.cgroup(7, &format!("0::/{}.service", "u".repeat(100_000)));
    tree.exe(7, &format!("/{}", "e\n".repeat(1000)));
    let portrait = portrait(&tree, &["exe", "cmdline", "env:A"]);
    for label in ["exe", "cmdline", "env:A"] {
        let value = value(&portrait, label);
        assert!(
            (100..=128).contains(&value.len()) && !value.contains(char::is_control),
            "{label}: {value:?}"
        );
    }
}

#[test]
fn a_variable_is_found_by_its_whole_name() {
    let environ = b"JOB=1\0JOB_NAME_X=2\0XJOB_NAME=3\0JOB_NAME\0=x\0JOB_NAME=a=b\0JOB_NAME=c\0";
    assert_eq!(variable(environ, "JOB_NAME"), "a=b");
    assert_eq!(variable(environ, "NAME"), "");
    assert_eq!(variable(b"", "A"), "");
}

proptest! {
    #[test]
    fn any_stat_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Stat::parse(&bytes);
    }
}

struct Sleeper(Child);

impl Sleeper {
    fn start(variable: &str) -> Sleeper {
        let mut command = Command::new("sleep");
        command.arg("600").env("GPUSCOPE_TEST_JOB", variable);
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        // the new program has its arguments a moment after it has replaced the old one
        while std::fs::read(format!("/proc/{}/cmdline", child.id()))
            .unwrap()
            .is_empty()
        {
            std::thread::yield_now();
        }
        Sleeper(child)
    }

    fn portrait(&self, wanted: &Wanted) -> Portrait {
        Portrait::read(Path::new("/proc"), self.0.id(), wanted).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_real_process_says_what_it_was_started_with() {
    let child = Sleeper::start("a \"b\"\n");
    let wanted = wanted(&["comm", "exe", "cmdline", "env:GPUSCOPE_TEST_JOB", "env:GPUSCOPE_TEST"]);
    let portrait = child.portrait(&wanted);
    assert_eq!(
        (value(&portrait, "comm").as_str(), value(&portrait, "cmdline").as_str()),
        ("sleep", "sleep 600")
    );
    assert!(value(&portrait, "exe").starts_with('/'), "{portrait:?}");
    assert_eq!(value(&portrait, "env:GPUSCOPE_TEST_JOB"), "a \"b\"\u{fffd}");
    assert_eq!(value(&portrait, "env:GPUSCOPE_TEST"), "");
    assert_eq!(
        start_ticks(Path::new("/proc"), child.0.id()),
        Some(portrait.start_ticks)
    );
}

/// The folder of some hierarchy of cgroups in which folders can be made.
fn hierarchy() -> Option<&'static Path> {
    let known = [
        "/sys/fs/cgroup/pids",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/systemd",
        "/sys/fs/cgroup",
    ];
    known
        .into_iter()
        .map(Path::new)
        .find(|folder| folder.join("cgroup.procs").exists())
}

#[test]
#[ignore = "needs root and BPF"]
fn a_real_cgroup_is_read_as_its_name_says() {
    let id = format!("{:064x}", std::process::id());
    let hierarchy = hierarchy().expect("a mounted hierarchy of cgroups");
    let parent = hierarchy.join("gpuscope-test.slice");
    let folder = parent.join(format!("docker-{id}.scope"));
    std::fs::create_dir_all(&folder).expect("a hierarchy that can be written");
    let child = Sleeper::start("");
    std::fs::write(folder.join("cgroup.procs"), child.0.id().to_string()).unwrap();
    let portrait = child.portrait(&wanted(&["container_id"]));
    drop(child);
    std::fs::remove_dir(&folder).unwrap();
    std::fs::remove_dir(&parent).unwrap();
    assert_eq!(value(&portrait, "container_id"), id);
}
