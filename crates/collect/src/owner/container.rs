//! What a container is called: namespace, pod and container, or its own name where there are no pods.
//!
//! Of a container in a pod the names can become known a moment after its processes begin: the kubelet links its log
//! and publishes its status only then. Whoever asks is told to ask [`Answer::Later`], for a bounded time.

mod docker;
mod logs;
mod oci;

pub use docker::names as docker_names;
pub use oci::names as oci_names;

use super::cgroup::Place;
use super::process::read;
use logs::Logs;
use std::collections::HashMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For so long a name may still become known.
const PATIENCE: Duration = Duration::from_secs(15);
/// So often is looked again for it meanwhile.
const EVERY: Duration = Duration::from_secs(1);
/// What was not found is looked for again, for processes that begin then.
const AGAIN: Duration = Duration::from_secs(60);
/// Containers beyond this are looked up anew each time.
const MOST_CONTAINERS: usize = 4096;
/// Descriptions of containers are some ten KiB long.
const FILE_BYTES: u64 = 4 << 20;

const HINT: &str = "hint: docs/labels.md says what names them; in a DaemonSet, mount /var/log/containers of the host";

/// What a container is called; empty: not known, or it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Names {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    /// What made the pod, such as a Job; only a kubelet knows.
    pub controller: String,
}

/// Where names come from, beside files.
pub trait Pods: Debug + Send {
    /// Never waits; `None`: not known yet.
    fn names(&mut self, place: &Place) -> Option<Names>;
    /// Why it does not answer.
    fn trouble(&self) -> Option<String>;
}

/// What is known of names now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This for good.
    Names(Names),
    /// They may become known in the next seconds.
    Later,
}

/// Looks up the names of containers.
#[derive(Debug)]
pub(crate) struct Containers {
    root: PathBuf,
    logs: Logs,
    pods: Option<Box<dyn Pods>>,
    /// By container, or by pod where that is all that is known.
    known: HashMap<String, Known>,
    /// Names without that are not enough, as long as a kubelet may tell it.
    pub wants_controllers: bool,
}

#[derive(Debug)]
enum Known {
    Found(Names),
    Missing {
        since: Instant,
        looked: Instant,
        in_pod: bool,
    },
}

impl Containers {
    pub(crate) fn new(root: &Path) -> Containers {
        Containers {
            root: root.to_owned(),
            logs: Logs::new(root),
            pods: None,
            known: HashMap::new(),
            wants_controllers: false,
        }
    }

    /// Also asks this one.
    pub(crate) fn ask_also(&mut self, pods: Option<Box<dyn Pods>>) {
        self.pods = pods;
    }

    /// Why names are missing.
    pub(crate) fn trouble(&self, now: Instant) -> Option<String> {
        let nameless = |known: &&Known| match known {
            Known::Missing { since, in_pod, .. } => *in_pod && now.duration_since(*since) >= PATIENCE,
            Known::Found(_) => false,
        };
        let asked = self.pods.as_ref().and_then(|pods| pods.trouble());
        let count = self.known.values().filter(nameless).count();
        asked.or_else(|| (count > 0).then(|| format!("names of containers in pods were not found: of {count}\n{HINT}")))
    }

    /// What the container, or else the pod, of a place is called.
    pub(crate) fn names(&mut self, place: &Place, now: Instant) -> Answer {
        let Some(key) = place.container_id.as_ref().or(place.pod_uid.as_ref()) else {
            return Answer::Names(Names::default());
        };
        match self.known.get(key) {
            Some(Known::Found(names)) => return Answer::Names(names.clone()),
            Some(Known::Missing { since, looked, .. }) if now.duration_since(*looked) < self.pause(*since, now) => {
                return self.missing(place, *since, now);
            }
            _ => {}
        }
        let since = self.since(key, now);
        let found = self.look(place, since, now);
        let missing = Known::Missing {
            since,
            looked: now,
            in_pod: place.pod_uid.is_some(),
        };
        self.remember(key, found.clone().map_or(missing, Known::Found));
        found.map_or_else(|| self.missing(place, since, now), Answer::Names)
    }

    fn remember(&mut self, key: &str, known: Known) {
        if self.known.len() >= MOST_CONTAINERS {
            self.known.clear();
        }
        self.known.insert(key.to_owned(), known);
    }

    /// When it was first looked for, this time.
    fn since(&self, key: &str, now: Instant) -> Instant {
        match self.known.get(key) {
            Some(Known::Missing { since, .. }) if now.duration_since(*since) < AGAIN => *since,
            _ => now,
        }
    }

    fn pause(&self, since: Instant, now: Instant) -> Duration {
        if now.duration_since(since) < PATIENCE {
            EVERY
        } else {
            AGAIN
        }
    }

    fn missing(&mut self, place: &Place, since: Instant, now: Instant) -> Answer {
        let may_come = place.pod_uid.is_some() && (self.pods.is_some() || self.logs.exist());
        if may_come && now.duration_since(since) < PATIENCE {
            return Answer::Later;
        }
        let pod = place.pod_uid.as_deref().and_then(|uid| self.logs.pod(uid));
        Answer::Names(pod.unwrap_or_default())
    }

    fn look(&mut self, place: &Place, since: Instant, now: Instant) -> Option<Names> {
        let in_files = place.container_id.as_deref().and_then(|id| self.in_files(id, now));
        let enough = !self.wants_controllers || place.pod_uid.is_none();
        if in_files.is_some() && enough {
            return in_files;
        }
        let told = self.pods.as_mut().and_then(|pods| pods.names(place));
        let answers = self.pods.as_ref().is_some_and(|pods| pods.trouble().is_none());
        let may_come = answers && now.duration_since(since) < PATIENCE;
        told.or_else(|| in_files.filter(|_| !may_come))
    }

    fn in_files(&mut self, id: &str, now: Instant) -> Option<Names> {
        let logged = self.logs.names(id, now);
        logged
            .or_else(|| oci::look(&self.root, id))
            .or_else(|| docker::look(&self.root, id))
    }
}

/// A description of a container.
fn read_description(path: &Path) -> Option<Vec<u8>> {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES);
    is_file.then(|| read(path, FILE_BYTES).ok())?
}

#[cfg(test)]
#[path = "container_tests.rs"]
mod tests;
