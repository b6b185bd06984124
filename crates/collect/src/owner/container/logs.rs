//! Names that the kubelet gave to logs: `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` and
//! `/var/log/pods/NAMESPACE_POD_UID`.

use super::{EVERY, Names};
use crate::owner::value::clean;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A node runs some hundred containers.
const MOST_LOGS: usize = 20_000;

/// The names of logs, read again when one is missing.
#[derive(Debug)]
pub(crate) struct Logs {
    containers: PathBuf,
    pods: PathBuf,
    by_id: HashMap<String, Names>,
    read: Option<Instant>,
}

impl Logs {
    pub(crate) fn new(root: &Path) -> Logs {
        Logs {
            containers: root.join("var/log/containers"),
            pods: root.join("var/log/pods"),
            by_id: HashMap::new(),
            read: None,
        }
    }

    /// Whether a kubelet writes logs here.
    pub(crate) fn exist(&self) -> bool {
        self.containers.is_dir()
    }

    /// The names of a container that has a log.
    pub(crate) fn names(&mut self, id: &str, now: Instant) -> Option<Names> {
        let fresh = self.read.is_some_and(|read| now.duration_since(read) < EVERY);
        if !fresh && !self.by_id.contains_key(id) {
            let names = names_in(&self.containers);
            self.by_id = names.filter_map(|name| of_container(&name)).take(MOST_LOGS).collect();
            self.read = Some(now);
        }
        self.by_id.get(id).cloned()
    }

    /// The namespace and the name of a pod that has logs.
    pub(crate) fn pod(&self, uid: &str) -> Option<Names> {
        names_in(&self.pods).take(MOST_LOGS).find_map(|name| of_pod(&name, uid))
    }
}

fn names_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

fn of_container(name: &str) -> Option<(String, Names)> {
    let (names, id) = name.strip_suffix(".log")?.rsplit_once('-')?;
    let mut parts = names.split('_').map(|part| clean(part.as_bytes()));
    let (pod, namespace, container) = (parts.next()?, parts.next()?, parts.next()?);
    let names = Names {
        namespace,
        pod,
        container,
        ..Names::default()
    };
    parts.next().is_none().then(|| (id.to_owned(), names))
}

fn of_pod(name: &str, uid: &str) -> Option<Names> {
    let (namespace, pod) = name.strip_suffix(uid)?.strip_suffix('_')?.split_once('_')?;
    Some(Names {
        namespace: clean(namespace.as_bytes()),
        pod: clean(pod.as_bytes()),
        ..Names::default()
    })
}
