use super::*;
use crate::owner::tree::{DOCKER, Tree};
use proptest::prelude::*;

fn directory(tree: &Tree, labels: &[&str]) -> Directory {
    let labels = labels.iter().map(|word| word.parse().unwrap()).collect();
    Directory::new(Wanted::new(labels, 1000).unwrap(), tree.root())
}

fn shown(owner: &Owner) -> String {
    let labels: Vec<String> = owner
        .labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    labels.join(" ")
}

#[test]
fn a_process_is_what_proc_says() {
    let tree = Tree::default();
    tree.process(7, "trainer (x) y\n)", 100)
        .cgroup(7, &format!("0::/system.slice/docker-{DOCKER}.scope\n"));
    tree.exe(7, "/opt/bin/trainer (deleted)")
        .file("proc/7/cmdline", b"trainer\0--lr\x000.1\0\0");
    tree.file("proc/7/environ", b"X=1\0JOB_NAME=resnet\0JOB_NAME=later\0");
    let all = [
        "comm",
        "exe",
        "cmdline",
        "env:JOB_NAME",
        "env:JOB",
        "container_id",
        "pid",
    ];
    let expected = format!(
        "comm=trainer (x) y\u{fffd}) exe=/opt/bin/trainer cmdline=trainer --lr 0.1 env_job_name=resnet container_id={DOCKER} pid=7"
    );
    assert_eq!(shown(&directory(&tree, &all).owner_of(7)), expected);
}

#[test]
fn a_process_of_a_batch_job_says_whose_and_what_it_is() {
    let tree = Tree::default();
    tree.process(7, "pt_main_thread", 100)
        .cgroup(7, "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n")
        .file("proc/7/status", b"Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n")
        .file("proc/7/cmdline", b"/usr/bin/python3\0-u\0/data/train.py\0--lr\x001\0")
        .file("proc/7/environ", b"SLURM_JOB_ID=13\0SLURM_PROCID=1\0RANK=9\0")
        .file("etc/passwd", b"ada:x:1000:1000::/:/bin/sh\n");
    let labels = ["user", "job", "program", "rank"];
    let owner = directory(&tree, &labels).owner_of(7);
    assert_eq!(shown(&owner), "user=ada batch_job=42 program=train.py rank=9");
    tree.cgroup(7, "0::/user.slice\n");
    assert_eq!(directory(&tree, &labels).owner_of(7).get("batch_job"), Some("13"));
}

#[test]
fn what_a_process_does_not_tell_it_does_not_have() {
    let tree = Tree::default();
    tree.process(7, "a", 100);
    let mut directory = directory(&tree, &["user", "job", "program", "rank"]);
    assert_eq!(*directory.owner_of(7), Owner::default());
    assert_eq!(directory.unknown().programs, 1, "its arguments were not there");
}

#[test]
fn what_is_not_wanted_is_not_there() {
    let tree = Tree::default();
    tree.process(7, "a", 100).file("proc/7/environ", b"SECRET=1\0");
    assert_eq!(shown(&directory(&tree, &["comm"]).owner_of(7)), "comm=a");
    assert_eq!(*directory(&tree, &["env:OTHER", "exe"]).owner_of(7), Owner::default());
}

#[test]
fn equal_owners_are_the_same() {
    let tree = Tree::default();
    tree.process(7, "a", 100).process(8, "a", 101).process(9, "b", 102);
    let mut directory = directory(&tree, &["comm"]);
    let [seven, eight, nine] = [7, 8, 9].map(|pid| directory.owner_of(pid));
    assert!(Arc::ptr_eq(&seven, &eight) && !Arc::ptr_eq(&seven, &nine));
    assert_eq!((directory.owners(), directory.processes()), (2, 3));
}

#[test]
fn labels_stay_as_they_were_first_seen() {
    let tree = Tree::default();
    tree.process(7, "python3", 100);
    let mut directory = directory(&tree, &["comm"]);
    let first = directory.owner_of(7);
    tree.process(7, "pt_main_thread", 100);
    assert!(Arc::ptr_eq(&first, &directory.owner_of(7)));
    directory.ended(7);
    tree.gone(7);
    assert!(Arc::ptr_eq(&first, &directory.owner_of(7)));
}

