//! What a kubelet lists of devices that containers have: `v1.ListPodResourcesResponse`. Pure, total.

use super::protobuf::{Malformed, fields};
use super::{DeviceName, Holder, Reservation};
use crate::owner::clean;
use crate::owner::container::Names;
use std::collections::BTreeSet;

/// Of the device plugins of NVIDIA: `nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`, `nvidia.com/gpu.shared`.
const RESOURCES: &[u8] = b"nvidia.com/";
/// More than a node's devices have slices.
const MOST: usize = 4096;

/// The devices of NVIDIA that containers have, each once: a slice is as a whole one.
///
/// # Errors
/// The bytes are no such message, in words.
pub fn reservations(message: &[u8]) -> Result<Vec<Reservation>, String> {
    let mut found = BTreeSet::new();
    for field in fields(message) {
        if let (1, pod) = field.map_err(words)? {
            of_pod(pod, &mut found).map_err(words)?;
        }
    }
    Ok(found.into_iter().collect())
}

fn words(malformed: Malformed) -> String {
    malformed.to_string()
}

fn of_pod(pod: &[u8], to: &mut BTreeSet<Reservation>) -> Result<(), Malformed> {
    let (mut name, mut namespace, mut containers) = (&b""[..], &b""[..], Vec::new());
    for field in fields(pod) {
        match field? {
            (1, text) => name = text,
            (2, text) => namespace = text,
            (3, container) => containers.push(container),
            _ => {}
        }
    }
    containers
        .into_iter()
        .try_for_each(|container| of_container(container, name, namespace, to))
}

fn of_container(
    container: &[u8],
    pod: &[u8],
    namespace: &[u8],
    to: &mut BTreeSet<Reservation>,
) -> Result<(), Malformed> {
    let (mut name, mut devices) = (&b""[..], Vec::new());
    for field in fields(container) {
        match field? {
            (1, text) => name = text,
            (2, of_resource) => devices.extend(ids(of_resource)?),
            _ => {}
        }
    }
    let holder = Holder::Container(Names {
        namespace: clean(namespace),
        pod: clean(pod),
        container: clean(name),
        controller: String::new(),
    });
    for id in devices {
        if to.len() < MOST {
            to.insert(Reservation {
                holder: holder.clone(),
                device: DeviceName::of_plugin(&clean(id)),
            });
        }
    }
    Ok(())
}

/// Of one resource; none, where that is not NVIDIA's.
fn ids(of_resource: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let (mut name, mut ids) = (&b""[..], Vec::new());
    for field in fields(of_resource) {
        match field? {
            (1, text) => name = text,
            (2, id) if ids.len() < MOST => ids.push(id),
            _ => {}
        }
    }
    Ok(if name.starts_with(RESOURCES) { ids } else { Vec::new() })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            field.push(length as u8 | 0x80);
            length >>= 7;
        }
        field.push(length as u8);
        [&field, content].concat()
    }

    /// A pod with one container, which has devices of one resource.
    pub(crate) fn pod(name: &str, container: &str, resource: &str, ids: &[&str]) -> Vec<u8> {
        let ids = ids.iter().flat_map(|id| field(2, id.as_bytes()));
        let devices: Vec<u8> = field(1, resource.as_bytes()).into_iter().chain(ids).collect();
        let container = [field(1, container.as_bytes()), field(2, &devices)].concat();
        let pod = [field(1, name.as_bytes()), field(2, b"ml"), field(3, &container)].concat();
        field(1, &pod)
    }

    fn held(pod: &str, container: &str, device: DeviceName) -> Reservation {
        Reservation {
            holder: Holder::Container(Names {
                namespace: "ml".to_owned(),
                pod: pod.to_owned(),
                container: container.to_owned(),
                controller: String::new(),
            }),
            device,
        }
    }

    #[test]
    fn devices_of_nvidia_are_their_containers_each_once() {
        let uuid = |id: &str| DeviceName::Uuid(id.to_owned());
        let message = [
            pod("a", "main", "nvidia.com/gpu", &["GPU-1", "GPU-2"]),
            pod("b", "main", "nvidia.com/gpu.shared", &["GPU-3::0", "GPU-3::1"]),
            pod("c", "main", "cpu", &["GPU-4"]),
            pod("d", "main", "nvidia.com/mig-1g.10gb", &["MIG-5"]),
            pod("e", "main", "nvidia.com/gpu", &[]),
        ];
        assert_eq!(
            reservations(&message.concat()).unwrap(),
            [
                held("a", "main", uuid("GPU-1")),
                held("a", "main", uuid("GPU-2")),
                held("b", "main", uuid("GPU-3")),
                held("d", "main", uuid("MIG-5")),
            ]
        );
    }

    #[test]
    fn a_node_without_pods_has_no_reservations_and_what_is_cut_is_told() {
        assert_eq!(reservations(b""), Ok(Vec::new()));
        let whole = pod("a", "main", "nvidia.com/gpu", &["GPU-1"]);
        let words = reservations(&whole[..whole.len() - 1]).unwrap_err();
        assert!(words.starts_with("failed to read a message of protobuf"), "{words}");
    }

    #[test]
    fn names_of_pods_are_harmless_and_reservations_bounded() {
        let hostile = pod("a\x1b[2J", "c", "nvidia.com/gpu", &["GPU-1"]);
        let found = reservations(&hostile).unwrap();
        assert_eq!(found, [held("a\u{fffd}[2J", "c", DeviceName::Uuid("GPU-1".to_owned()))]);
        let ids: Vec<String> = (0..2 * MOST).map(|number| format!("GPU-{number}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let many = [
            pod("a", "c", "nvidia.com/gpu", &ids),
            pod("b", "c", "nvidia.com/gpu", &ids),
        ];
        assert_eq!(reservations(&many.concat()).unwrap().len(), MOST);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..40) {
            let _ = reservations(&bytes);
            let whole = pod("a", "main", "nvidia.com/gpu", &["GPU-1"]);
            let mut damaged = whole.clone();
            damaged.truncate(cut.min(whole.len()));
            damaged.extend(&bytes);
            let _ = reservations(&damaged);
        }
    }
}
