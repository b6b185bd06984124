//! Whether a process may be one of a container's or of a job's. What is not known is never taken for a no.

use super::cgroup::Place;
use super::container::Names;

/// Where a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// It could not be looked at, or its container has no name yet.
    Unknown,
    Known {
        /// Of its container; all empty outside of pods.
        names: Names,
        slurm_job: Option<String>,
    },
}

impl Whereabouts {
    pub(super) fn of(place: Place, names: Names) -> Whereabouts {
        match place.pod_uid.is_some() && names.pod.is_empty() {
            true => Whereabouts::Unknown,
            false => Whereabouts::Known {
                names,
                slurm_job: place.slurm_job,
            },
        }
    }

    /// Whether it may run in that container of a pod.
    #[must_use]
    pub fn may_be_in(&self, container: &Names) -> bool {
        let Whereabouts::Known { names, .. } = self else {
            return true;
        };
        let same = (&names.namespace, &names.pod) == (&container.namespace, &container.pod);
        same && (names.container.is_empty() || names.container == container.container)
    }

    /// Whether it may be of that job of Slurm.
    #[must_use]
    pub fn may_be_of(&self, job: &str) -> bool {
        match self {
            Whereabouts::Unknown => true,
            Whereabouts::Known { slurm_job, .. } => slurm_job.as_deref() == Some(job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pod: &str, container: &str) -> Names {
        Names {
            namespace: "ml".to_owned(),
            pod: pod.to_owned(),
            container: container.to_owned(),
            controller: "train".to_owned(),
        }
    }

    fn in_pod() -> Place {
        Place {
            pod_uid: Some("7f".to_owned()),
            ..Place::default()
        }
    }

    #[test]
    fn a_process_is_in_its_container_and_in_no_other() {
        let asked = |container| Names {
            controller: String::new(),
            ..named("a", container)
        };
        let process = Whereabouts::of(in_pod(), named("a", "main"));
        assert!(process.may_be_in(&asked("main")) && !process.may_be_in(&asked("side")));
        assert!(!process.may_be_in(&named("b", "main")) && !process.may_be_of("42"));
    }

    #[test]
    fn one_of_which_only_the_pod_is_known_may_be_in_each_container_of_it() {
        let process = Whereabouts::of(in_pod(), named("a", ""));
        assert!(process.may_be_in(&named("a", "main")) && !process.may_be_in(&named("b", "main")));
    }

    #[test]
    fn one_of_which_nothing_is_known_may_be_anywhere() {
        let nameless = Whereabouts::of(in_pod(), Names::default());
        for process in [nameless, Whereabouts::Unknown] {
            assert!(process.may_be_in(&named("a", "main")) && process.may_be_of("42"));
        }
    }

    #[test]
    fn one_outside_of_pods_is_in_none_and_in_its_own_job_alone() {
        let place = Place {
            slurm_job: Some("42".to_owned()),
            ..Place::default()
        };
        let process = Whereabouts::of(place, Names::default());
        assert!(process.may_be_of("42") && !process.may_be_of("43"));
        assert!(!process.may_be_in(&named("a", "main")));
    }
}