#[test]
fn what_executed_a_program_is_read_anew() {
    let tree = Tree::default();
    tree.process(7, "bash", 100);
    let mut directory = directory(&tree, &["comm"]);
    let shell = directory.owner_of(7);
    tree.process(7, "trainer", 100);
    directory.executed(7);
    assert_eq!(shown(&directory.owner_of(7)), "comm=trainer");
    assert!(directory.retire(&shell));
}

#[test]
fn a_child_is_what_its_parent_was_if_it_is_gone_before_it_is_read() {
    let tree = Tree::default();
    tree.process(7, "python3", 100)
        .cgroup(7, &format!("0::/docker/{DOCKER}\n"));
    let mut directory = directory(&tree, &["comm", "container_id", "pid"]);
    directory.owner_of(7);
    directory.born(8, 7);
    directory.born(9, 8);
    directory.executed(9);
    directory.named(9, b"nvcc");
    assert_eq!(
        shown(&directory.owner_of(8)),
        format!("comm=python3 container_id={DOCKER} pid=8")
    );
    assert_eq!(
        shown(&directory.owner_of(9)),
        format!("comm=nvcc container_id={DOCKER} pid=9")
    );
}

#[test]
fn a_child_that_lives_is_read() {
    let tree = Tree::default();
    tree.process(7, "python3", 100).process(8, "pt_data_worker", 101);
    let mut directory = directory(&tree, &["comm"]);
    directory.owner_of(7);
    directory.born(8, 7);
    assert_eq!(shown(&directory.owner_of(8)), "comm=pt_data_worker");
}

#[test]
fn of_what_is_gone_unseen_the_name_is_known_from_the_kernel_or_nothing() {
    let mut directory = directory(&Tree::default(), &["comm"]);
    directory.named(7, b"short\nlived");
    assert_eq!(shown(&directory.owner_of(7)), "comm=short\u{fffd}lived");
    assert_eq!(*directory.owner_of(8), Owner::default());
}

#[test]
fn proc_knows_better_than_the_kernel_told() {
    let tree = Tree::default();
    tree.process(7, "now", 100);
    let mut directory = directory(&tree, &["comm"]);
    directory.named(7, b"then");
    assert_eq!(shown(&directory.owner_of(7)), "comm=now");
    directory.named(7, b"later");
    assert_eq!(shown(&directory.owner_of(7)), "comm=now");
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let tree = Tree::default();
    tree.process(7, "old", 100);
    let mut directory = directory(&tree, &["comm"]);
    directory.owner_of(7);
    tree.process(7, "new", 900);
    directory.born(7, 1);
    assert_eq!(shown(&directory.owner_of(7)), "comm=new");
    tree.process(7, "newer", 1900);
    directory.sweep();
    assert_eq!(shown(&directory.owner_of(7)), "comm=newer");
}

#[test]
fn what_has_ended_is_not_read_as_the_next_with_its_number() {
    let tree = Tree::default();
    let mut directory = directory(&tree, &["comm"]);
    directory.named(7, b"old");
    directory.ended(7);
    tree.process(7, "new", 900);
    assert_eq!(shown(&directory.owner_of(7)), "comm=old");
    directory.forget(7);
    assert_eq!(shown(&directory.owner_of(7)), "comm=new");
}

#[test]
fn a_sweep_forgets_the_dead_alone() {
    let tree = Tree::default();
    tree.process(7, "a", 100).process(8, "b", 101);
    let mut directory = directory(&tree, &["comm"]);
    let (alive, _) = (directory.owner_of(7), directory.owner_of(8));
    tree.gone(8);
    directory.sweep();
    assert_eq!(directory.processes(), 1);
    assert!(Arc::ptr_eq(&alive, &directory.owner_of(7)));
}

