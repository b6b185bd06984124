//! Where a process runs, from `/proc/PID/cgroup`: container, pod, systemd unit, job. Pure.
//!
//! Each line is `NUMBER:CONTROLLERS:PATH`; of cgroup v2 there is one, `0::PATH`. A path is seen from the cgroup
//! namespace of whoever reads it, thus may begin with `/../`. What the parts of a path are called is the convention of
//! systemd, the container runtimes, the kubelet and batch schedulers.

use super::batch;
use super::value::clean;

/// What encloses a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// 64 hexadecimal digits: of the container that Kubernetes knows, else the innermost.
    pub container_id: Option<String>,
    pub pod_uid: Option<String>,
    /// Of systemd; `user@1000.service/NAME` is one of a user's own manager.
    pub unit: Option<String>,
    pub slurm_job: Option<String>,
    /// `0`, `batch`, `extern`, `interactive`.
    pub slurm_step: Option<String>,
    /// Of any batch scheduler, Slurm among them.
    pub job: Option<String>,
}

impl Place {
    /// Of all that runs in a job of Slurm.
    #[must_use]
    pub fn of_slurm(job: &str) -> Place {
        Place {
            slurm_job: Some(job.to_owned()),
            job: Some(job.to_owned()),
            ..Place::default()
        }
    }

    /// What this does not say, as `other` says it.
    #[must_use]
    pub(super) fn or(&self, other: &Place) -> Place {
        let either = |of: fn(&Place) -> &Option<String>| of(self).clone().or_else(|| of(other).clone());
        Place {
            container_id: either(|place| &place.container_id),
            pod_uid: either(|place| &place.pod_uid),
            unit: either(|place| &place.unit),
            slurm_job: either(|place| &place.slurm_job),
            slurm_step: either(|place| &place.slurm_step),
            job: either(|place| &place.job),
        }
    }
}

/// Reads all lines; what they disagree on is taken from cgroup v2, then systemd's hierarchy, then the others.
#[must_use]
pub fn parse(text: &[u8]) -> Place {
    let mut lines: Vec<Line> = text.split(|byte| *byte == b'\n').filter_map(Line::parse).collect();
    lines.sort_by_key(Line::rank);
    let places: Vec<Place> = lines.iter().map(|line| place(&line.path)).collect();
    let first = |of: fn(&Place) -> &Option<String>| places.iter().find_map(|place| of(place).clone());
    // in hybrid mode a container's line of one hierarchy can stand beside its engine's unit of another
    let contained = places.iter().find(|place| place.container_id.is_some());
    Place {
        container_id: first(|place| &place.container_id),
        pod_uid: first(|place| &place.pod_uid),
        unit: contained.map_or_else(|| first(|place| &place.unit), |place| place.unit.clone()),
        slurm_job: first(|place| &place.slurm_job),
        slurm_step: first(|place| &place.slurm_step),
        job: first(|place| &place.job),
    }
}

/// The path in each hierarchy, as the text of `/proc/PID/cgroup` has it.
#[must_use]
pub(super) fn paths(text: &[u8]) -> Vec<String> {
    let lines = text.split(|byte| *byte == b'\n').filter_map(Line::parse);
    lines.map(|line| line.path).collect()
}

/// Reads the names of cgroups as the kernel has them, the innermost first: of cgroup v2, then of hierarchies of v1.
#[must_use]
pub fn of_names(hierarchies: &[Vec<&[u8]>]) -> Place {
    let line = |(number, names): (usize, &Vec<&[u8]>)| {
        let controllers: &[u8] = if number == 0 { b"0::" } else { b"1:v1:" };
        let path: Vec<u8> = names.iter().rev().flat_map(|name| [b"/", *name].concat()).collect();
        // no name of a cgroup has a newline
        [controllers, &path, b"\n"].concat()
    };
    parse(&hierarchies.iter().enumerate().flat_map(line).collect::<Vec<u8>>())
}

struct Line {
    controllers: Vec<u8>,
    path: String,
}

