//! Whom schedulers have given devices, whether or not anything runs on them.
//!
//! ```text
//!  kubelet's socket ─► unary ─► listing ─► kubelet (a thread) ─┐
//!  cgroups of Slurm's jobs, their processes' environment ─► slurm ─┴─► Reservation
//! ```
//!
//! Owns the asking and what the answers mean. Knows neither NVML nor who uses a device: that is for who counts.

mod kubelet;
mod listing;
mod protobuf;
mod slurm;
mod unary;

pub use kubelet::{Answer, KubeletSocket, SOCKET};
pub use listing::reservations;
pub use slurm::SlurmJobs;
pub use unary::body_of;

use crate::owner::container::Names;

/// Who has been given a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Holder {
    /// A container of a pod.
    Container(Names),
    /// A job of Slurm.
    Job(String),
}

/// A device as a scheduler calls it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceName {
    /// `GPU-…`, `MIG-…`.
    Uuid(String),
    /// The number in `/dev/nvidiaNUMBER`.
    Minor(u32),
    /// What no device here is called.
    Unknown(String),
}

/// A device that somebody was given; a slice of one is as a whole one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reservation {
    pub holder: Holder,
    pub device: DeviceName,
}

impl DeviceName {
    /// Of a device plugin: `GPU-…`, `MIG-…`, with `::NUMBER` where devices are shared by time; `nvidiaNUMBER`,
    /// `nvidiaNUMBER/vgpuNUMBER` on GKE.
    fn of_plugin(id: &str) -> DeviceName {
        let whole = id.split("::").next().unwrap_or(id);
        if whole.starts_with("GPU-") || whole.starts_with("MIG-") {
            return DeviceName::Uuid(whole.to_owned());
        }
        let (node, part) = whole.split_once('/').unwrap_or((whole, "vgpu"));
        let minor = node.strip_prefix("nvidia").and_then(|minor| minor.parse().ok());
        match minor.filter(|_| part.starts_with("vgpu")) {
            Some(minor) => DeviceName::Minor(minor),
            None => DeviceName::Unknown(whole.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_called_by_its_uuid_or_its_node() {
        let uuid = |text: &str| DeviceName::Uuid(text.to_owned());
        for (id, device) in [
            ("GPU-7f", uuid("GPU-7f")),
            ("GPU-7f::3", uuid("GPU-7f")),
            ("MIG-7f::0", uuid("MIG-7f")),
            ("MIG-GPU-7f/1/0", uuid("MIG-GPU-7f/1/0")),
            ("nvidia3", DeviceName::Minor(3)),
            ("nvidia3/vgpu1", DeviceName::Minor(3)),
            ("nvidia3/gi1", DeviceName::Unknown("nvidia3/gi1".to_owned())),
            ("0", DeviceName::Unknown("0".to_owned())),
            ("", DeviceName::Unknown(String::new())),
        ] {
            assert_eq!(DeviceName::of_plugin(id), device, "{id}");
        }
    }
}