#[test]
fn too_many_owners_are_one_and_counted() {
    let tree = Tree::default();
    for pid in 1..=10 {
        tree.process(pid, &format!("p{pid}"), 100);
    }
    let mut directory = Directory::new(Wanted::new(vec![Label::Comm], 3).unwrap(), tree.root());
    let owners: Vec<_> = (1..=10).map(|pid| directory.owner_of(pid)).collect();
    assert_eq!(owners.iter().filter(|owner| ***owner == Owner::other()).count(), 7);
    assert_eq!((directory.owners(), directory.merged()), (4, 7));

    directory.forget(1);
    assert!(directory.retire(&owners[0]));
    assert_eq!(*directory.owner_of(4), Owner::other(), "counters do not move");
    tree.process(11, "p11", 100);
    assert_eq!(shown(&directory.owner_of(11)), "comm=p11");
}

#[test]
fn other_labels_are_for_processes_that_are_first_seen_then() {
    let tree = Tree::default();
    tree.process(7, "a", 100).process(8, "b", 100);
    let mut directory = directory(&tree, &["comm"]);
    directory.owner_of(7);
    directory.want(Wanted::new(vec![Label::Pid], 10).unwrap());
    assert_eq!([7, 8].map(|pid| shown(&directory.owner_of(pid))), ["comm=a", "pid=8"]);
}

#[test]
fn a_hundred_thousand_processes_take_bounded_memory() {
    let tree = Tree::default();
    tree.process(1, "alive", 100);
    let mut directory = directory(&tree, &["comm", "pid"]);
    let alive = directory.owner_of(1);
    for pid in 2..100_002 {
        directory.born(pid, 1);
        directory.named(pid, b"gone");
        directory.owner_of(pid);
        directory.ended(pid);
    }
    assert!(
        directory.processes() <= MOST_PROCESSES && directory.owners() <= 1001,
        "{directory:?}"
    );
    assert!(Arc::ptr_eq(&alive, &directory.owner_of(1)));
}

#[test]
fn what_ended_without_being_asked_for_leaves_room_and_what_was_asked_for_stays() {
    let mut directory = directory(&Tree::default(), &["comm"]);
    directory.named(1, b"asked");
    let asked = directory.owner_of(1);
    directory.ended(1);
    for pid in 2..100_002 {
        directory.named(pid, b"gone");
        directory.ended(pid);
    }
    assert!(directory.processes() <= MOST_PROCESSES, "{}", directory.processes());
    assert!(Arc::ptr_eq(&asked, &directory.owner_of(1)));
    assert_eq!((directory.owners(), directory.merged()), (1, 0));
}

#[test]
fn what_cannot_be_remembered_is_counted_for_other() {
    let tree = Tree::default();
    for pid in 1..=20 {
        tree.process(pid, "alive", 100);
    }
    let mut directory = directory(&tree, &["comm"]);
    directory.most_processes = 10;
    let others = (1..=20)
        .filter(|pid| *directory.owner_of(*pid) == Owner::other())
        .count();
    assert_eq!((others, directory.merged(), directory.processes()), (10, 10, 10));
    (1..=5).for_each(|pid| directory.forget(pid));
    assert_eq!(shown(&directory.owner_of(20)), "comm=alive");
}

#[test]
fn this_process_can_be_read() {
    let labels = ["comm", "exe", "cmdline", "pid", "env:PATH"];
    let labels = labels.map(|word| word.parse().unwrap()).to_vec();
    let mut directory = Directory::new(Wanted::new(labels, 10).unwrap(), Path::new("/"));
    let owner = directory.owner_of(std::process::id());
    assert_eq!(owner.get("pid"), Some(std::process::id().to_string().as_str()));
    assert_eq!(owner.labels.len(), 5, "{owner:?}");
}

#[derive(Debug, Clone)]
enum Event {
    Starts(u32, String),
    Born(u32, u32),
    Executed(u32),
    Named(u32, String),
    Ended(u32),
    Forgotten(u32),
    Asked(u32),
    Retired(u32),
}

