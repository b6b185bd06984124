//! What Slurm has given to the jobs on this node: the jobs by their cgroups, their devices by the environment of one of
//! their processes.
//!
//! A job holds its devices from when one of its processes is first seen to name them until its cgroup is gone, whether it
//! has processes then or not. Not seen: a job that never had a process here that lives as long as a look takes, one whose
//! environment names no device, and what a program that forged its environment does not have. Slurm numbers devices by
//! their device files where gres.conf does not say otherwise.

use super::{DeviceName, Holder, Reservation};
use crate::owner::cgroup::{is_number, is_slurm};
use crate::owner::{first_variable, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the job has, and what one of its steps has of that.
const VARIABLES: [&str; 2] = ["SLURM_JOB_GPUS", "SLURM_STEP_GPUS"];
const MOST_JOBS: usize = 1024;
const MOST_FOLDERS: usize = 256;
const MOST_PROCESSES: usize = 32;
const MOST_DEVICES: usize = 256;
const PROCS_BYTES: u64 = 64 << 10;

/// The jobs of Slurm on this node.
#[derive(Debug)]
pub struct SlurmJobs {
    root: PathBuf,
    /// By number; without devices, as long as no process has named any.
    jobs: BTreeMap<String, BTreeSet<u32>>,
}

impl SlurmJobs {
    /// `root` is `/`, or a folder with another `proc` and `sys`.
    #[must_use]
    pub fn new(root: &Path) -> SlurmJobs {
        SlurmJobs {
            root: root.to_owned(),
            jobs: BTreeMap::new(),
        }
    }

    /// Looks which jobs there are, and asks processes of those whose devices are not known yet.
    pub fn look(&mut self) {
        let found = jobs(&self.root);
        self.jobs.retain(|job, _| found.contains_key(job));
        for (job, folders) in found.into_iter().take(MOST_JOBS) {
            let devices = self.jobs.entry(job).or_default();
            if devices.is_empty() {
                *devices = named(&self.root.join("proc"), &folders);
            }
        }
    }

    /// What they hold, as of the last look.
    pub fn reservations(&self) -> impl Iterator<Item = Reservation> {
        let of_job = |(job, devices): (&String, &BTreeSet<u32>)| {
            let holder = Holder::Job(job.clone());
            let of_device = move |minor: &u32| Reservation {
                holder: holder.clone(),
                device: DeviceName::Minor(*minor),
            };
            devices.iter().map(of_device).collect::<Vec<_>>()
        };
        self.jobs.iter().flat_map(of_job)
    }
}

/// The folders of each job: one of cgroup v2, or one in each hierarchy of v1.
fn jobs(root: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let cgroups = root.join("sys/fs/cgroup");
    let mut jobs: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let in_system = folders(&cgroups.join("system.slice"), is_slurm);
    let users = ["", "devices", "memory", "freezer", "cpuset"].map(|controller| cgroups.join(controller));
    let users = users.iter().flat_map(|hierarchy| folders(hierarchy, is_slurm));
    let users = users.flat_map(|folder| folders(&folder, |name| name.starts_with("uid_")));
    for folder in in_system.into_iter().chain(users) {
        for found in folders(&folder, |name| name.starts_with("job_")) {
            let name = found.file_name().and_then(|name| name.to_str());
            let job = name.and_then(|name| name.strip_prefix("job_"));
            if let Some(job) = job.filter(|job| is_number(job)) {
                jobs.entry(job.to_owned()).or_default().push(found);
            }
        }
    }
    jobs
}

fn folders(of: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).into_iter().flatten().flatten();
    let wanted = |entry: &std::fs::DirEntry| entry.file_name().to_str().is_some_and(&wanted);
    let folders = entries.filter(|entry| wanted(entry) && entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).take(MOST_JOBS).collect()
}

