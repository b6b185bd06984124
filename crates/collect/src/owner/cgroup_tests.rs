use super::*;
use proptest::prelude::*;

const A: &str = "3f1b2c4d5e6f708192a3b4c5d6e7f8090a1b2c3d4e5f60718293a4b5c6d7e8f9";
const B: &str = "0f99ad5f45163ed14ab8eaf92ed34bb4a631d007f8755a7d79be614bcb0df0ef";
const UID: &str = "7fda01c4-0ece-403d-88b4-c371d66d132a";
const UID_: &str = "7fda01c4_0ece_403d_88b4_c371d66d132a";

/// What a file says, with `A`, `B`, `UID` and `UID_` for the above, of: container, pod, unit, job, step.
type Shape = (&'static str, &'static str, [&'static str; 5]);

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    ("docker, v2, systemd driver", "0::/system.slice/docker-{A}.scope", ["A", "", "", "", ""]),
    ("docker, v2, cgroupfs driver", "0::/docker/{A}", ["A", "", "", "", ""]),
    ("docker, v1", "12:memory:/docker/{A}\n3:cpu,cpuacct:/docker/{A}\n1:name=systemd:/docker/{A}", ["A", "", "", "", ""]),
    ("docker whose container has a cgroup tree of its own", "0::/system.slice/docker-{A}.scope/init", ["A", "", "", "", ""]),
    ("docker in a parent that was asked for", "0::/gpu.slice/docker-{A}.scope", ["A", "", "", "", ""]),
    ("docker, systemd driver given as a path by an older runc", "9:pids:/system.slice:docker:{A}", ["A", "", "", "", ""]),
    ("buildkit in docker", "0::/docker/buildkit/t4967jvf8rbufklrhkicskyes", ["", "", "", "", ""]),
    ("containerd, v2, systemd driver", "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice/cri-containerd-{A}.scope", ["A", "UID", "", "", ""]),
    ("containerd, guaranteed", "0::/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{A}.scope", ["A", "UID", "", "", ""]),
    ("containerd, cgroupfs driver", "0::/kubepods/burstable/pod{UID}/{A}", ["A", "UID", "", "", ""]),
    ("containerd, v1, cgroupfs driver", "11:devices:/kubepods/besteffort/pod{UID}/{A}\n1:name=systemd:/kubepods/besteffort/pod{UID}/{A}", ["A", "UID", "", "", ""]),
    ("containerd whose driver is not that of the kubelet", "1:name=systemd:/system.slice/containerd.service/kubepods-burstable-pod{UID_}.slice:cri-containerd:{A}", ["A", "UID", "", "", ""]),
    ("the same, some hierarchies of v1", "11:perf_event:/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{A}\n7:hugetlb:/", ["A", "UID", "", "", ""]),
    ("static pod", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0123456789abcdef0123456789abcdef.slice/cri-containerd-{A}.scope", ["A", "0123456789abcdef0123456789abcdef", "", "", ""]),
    ("nerdctl", "0::/system.slice/nerdctl-{A}.scope", ["A", "", "", "", ""]),
    ("nerdctl, cgroupfs driver", "0::/default/{A}", ["A", "", "", "", ""]),
    ("CRI-O", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/crio-{A}.scope", ["A", "UID", "", "", ""]),
    ("CRI-O with a cgroup inside", "0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-{A}.scope/container", ["A", "UID", "", "", ""]),
    ("CRI-O, cgroupfs driver", "5:pids:/kubepods/burstable/pod{UID}/crio-{A}", ["A", "UID", "", "", ""]),
    ("who watches a container of CRI-O is in none", "1:name=systemd:/kubepods.slice/kubepods-pod{UID_}.slice/crio-conmon-{A}.scope", ["", "UID", "", "", ""]),
    ("dockershim", "4:memory:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/docker-{A}.scope", ["A", "UID", "", "", ""]),
    ("podman", "0::/machine.slice/libpod-{A}.scope/container", ["A", "", "", "", ""]),
    ("podman, cgroupfs driver", "0::/libpod_parent/libpod-{A}", ["A", "", "", "", ""]),
    ("podman with a pod", "0::/machine.slice/machine-libpod_pod_{B}.slice/libpod-{A}.scope/container", ["A", "", "", "", ""]),
    ("podman without root", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{A}.scope/container", ["A", "", "user@1000.service", "", ""]),
    ("podman in a unit", "0::/system.slice/trainer.service/libpod-payload-{A}", ["A", "", "trainer.service", "", ""]),
    ("who watches a container of podman is in none", "0::/machine.slice/libpod-conmon-{A}.scope", ["", "", "libpod-conmon-{A}.scope", "", ""]),
    ("Kubernetes in docker", "0::/docker/{B}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod{UID_}.slice/cri-containerd-{A}.scope", ["A", "UID", "", "", ""]),
    ("Kubernetes in docker, cgroupfs drivers", "0::/docker/{B}/kubelet/kubepods/burstable/pod{UID}/{A}", ["A", "UID", "", "", ""]),
    ("docker in a pod: Kubernetes knows the outer", "0::/kubepods/burstable/pod{UID}/{A}/docker/{B}", ["A", "UID", "", "", ""]),
    ("docker in docker", "0::/docker/{B}/docker/{A}", ["A", "", "", "", ""]),
    ("hybrid: the container's cgroup in v1 only", "2:pids:/kubepods/burstable/pod{UID}/{A}\n0::/system.slice/containerd.service", ["A", "UID", "", "", ""]),
    ("hybrid: a service", "4:memory:/system.slice/jupyter.service\n1:name=systemd:/system.slice/jupyter.service\n0::/system.slice/jupyter.service", ["", "", "jupyter.service", "", ""]),
    ("seen from a pod's own cgroup namespace", "0::/../../kubepods-burstable-pod{UID_}.slice/cri-containerd-{A}.scope", ["A", "UID", "", "", ""]),
    ("in the same pod, seen from there", "0::/../cri-containerd-{A}.scope", ["A", "", "", "", ""]),
    ("in one's own cgroup namespace", "0::/", ["", "", "", "", ""]),
    ("system service", "0::/system.slice/ollama.service", ["", "", "ollama.service", "", ""]),
    ("service in a slice of a slice", "0::/ml.slice/ml-train.slice/train@7.service/worker", ["", "", "train@7.service", "", ""]),
    ("escaped name of a unit", "0::/system.slice/system-serial\\x2dgetty.slice/serial-getty@ttyS0.service", ["", "", "serial-getty@ttyS0.service", "", ""]),
    ("session of a user", "0::/user.slice/user-1000.slice/session-3.scope", ["", "", "session-3.scope", "", ""]),
    ("service of a user", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service", ["", "", "user@1000.service/jupyter.service", "", ""]),
    ("a user's manager", "0::/user.slice/user-1000.slice/user@1000.service/init.scope", ["", "", "user@1000.service/init.scope", "", ""]),
    ("systemd", "0::/init.scope", ["", "", "init.scope", "", ""]),
    ("kernel thread", "0::/", ["", "", "", "", ""]),
    ("Slurm, v1", "9:memory:/slurm/uid_1000/job_42/step_0/task_0\n1:name=systemd:/system.slice/slurmd.service", ["", "", "slurmd.service", "42", "0"]),
    ("Slurm, v1, several nodes of one machine", "9:devices:/slurm_node1/uid_1000/job_42/step_batch", ["", "", "", "42", "batch"]),
    ("Slurm, v2", "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", ["", "", "slurmstepd.scope", "42", "0"]),
    ("Slurm, v2, several nodes of one machine", "0::/system.slice/node1_slurmstepd.scope/job_42/step_extern/user/task_special", ["", "", "node1_slurmstepd.scope", "42", "extern"]),
    ("a job before its steps", "0::/system.slice/slurmstepd.scope/job_42", ["", "", "slurmstepd.scope", "42", ""]),
    ("a folder that is called like a job", "0::/system.slice/ci.service/job_42/step_0", ["", "", "ci.service", "", ""]),
    ("removed before its last process was gone", "0::/system.slice/docker-{A}.scope (deleted)", ["A", "", "", "", ""]),
    ("almost a container", "0::/docker/{A}0\n1:x:/docker/3F1B2C4D5E6F708192A3B4C5D6E7F8090A1B2C3D4E5F60718293A4B5C6D7E8F9", ["", "", "", "", ""]),
    ("no cgroups at all", "", ["", "", "", "", ""]),
    ("lines that are none", "0:\nx\n::\n:::::\n0::system.slice//a.service/", ["", "", "a.service", "", ""]),
];

fn filled(text: &str) -> String {
    let text = text.replace("{A}", A).replace("{B}", B);
    text.replace("{UID}", UID).replace("{UID_}", UID_)
}

#[test]
fn every_shape_is_read_as_it_is_meant() {
    for (name, file, expected) in SHAPES {
        let place = parse(format!("{}\n", filled(file)).as_bytes());
        let found = [
            place.container_id,
            place.pod_uid,
            place.unit,
            place.slurm_job,
            place.slurm_step,
        ];
        let expected = expected.map(|value| match value {
            "" => None,
            "A" => Some(A.to_owned()),
            "UID" => Some(UID.to_owned()),
            text => Some(filled(text)),
        });
        assert_eq!(found, expected, "{name}: {file}");
    }
}

#[test]
fn the_order_of_the_lines_of_v1_does_not_matter() {
    let lines = [
        format!("11:perf_event:/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{A}"),
        format!("10:blkio:/system.slice/containerd.service/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{A}"),
        "1:name=systemd:/system.slice/containerd.service".to_owned(),
        "0::/".to_owned(),
    ];
    let forwards = parse(lines.join("\n").as_bytes());
    let backwards = parse(lines.iter().rev().cloned().collect::<Vec<_>>().join("\n").as_bytes());
    assert_eq!(forwards, backwards);
    assert_eq!(forwards.container_id.as_deref(), Some(A));
}

#[test]
fn this_machine_tells_of_this_test() {
    let own = std::fs::read("/proc/self/cgroup").unwrap();
    check(&parse(&own)).unwrap();
}

fn check(place: &Place) -> Result<(), TestCaseError> {
    let id = place.container_id.as_deref().unwrap_or(A);
    prop_assert!(id.len() == 64 && is_hexadecimal(id), "{id}");
    let uid = place.pod_uid.as_deref().unwrap_or(UID);
    prop_assert!(
        uid.len() <= 64 && uid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()),
        "{uid}"
    );
    prop_assert!(
        place.slurm_job.as_deref().is_none_or(is_number),
        "{:?}",
        place.slurm_job
    );
    prop_assert!(place.slurm_step.is_none() || place.slurm_job.is_some());
    for text in [&place.unit, &place.slurm_step].into_iter().flatten() {
        prop_assert!(
            (1..=128).contains(&text.len()) && !text.contains(char::is_control),
            "{text:?}"
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_the_file_says_each_value_is_bounded_and_of_its_form(
        lines in prop::collection::vec(
            "[0-9]{0,2}:[a-z=,]{0,12}:(/(\\.\\.|[a-f0-9]{64}|pod[a-f0-9-]{30,40}|user@1000\\.service|a{0,200}\\.service|x\\.slice|slurm|job_[0-9]{0,30}|step_\\PC{0,9}|(docker-|cri-containerd-)[a-f0-9]{63,65}\\.scope)){0,6}",
            0..6,
        ),
    ) {
        check(&parse(lines.join("\n").as_bytes()))?;
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&parse(&bytes))?;
    }

    #[test]
    fn a_container_is_found_wherever_its_cgroup_lies(
        before in prop::collection::vec("[a-z]{1,8}(\\.slice)?", 0..4),
        after in prop::collection::vec("[a-z]{1,8}", 0..3),
        name in "(docker-|cri-containerd-|libpod-|crio-|nerdctl-|)",
    ) {
        let part = format!("{name}{A}.scope");
        let path: Vec<&str> = before.iter().chain([&part]).chain(&after).map(String::as_str).collect();
        let place = parse(format!("0::/{}\n", path.join("/")).as_bytes());
        prop_assert_eq!(place.container_id.as_deref(), Some(A));
    }
}

#[test]
fn names_of_the_kernel_are_read_as_the_path_that_they_make() {
    let names = |path: &'static str| path.rsplit('/').map(str::as_bytes).collect::<Vec<_>>();
    let unified = names("system.slice/slurmstepd.scope/job_42/step_batch/user/task_0");
    let place = of_names(&[unified, vec![], names("slurm/uid_1000/job_41/step_0")]);
    assert_eq!(
        (
            place.slurm_job.as_deref(),
            place.slurm_step.as_deref(),
            place.unit.as_deref()
        ),
        (Some("42"), Some("batch"), Some("slurmstepd.scope"))
    );
    let of_v1 = of_names(&[vec![], names("slurm/uid_1000/job_41/step_0")]);
    assert_eq!(of_v1.slurm_job.as_deref(), Some("41"));
    assert_eq!(of_names(&[]), Place::default());
}
