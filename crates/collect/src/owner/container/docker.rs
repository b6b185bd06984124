//! Names that Docker and Podman keep in files of their own.

use super::{Names, read_description};
use crate::owner::value::clean;
use serde::Deserialize;
use std::path::Path;

const DOCKER: [&str; 2] = [
    "var/lib/docker/containers",
    "var/snap/docker/common/var-lib-docker/containers",
];
const PODMAN: &str = "var/lib/containers/storage/overlay-containers/containers.json";

#[derive(Deserialize)]
struct OfDocker {
    #[serde(rename = "Name", default)]
    name: String,
    #[serde(rename = "Config")]
    config: Option<Config>,
}

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "Labels")]
    labels: Option<Labels>,
}

/// Those that the kubelet gives by way of Docker.
#[derive(Deserialize, Default)]
struct Labels {
    #[serde(rename = "io.kubernetes.pod.namespace", default)]
    namespace: String,
    #[serde(rename = "io.kubernetes.pod.name", default)]
    pod: String,
    #[serde(rename = "io.kubernetes.container.name", default)]
    container: String,
}

#[derive(Deserialize)]
struct OfPodman {
    id: String,
    #[serde(default)]
    names: Vec<String>,
}

pub(crate) fn look(root: &Path, id: &str) -> Option<Names> {
    let files = DOCKER.map(|folder| root.join(folder).join(id).join("config.v2.json"));
    let in_docker = files.iter().find_map(|file| names(&read_description(file)?));
    in_docker.or_else(|| of_podman(&read_description(&root.join(PODMAN))?, id))
}

/// The names in the text of Docker's `config.v2.json`; `None`: there are none.
#[must_use]
pub fn names(text: &[u8]) -> Option<Names> {
    let found: OfDocker = serde_json::from_slice(text).ok()?;
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    let own = found.name.strip_prefix('/').unwrap_or(&found.name);
    let container = if labels.container.is_empty() {
        own
    } else {
        &labels.container
    };
    let names = Names {
        namespace: clean(labels.namespace.as_bytes()),
        pod: clean(labels.pod.as_bytes()),
        container: clean(container.as_bytes()),
        ..Names::default()
    };
    (names != Names::default()).then_some(names)
}

fn of_podman(text: &[u8], id: &str) -> Option<Names> {
    let all: Vec<OfPodman> = serde_json::from_slice(text).ok()?;
    let name = all
        .into_iter()
        .find(|container| container.id == id)?
        .names
        .into_iter()
        .next()?;
    Some(Names {
        container: clean(name.as_bytes()),
        ..Names::default()
    })
}