/// The devices that the first of its processes names that names any.
fn named(proc: &Path, folders_of_job: &[PathBuf]) -> BTreeSet<u32> {
    let mut waiting = folders_of_job.to_vec();
    let (mut looked, mut asked) = (0, BTreeSet::new());
    while let Some(folder) = waiting.pop().filter(|_| looked < MOST_FOLDERS) {
        looked += 1;
        for pid in processes(&folder) {
            if asked.len() >= MOST_PROCESSES || !asked.insert(pid) {
                continue;
            }
            let devices = devices_of(&first_variable(proc, pid, &VARIABLES));
            if !devices.is_empty() {
                return devices;
            }
        }
        waiting.extend(folders(&folder, |_| true));
    }
    BTreeSet::new()
}

fn processes(folder: &Path) -> Vec<u32> {
    let text = read(&folder.join("cgroup.procs"), PROCS_BYTES).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| std::str::from_utf8(line).ok()?.parse().ok())
        .collect()
}

/// `0,2`, `0-3,7`; nothing of a text that is anything else.
fn devices_of(text: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        ((last as usize) < MOST_DEVICES).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges.unwrap_or_default().into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::tree::Tree;

    const STEP: &str = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_42/step_0/user/task_0";

    fn held(jobs: &SlurmJobs) -> Vec<(String, DeviceName)> {
        let words = |of: Reservation| match of.holder {
            Holder::Job(job) => (job, of.device),
            Holder::Container(names) => (names.pod, of.device),
        };
        jobs.reservations().map(words).collect()
    }

    fn of(job: &str, minors: &[u32]) -> Vec<(String, DeviceName)> {
        let of = |minor: &u32| (job.to_owned(), DeviceName::Minor(*minor));
        minors.iter().map(of).collect()
    }

    #[test]
    fn a_job_holds_what_one_of_its_processes_names_until_its_cgroup_is_gone() {
        let tree = Tree::default();
        tree.file(&format!("{STEP}/cgroup.procs"), b"7\n8\n");
        tree.file("proc/7/environ", b"HOME=/\0");
        tree.file("proc/8/environ", b"SLURM_STEP_GPUS=1\0SLURM_JOB_GPUS=1,3\0");
        let mut jobs = SlurmJobs::new(tree.root());
        jobs.look();
        assert_eq!(held(&jobs), of("42", &[1, 3]));

        tree.file(&format!("{STEP}/cgroup.procs"), b"");
        jobs.look();
        assert_eq!(
            held(&jobs),
            of("42", &[1, 3]),
            "its processes have ended, the job has not"
        );

        std::fs::remove_dir_all(tree.root().join("sys/fs/cgroup/system.slice/slurmstepd.scope/job_42")).unwrap();
        jobs.look();
        assert_eq!(held(&jobs), []);
    }

    #[test]
    fn a_job_that_names_nothing_yet_is_asked_again() {
        let tree = Tree::default();
        tree.file(&format!("{STEP}/cgroup.procs"), b"7\n");
        let mut jobs = SlurmJobs::new(tree.root());
        jobs.look();
        assert_eq!(held(&jobs), []);
        tree.file("proc/7/environ", b"SLURM_STEP_GPUS=0\0");
        jobs.look();
        assert_eq!(held(&jobs), of("42", &[0]));
    }

    #[test]
    fn jobs_are_found_in_hierarchies_of_cgroup_v1() {
        let tree = Tree::default();
        tree.file(
            "sys/fs/cgroup/memory/slurm/uid_1000/job_9/step_batch/cgroup.procs",
            b"7\n",
        );
        tree.file("sys/fs/cgroup/memory/slurm/uid_1000/job_x/cgroup.procs", b"7\n");
        tree.file("proc/7/environ", b"SLURM_JOB_GPUS=2\0");
        let mut jobs = SlurmJobs::new(tree.root());
        jobs.look();
        assert_eq!(held(&jobs), of("9", &[2]));
    }

    #[test]
    fn a_list_of_devices_is_read_as_a_whole_or_not() {
        let minors = |text| devices_of(text).into_iter().collect::<Vec<_>>();
        assert_eq!(minors("0-2,7"), [0, 1, 2, 7]);
        for wrong in ["", "x", "0,", "0-x", "0-4000000000", "256", "-1"] {
            assert_eq!(minors(wrong), Vec::<u32>::new(), "{wrong}");
        }
    }
}
