//! Names that containerd, CRI-O and nerdctl wrote into the description that the container was started from
//! (`config.json` of OCI) as annotations.

use super::{Names, read_description};
use crate::owner::value::clean;
use serde::Deserialize;
use std::path::Path;

/// Where containerd keeps what runs; of k3s and RKE2, k0s, MicroK8s it is another one.
const CONTAINERD: [&str; 4] = [
    "run/containerd",
    "run/k3s/containerd",
    "run/k0s/containerd",
    "var/snap/microk8s/common/run/containerd",
];
/// Its own namespaces: that of the kubelet, that of nerdctl.
const NAMESPACES: [&str; 2] = ["k8s.io", "default"];
const CRIO: &str = "run/containers/storage/overlay-containers";

#[derive(Deserialize)]
struct Description {
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "io.kubernetes.cri.sandbox-namespace")]
    containerd_namespace: Option<String>,
    #[serde(rename = "io.kubernetes.cri.sandbox-name")]
    containerd_pod: Option<String>,
    #[serde(rename = "io.kubernetes.cri.container-name")]
    containerd_container: Option<String>,
    #[serde(rename = "io.kubernetes.pod.namespace")]
    crio_namespace: Option<String>,
    #[serde(rename = "io.kubernetes.pod.name")]
    crio_pod: Option<String>,
    #[serde(rename = "io.kubernetes.container.name")]
    crio_container: Option<String>,
    #[serde(rename = "nerdctl/name")]
    nerdctl: Option<String>,
}

/// The names in the text of a `config.json`; `None`: there are none.
#[must_use]
pub fn names(text: &[u8]) -> Option<Names> {
    let found = serde_json::from_slice::<Description>(text).ok()?.annotations?;
    let value = |values: [Option<String>; 3]| {
        let value = values.into_iter().flatten().find(|value| !value.is_empty());
        clean(value.unwrap_or_default().as_bytes())
    };
    let names = Names {
        namespace: value([found.containerd_namespace, found.crio_namespace, None]),
        pod: value([found.containerd_pod, found.crio_pod, None]),
        container: value([found.containerd_container, found.crio_container, found.nerdctl]),
        ..Names::default()
    };
    (names != Names::default()).then_some(names)
}

pub(crate) fn look(root: &Path, id: &str) -> Option<Names> {
    let named = |folder: &Path| names(&read_description(&folder.join("config.json"))?);
    let tasks = CONTAINERD
        .iter()
        .map(|state| root.join(state).join("io.containerd.runtime.v2.task"));
    let in_containerd = tasks.flat_map(|tasks| NAMESPACES.map(|namespace| tasks.join(namespace).join(id)));
    let in_crio = root.join(CRIO).join(id).join("userdata");
    in_containerd.chain([in_crio]).find_map(|folder| named(&folder))
}
