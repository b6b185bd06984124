//! The job of a batch scheduler that a process belongs to, and its rank in a parallel program. Pure.
//!
//! A cgroup cannot be left by a program, thus it is believed before the environment, which anybody may set.

/// Longer ones are no jobs.
const LONGEST_JOB_BYTES: usize = 64;
/// The job's number in the environment, by scheduler: Slurm, PBS, LSF.
const JOB_VARIABLES: [&str; 3] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"];
/// The number of an element of LSF's arrays; the others have it in the job.
const LSF_INDEX: &str = "LSB_JOBINDEX";
/// The rank, what a program itself was told first: torchrun, Open MPI, PMIx, MPICH, MVAPICH, Slurm.
const RANK_VARIABLES: [&str; 6] = [
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
];

/// The job that an environment names: `4711` of Slurm and LSF, `4711[3]` of LSF's arrays, `4711.server` of PBS; empty: the environment has none.
#[must_use]
pub fn job(variable: impl Fn(&str) -> String) -> String {
    let found = JOB_VARIABLES.iter().map(|name| (*name, variable(name)));
    let Some((name, job)) = found.into_iter().find(|(_, job)| is_job(job)) else {
        return String::new();
    };
    let index = variable(LSF_INDEX);
    match name == "LSB_JOBID" && is_number(&index) && index != "0" {
        true => format!("{job}[{index}]"),
        false => job,
    }
}

/// Empty: the environment has none.
pub(super) fn rank(variable: impl Fn(&str) -> String) -> String {
    let found = RANK_VARIABLES.iter().map(|name| variable(name));
    found.into_iter().find(|rank| is_number(rank)).unwrap_or_default()
}

/// The job in the parts of a cgroup's path, but Slurm's: `pbs_jobs.service/jobid/4711.server`,
/// `lsf/CLUSTER/job.4711.PID.TIME`.
pub(super) fn of_cgroup(parts: &[&str]) -> Option<String> {
    let pbs = parts.windows(3).find_map(|three| match three {
        [service, "jobid", job] if service.starts_with("pbs") => Some(*job),
        _ => None,
    });
    let lsf = parts.windows(3).find_map(|three| match three {
        ["lsf", _, job] => job.strip_prefix("job.")?.split('.').next(),
        _ => None,
    });
    pbs.or(lsf).filter(|job| is_job(job)).map(str::to_owned)
}

fn is_job(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[]".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_digit()) && text.len() <= LONGEST_JOB_BYTES && text.bytes().all(fits)
}

fn is_number(text: &str) -> bool {
    (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within<'a>(entries: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> String + 'a {
        move |name| {
            let found = entries.iter().find(|(known, _)| *known == name);
            found.map_or_else(String::new, |(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn each_scheduler_says_its_job_in_the_environment() {
        assert_eq!(job(within(&[("SLURM_JOB_ID", "42"), ("RANK", "3")])), "42");
        assert_eq!(
            job(within(&[("PBS_JOBID", "42[7].head.example")])),
            "42[7].head.example"
        );
        assert_eq!(job(within(&[("LSB_JOBID", "42"), ("LSB_JOBINDEX", "0")])), "42");
        assert_eq!(job(within(&[("LSB_JOBID", "42"), ("LSB_JOBINDEX", "7")])), "42[7]");
        assert_eq!(job(within(&[])), "");
    }

    #[test]
    fn what_is_no_job_in_the_environment_is_none() {
        let long = format!("4{}", "2".repeat(64));
        for wrong in ["", "x", "-1", "42 43", "42\u{fffd}", "42/../1", &long] {
            assert_eq!(job(within(&[("SLURM_JOB_ID", wrong)])), "", "{wrong:?}");
        }
    }

    #[test]
    fn the_rank_is_what_the_program_was_told_and_then_the_schedulers() {
        assert_eq!(rank(within(&[("SLURM_PROCID", "0"), ("RANK", "3")])), "3");
        assert_eq!(
            rank(within(&[("SLURM_PROCID", "5"), ("OMPI_COMM_WORLD_RANK", "x")])),
            "5"
        );
        assert_eq!(rank(within(&[("RANK", "-1")])), "");
    }

    #[test]
    fn cgroups_of_pbs_and_lsf_name_the_job() {
        assert_eq!(
            of_cgroup(&["pbs_jobs.service", "jobid", "42.head"]).as_deref(),
            Some("42.head")
        );
        assert_eq!(
            of_cgroup(&["lsf", "c1", "job.42.4390.1443685438"]).as_deref(),
            Some("42")
        );
        for none in [
            ["pbs_jobs.service", "jobid", "x"],
            ["a", "jobid", "42"],
            ["lsf", "c1", "42"],
        ] {
            assert_eq!(of_cgroup(&none), None, "{none:?}");
        }
    }
}
