//! Jobs as Slurm's daemon makes them: cgroups, and what their processes' environment says.

use super::support::comes_true;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A job in one hierarchy; removed when dropped.
pub struct Job {
    folders: [PathBuf; 4],
}

impl Job {
    pub fn below(hierarchy: &Path, number: usize) -> Job {
        let slurm = hierarchy.join(format!("slurm_test{}", std::process::id()));
        let user = slurm.join("uid_0");
        let job = user.join(format!("job_{number}"));
        let step = job.join("step_batch");
        std::fs::create_dir_all(&step).expect("a cgroup");
        Job {
            folders: [step, job, user, slurm],
        }
    }

    /// Where it looks for jobs of version 1, or else of version 2.
    pub fn where_devices_are(number: usize) -> Job {
        let freezer = Path::new("/sys/fs/cgroup/freezer");
        match freezer.exists() {
            true => Job::below(freezer, number),
            false => Job::below(Path::new("/sys/fs/cgroup"), number),
        }
    }

    /// `program ARGUMENTS…` as a process of it, once it has its arguments.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.processes())
            .arg(program);
        command
    }

    pub fn processes(&self) -> PathBuf {
        self.folders[0].join("cgroup.procs")
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let [step, job, others @ ..] = &self.folders;
        for folder in [step, job] {
            // while a process of it is ending, it is busy
            comes_true(|| std::fs::remove_dir(folder).is_ok());
        }
        for folder in others {
            let _ = std::fs::remove_dir(folder);
        }
    }
}
