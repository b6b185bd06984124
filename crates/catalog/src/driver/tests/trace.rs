//! Each recorded ioctl has a name, and each CUDA call makes as many of each as were counted on that machine.

use std::collections::BTreeMap;

use super::dialect;
use super::recording::{Recorded, calls, of};
use crate::driver::Ioctl;
use crate::driver::tables::escape;

fn decode(recorded: &Recorded) -> Ioctl {
    recorded.argument().decode(dialect(580))
}

/// How often each call was made: all of a kind, and by class or method.
fn counts(call: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for ioctl in of(call) {
        let name = decode(&ioctl).name;
        if let Some((call, _)) = name.split_once(' ') {
            *counts.entry(call.to_owned()).or_insert(0) += 1;
        }
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

fn count(counts: &BTreeMap<String, usize>, name: &str) -> usize {
    counts.get(name).copied().unwrap_or_default()
}

#[test]
fn every_recorded_ioctl_has_a_name() {
    let mut undocumented = Vec::new();
    let mut ioctls = 0;
    for recorded in calls().into_iter().flat_map(|(_, ioctls)| ioctls) {
        let ioctl = decode(&recorded);
        ioctls += 1;
        assert!(!ioctl.name.contains("ioctl"), "{recorded:?} has no name");
        assert_eq!(
            ioctl.status.map_or(0, |status| status.code),
            recorded.status,
            "{recorded:?}"
        );
        if !ioctl.notes.is_empty() {
            undocumented.push((recorded.detail.expect("a method"), ioctl.notes));
        }
    }
    assert_eq!(ioctls, 107 + 355 + 4 + 3 + 1 + 5 + 1 + 3 + 212);
    let cmds: Vec<u32> = undocumented.iter().map(|(cmd, _)| *cmd).collect();
    assert_eq!(
        cmds,
        [0x2081_0108, 0x2080_8159, 0x2080_8162, 0x2080_9038],
        "NVIDIA's headers do not have these"
    );
    assert!(
        undocumented.iter().all(|(_, notes)| notes[0].starts_with("method 0x")),
        "{undocumented:?}"
    );
}

#[test]
fn each_call_makes_as_many_ioctls_as_were_counted() {
    let expected = [
        ("Init", 107),
        ("CtxCreate_v2", 355),
        ("MemAlloc_v2", 4),
        ("MemAllocHost_v2", 3),
        ("MemcpyHtoD_v2", 0),
        ("ModuleLoadData", 0),
        ("LaunchKernel", 0),
        ("CtxSynchronize", 0),
        ("StreamCreate", 1),
        ("EventCreate", 0),
        ("EventSynchronize", 0),
        ("MemHostRegister_v2", 5),
        ("IpcGetMemHandle", 1),
        ("MemFree_v2", 3),
        ("CtxDestroy_v2", 212),
    ];
    for (call, ioctls) in expected {
        assert_eq!(of(call).len(), ioctls, "{call}");
    }
}

#[test]
fn a_context_is_made_of_what_was_counted() {
    let made = counts("CtxCreate_v2");
    let expected = [
        ("RM_ALLOC", 105),
        ("RM_ALLOC KEPLER_CHANNEL_GROUP_A", 4),
        ("RM_ALLOC FERMI_CONTEXT_SHARE_A", 1),
        ("RM_ALLOC HOPPER_CHANNEL_GPFIFO_A", 20),
        ("RM_ALLOC HOPPER_COMPUTE_A", 8),
        ("RM_ALLOC HOPPER_DMA_COPY_A", 20),
        ("RM_ALLOC NV01_MEMORY_SYSTEM", 26),
        ("RM_ALLOC NV01_MEMORY_LOCAL_USER", 17),
        ("RM_ALLOC NV01_EVENT_OS_EVENT", 8),
        ("RM_ALLOC GT200_DEBUGGER", 1),
        ("RM_CONTROL", 117),
        ("RM_CONTROL NVA06C_CTRL_CMD_GPFIFO_SCHEDULE", 4),
        ("UVM_CREATE_EXTERNAL_RANGE", 27),
        ("UVM_MAP_EXTERNAL_ALLOCATION", 27),
        ("UVM_REGISTER_CHANNEL", 20),
        ("UVM_REGISTER_GPU_VASPACE", 1),
    ];
    for (name, expected) in expected {
        assert_eq!(count(&made, name), expected, "{name}");
    }
}

#[test]
fn a_context_ends_as_was_counted() {
    let made = counts("CtxDestroy_v2");
    let expected = [
        ("RM_FREE", 111),
        ("UVM_FREE", 32),
        ("RM_UNMAP_MEMORY", 27),
        ("UVM_UNREGISTER_CHANNEL", 20),
        ("UVM_DESTROY_RANGE_GROUP", 8),
        ("FREE_OS_EVENT", 8),
        ("RM_CONTROL", 5),
        ("UVM_UNREGISTER_GPU_VASPACE", 1),
    ];
    for (name, expected) in expected {
        assert_eq!(count(&made, name), expected, "{name}");
    }
}

#[test]
fn start_up_asks_what_was_counted() {
    let made = counts("Init");
    assert_eq!(count(&made, "RM_CONTROL"), 73);
    assert_eq!(count(&made, "SYS_PARAMS"), 2);
    assert_eq!(count(&made, "RM_ALLOC NV01_ROOT_CLIENT"), 2);
    assert_eq!(count(&made, "RM_ALLOC FERMI_VASPACE_A"), 2);
    assert_eq!(escape(0xd6).map(|entry| entry.name), Some("SYS_PARAMS"));
}

#[test]
fn an_allocation_is_four_calls() {
    let names: Vec<String> = of("MemAlloc_v2").iter().map(|ioctl| decode(ioctl).name).collect();
    let expected = [
        "RM_ALLOC NV01_MEMORY_LOCAL_USER",
        "RM_CONTROL NV503C_CTRL_CMD_REGISTER_VIDMEM",
        "UVM_CREATE_EXTERNAL_RANGE",
        "UVM_MAP_EXTERNAL_ALLOCATION",
    ];
    assert_eq!(names, expected);
}