impl Line {
    fn parse(line: &[u8]) -> Option<Line> {
        // a path may hold colons too
        let mut fields = line.splitn(3, |byte| *byte == b':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let path = String::from_utf8_lossy(path);
        Some(Line {
            controllers: controllers.to_vec(),
            // the kernel's mark of a cgroup that was removed before its last process was gone
            path: path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned(),
        })
    }

    fn rank(&self) -> u8 {
        match self.controllers.as_slice() {
            b"" => 0,
            b"name=systemd" => 1,
            _ => 2,
        }
    }
}

fn place(path: &str) -> Place {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != "..")
        .collect();
    let pod = parts.iter().rposition(|part| pod_uid(part).is_some());
    let container = container_index(&parts, pod);
    let (slurm_job, slurm_step) = slurm(&parts);
    Place {
        container_id: container.and_then(|at| container_id(parts[at])).map(str::to_owned),
        pod_uid: pod.and_then(|at| pod_uid(parts[at])),
        unit: if pod.is_none() {
            unit(&parts[..container.unwrap_or(parts.len())])
        } else {
            None
        },
        job: slurm_job.clone().or_else(|| batch::of_cgroup(&parts)),
        slurm_job,
        slurm_step,
    }
}

/// The first container in a pod, else the innermost.
fn container_index(parts: &[&str], pod: Option<usize>) -> Option<usize> {
    let is_container = |part: &&str| container_id(part).is_some();
    match pod {
        Some(at) => Some(at + parts[at..].iter().position(is_container)?),
        None => parts.iter().rposition(is_container),
    }
}

/// `ID`, `docker-ID.scope`, `cri-containerd-ID.scope`, `crio-ID`, `libpod-ID.scope`, `libpod-payload-ID`, `….slice:cri-containerd:ID`.
fn container_id(part: &str) -> Option<&str> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let (engine, id) = match name.rfind(['-', ':', '_']) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => ("", name),
    };
    // conmon watches a container from outside
    let is_one = is_hexadecimal(id) && id.len() == 64 && !engine.ends_with("conmon");
    is_one.then_some(id)
}

/// `podUID`, `kubepods-burstable-podUID.slice` with `_` for `-`, `kubepods-podUID.slice:cri-containerd:ID`.
fn pod_uid(part: &str) -> Option<String> {
    let name = part.split(':').next().unwrap_or(part);
    let uid = match name.strip_suffix(".slice") {
        Some(slice) => slice.contains("kubepods").then(|| slice.rsplit_once("-pod"))??.1,
        None => name.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let digits = uid.replace('-', "");
    (digits.len() == 32 && uid.len() <= 36 && is_hexadecimal(&digits)).then_some(uid)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// As systemd itself finds it: the first part that is a unit and no slice.
fn unit(parts: &[&str]) -> Option<String> {
    let first = parts.iter().position(|part| !part.ends_with(".slice"))?;
    let system = Some(parts[first]).filter(|part| is_unit(part))?;
    let is_manager = system.starts_with("user@");
    let of_user = is_manager.then(|| unit(&parts[first + 1..])).flatten();
    let system = system.strip_prefix('_').unwrap_or(system);
    let name = of_user.map_or_else(|| system.to_owned(), |of_user| format!("{system}/{of_user}"));
    Some(clean(name.as_bytes()))
}

fn is_unit(part: &str) -> bool {
    let kinds = [".service", ".scope", ".socket", ".mount", ".swap"];
    kinds.iter().any(|kind| part.len() > kind.len() && part.ends_with(kind))
}

/// `/slurm/uid_1000/job_42/step_0`, `/system.slice/slurmstepd.scope/job_42/step_0/user`: job and step.
fn slurm(parts: &[&str]) -> (Option<String>, Option<String>) {
    let mut rest = parts.iter().skip_while(|part| !is_slurm(part)).skip(1);
    let Some(job) = rest.find_map(|part| part.strip_prefix("job_").filter(|job| is_number(job))) else {
        return (None, None);
    };
    let step = rest.next().and_then(|part| part.strip_prefix("step_"));
    let step = step.filter(|step| !step.is_empty()).map(|step| clean(step.as_bytes()));
    (Some(job.to_owned()), step)
}

pub(crate) fn is_slurm(part: &str) -> bool {
    part == "slurm" || part.starts_with("slurm_") || part.ends_with("slurmstepd.scope")
}

pub(crate) fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
