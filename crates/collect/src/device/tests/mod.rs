//! What the devices of a process are, and what it holds of them.

mod access;
mod environment;
mod merge;
mod ordinals;
mod owner;
mod reconcile;
mod visible;

use super::{Device, MigDevice, ProcessMemory};

/// GPU 0, 1, … of one model, on buses in that order. The UUIDs of 0 and 1 are those of a real machine.
fn gpu(index: u32) -> Device {
    let first = [
        "496fcbea-860c-dc49-0260-15549f07516e",
        "9b83f6d3-f738-c091-5df2-c63fdcceb51d",
    ];
    let other = format!("0000000{index:x}-0000-0000-0000-000000000000");
    let uuid = first.get(index as usize).map_or(other, |uuid| (*uuid).to_owned());
    Device {
        index,
        uuid: format!("GPU-{uuid}"),
        name: "H200".to_owned(),
        pci_bus_id: format!("00000000:{:02X}:00.0", index + 6),
        minor: Some(index),
        memory: None,
        mig: None,
    }
}

fn gpus(count: u32) -> Vec<Device> {
    (0..count).map(gpu).collect()
}

/// A GPU in so many parts; GPU instances 7, 8, …, compute instance 0.
fn divided(index: u32, parts: u32) -> Device {
    let whole = gpu(index);
    let part = |number: u32| MigDevice {
        uuid: format!("MIG-d000000{index:x}-0000-0000-0000-00000000000{number:x}"),
        name: "H200 MIG 1g".to_owned(),
        parent: whole.uuid.clone(),
        gpu_instance: 7 + number,
        compute_instance: 0,
        memory: None,
    };
    Device {
        mig: Some((0..parts).map(part).collect()),
        ..whole.clone()
    }
}

fn holds(device: &str, pid: u32, bytes: impl Into<Option<u64>>) -> ProcessMemory {
    ProcessMemory {
        device: device.to_owned(),
        nvml_pid: pid,
        pid: Some(pid),
        bytes: bytes.into(),
    }
}