fn event() -> impl Strategy<Value = Event> {
    let pid = || 1..6u32;
    prop_oneof![
        (pid(), "[a-d]").prop_map(|(pid, comm)| Event::Starts(pid, comm)),
        (pid(), pid()).prop_map(|(pid, parent)| Event::Born(pid, parent)),
        pid().prop_map(Event::Executed),
        (pid(), "[a-d]").prop_map(|(pid, comm)| Event::Named(pid, comm)),
        pid().prop_map(Event::Ended),
        pid().prop_map(Event::Forgotten),
        pid().prop_map(Event::Asked),
        pid().prop_map(Event::Retired),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_owner_stays_until_another_program_another_process_or_forgetting(events in prop::collection::vec(event(), 1..60)) {
        let tree = Tree::default();
        let mut directory = Directory::new(Wanted::new(vec![Label::Comm], 2).unwrap(), tree.root());
        let mut owned: HashMap<u32, Arc<Owner>> = HashMap::new();
        for (ticks, event) in events.into_iter().enumerate() {
            match event {
                Event::Starts(pid, comm) => {
                    tree.process(pid, &comm, ticks as u64);
                }
                Event::Born(pid, parent) => {
                    directory.born(pid, parent);
                    owned.remove(&pid);
                }
                Event::Executed(pid) => {
                    directory.executed(pid);
                    owned.remove(&pid);
                }
                Event::Named(pid, comm) => directory.named(pid, comm.as_bytes()),
                Event::Ended(pid) => directory.ended(pid),
                Event::Forgotten(pid) => {
                    directory.forget(pid);
                    owned.remove(&pid);
                }
                Event::Asked(pid) => {
                    let owner = directory.owner_of(pid);
                    let before = owned.entry(pid).or_insert_with(|| Arc::clone(&owner));
                    prop_assert!(Arc::ptr_eq(before, &owner), "{before:?} {owner:?}");
                }
                Event::Retired(pid) => {
                    let used = owned.get(&pid).is_some_and(|owner| directory.retire(owner));
                    prop_assert!(!used, "an owner with a process was retired");
                }
            }
            prop_assert!(directory.owners() <= 3);
            let mut distinct: Vec<_> = owned.values().map(Arc::as_ptr).collect();
            distinct.sort();
            distinct.dedup();
            prop_assert!(distinct.len() <= directory.owners());
        }
    }
}

mod pods {
    use super::*;
    use crate::owner::container::{Names, Pods};
    use std::time::Duration;

    const POD: &str = "0::/kubepods/burstable/pod7fda01c4-0ece-403d-88b4-c371d66d132a";
    const LABELS: [&str; 4] = ["comm", "namespace", "pod", "container"];

    fn in_pod(tree: &Tree, pid: u32) {
        tree.process(pid, "python3", 100)
            .cgroup(pid, &format!("{POD}/{DOCKER}\n"));
    }

    fn named(tree: &Tree) {
        tree.file(&format!("var/log/containers/train-0_ml_cuda-{DOCKER}.log"), b"");
    }

    #[test]
    fn a_process_in_a_pod_has_its_names() {
        let tree = Tree::default();
        in_pod(&tree, 7);
        named(&tree);
        let mut directory = directory(&tree, &LABELS);
        assert_eq!(
            shown(&directory.settled(7).unwrap()),
            "comm=python3 namespace=ml pod=train-0 container=cuda"
        );
    }

    #[test]
    fn an_owner_is_not_shown_before_its_names_are_known_and_then_it_stays() {
        let tree = Tree::default();
        in_pod(&tree, 7);
        tree.file("var/log/containers/x.log", b"");
        let (mut directory, start) = (directory(&tree, &LABELS), Instant::now());
        assert_eq!(directory.settled_at(7, start), None);
        named(&tree);
        let owner = directory.settled_at(7, start + Duration::from_secs(2)).unwrap();
        assert_eq!(owner.get("pod"), Some("train-0"));
        assert!(Arc::ptr_eq(&owner, &directory.owner_of(7)));
    }

    #[test]
    fn who_waited_in_vain_has_no_names_for_good() {
        let tree = Tree::default();
        in_pod(&tree, 7);
        tree.file("var/log/containers/x.log", b"");
        let (mut directory, start) = (directory(&tree, &LABELS), Instant::now());
        assert_eq!(directory.settled_at(7, start), None);
        let owner = directory.settled_at(7, start + Duration::from_secs(16)).unwrap();
        named(&tree);
        assert_eq!(shown(&owner), "comm=python3");
        assert!(Arc::ptr_eq(&owner, &directory.settled(7).unwrap()));
    }

    #[test]
    fn what_has_ended_waits_no_longer_and_is_what_it_was() {
        let tree = Tree::default();
        in_pod(&tree, 7);
        tree.file("var/log/containers/x.log", b"");
        let mut directory = directory(&tree, &["comm", "pod", "container_id"]);
        assert_eq!(directory.settled(7), None);
        tree.gone(7);
        directory.ended(7);
        assert_eq!(
            shown(&directory.settled(7).unwrap()),
            format!("comm=python3 container_id={DOCKER}")
        );
    }

    #[test]
    fn nobody_waits_for_names_that_are_not_wanted() {
        let tree = Tree::default();
        in_pod(&tree, 7);
        tree.file("var/log/containers/x.log", b"");
        assert!(directory(&tree, &["comm", "container_id"]).settled(7).is_some());
    }

    #[derive(Debug)]
    struct Silent;

    impl Pods for Silent {
        fn names(&mut self, _: &Place) -> Option<Names> {
            None
        }

        fn trouble(&self) -> Option<String> {
            Some("silent".to_owned())
        }
    }

    #[test]
    fn a_kubelet_that_says_nothing_is_waited_for_and_told_of() {
        let tree = Tree::default();
        in_pod(&tree, 7);
        let mut directory = directory(&tree, &LABELS);
        directory.ask_also(Some(Box::new(Silent)));
        assert_eq!(
            (directory.settled(7), directory.trouble().as_deref()),
            (None, Some("silent"))
        );
        directory.ask_also(None);
        assert!(directory.settled(7).is_some());
    }
}

#[test]
fn a_process_that_is_gone_before_it_is_read_is_where_the_kernel_saw_it() {
    let tree = Tree::default();
    let mut directory = directory(&tree, &["comm", "slurm_job"]);
    let place = crate::owner::cgroup::parse(b"0::/slurm/uid_0/job_42/step_0\n");
    directory.named(7, b"short");
    directory.look_at(7);
    directory.placed(7, place);
    assert_eq!(shown(&directory.owner_of(7)), "comm=short slurm_job=42");
    assert_eq!(directory.unknown(), Unknown::default());
}

#[test]
fn labels_that_nobody_could_read_are_counted_where_they_are_wanted() {
    let tree = Tree::default();
    let unknown = |labels: &[&str]| {
        let mut directory = directory(&tree, labels);
        directory.named(7, b"short");
        directory.owner_of(7);
        directory.owner_of(7);
        directory.unknown()
    };
    let missing = |places, programs| Unknown { places, programs };
    assert_eq!(unknown(&["comm", "pid"]), missing(0, 0));
    assert_eq!(unknown(&["comm", "unit"]), missing(1, 0));
    assert_eq!(unknown(&["comm", "env:JOB"]), missing(0, 1));
}

#[test]
fn who_is_only_looked_at_takes_no_place_among_the_owners() {
    let tree = Tree::default();
    tree.process(7, "sh", 100);
    let mut directory = directory(&tree, &["comm"]);
    directory.look_at(7);
    assert_eq!(directory.owners(), 0);
}

#[test]
fn a_process_that_has_ended_and_is_still_listed_is_what_the_kernel_said() {
    let tree = Tree::default();
    tree.file(
        "proc/7/stat",
        b"7 (short) Z 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 100 9 10 11\n",
    );
    tree.process(8, "exits", 100).cgroup(8, "3:freezer:/\n");
    tree.file("proc/8/cmdline", b"x\0");
    let mut directory = directory(&tree, &["comm", "cmdline", "slurm_job"]);
    let place = crate::owner::cgroup::parse(b"0::/slurm/uid_0/job_42/step_0\n");
    for pid in [7, 8] {
        directory.named(pid, b"kernel's");
        directory.placed(pid, place.clone());
    }
    assert_eq!(shown(&directory.owner_of(7)), "comm=kernel's slurm_job=42");
    assert_eq!(shown(&directory.owner_of(8)), "comm=exits cmdline=x slurm_job=42");
    assert_eq!(directory.unknown(), Unknown { places: 0, programs: 1 });
}

#[test]
fn where_one_hierarchy_has_let_go_of_a_process_the_kernels_word_is_added() {
    let told = crate::owner::cgroup::parse(b"3:freezer:/slurm/uid_0/job_42/step_0\n");
    for is_read_first in [false, true] {
        let tree = Tree::default();
        tree.process(7, "exits", 100)
            .cgroup(7, "3:freezer:/\n0::/system.slice/ssh.service\n");
        let mut directory = directory(&tree, &["unit", "slurm_job"]);
        if is_read_first {
            directory.look_at(7);
        }
        directory.placed(7, told.clone());
        assert_eq!(shown(&directory.owner_of(7)), "unit=ssh.service slurm_job=42");
    }
}

#[test]
fn where_a_process_runs_is_known_whatever_the_labels_and_decides_nothing() {
    let tree = Tree::default();
    tree.process(7, "python", 100)
        .cgroup(7, "0::/system.slice/slurmstepd.scope/job_42/step_0\n");
    let mut directory = directory(&tree, &["comm"]);
    assert!(directory.whereabouts(7).may_be_of("42") && !directory.whereabouts(7).may_be_of("43"));
    assert_eq!(
        directory.whereabouts(8),
        Whereabouts::Unknown,
        "there is no such process"
    );
    assert_eq!(directory.owners(), 0);
}

#[test]
fn a_place_without_processes_has_the_labels_of_the_place_alone() {
    let tree = Tree::default();
    let directory = directory(&tree, &["comm", "pid", "user", "namespace", "pod", "slurm_job", "job"]);
    let names = Names {
        namespace: "ml".to_owned(),
        pod: "train-0".to_owned(),
        ..Names::default()
    };
    assert_eq!(
        shown(&directory.owner_of_place(Place::default(), &names)),
        "namespace=ml pod=train-0"
    );
    let of_job = Place::of_slurm("42");
    assert_eq!(
        shown(&directory.owner_of_place(of_job, &Names::default())),
        "slurm_job=42 batch_job=42"
    );
}

#[test]
fn a_process_is_chosen_by_a_label_or_by_its_cgroup() {
    let tree = Tree::default();
    tree.process(7, "trainer", 100)
        .cgroup(7, "3:cpu:/batch.slice/a\n0::/system.slice/render-1.service\n");
    let mut directory = directory(&tree, &["comm", "unit"]);
    let mut is_chosen = |words: &[&str]| {
        let choices: Vec<Choice> = words.iter().map(|word| word.parse().unwrap()).collect();
        directory.is_chosen(7, &choices)
    };
    for words in [
        &["comm=train*"][..],
        &["unit=render-*.service"],
        &["cgroup=/batch.slice/*"],
        &["comm=other", "cgroup=/system.slice/*"],
    ] {
        assert!(is_chosen(words), "{words:?}");
    }
    for words in [
        &[][..],
        &["comm=train"],
        &["pid=7"],
        &["cgroup=/batch.slice", "unit=*.scope"],
    ] {
        assert!(!is_chosen(words), "{words:?}");
    }
}

#[test]
fn who_is_gone_is_chosen_by_nothing() {
    let mut directory = directory(&Tree::default(), &["comm"]);
    assert!(!directory.is_chosen(7, &["cgroup=*".parse().unwrap()]));
}
