//! The ioctls of a CUDA program on an H200 with driver 580.159.04, as recorded: each has a name, and each CUDA call
//! makes as many of each as were counted on that machine.

use std::collections::BTreeMap;

use super::{Argument, dialect};
use crate::driver::tables::escape;
use crate::driver::{Device, Ioctl};

const TRACE: &str = include_str!("ioctl_trace_h200_580.159.04.txt");

/// One recorded ioctl: device, number, class or method or size, NV_STATUS or return value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    pub(crate) device: Device,
    pub(crate) nr: u32,
    pub(crate) detail: Option<u32>,
    pub(crate) status: u32,
}

impl Recorded {
    /// `c2b:cbc0!0`
    fn parse(word: &str) -> Option<Self> {
        let device = match word.get(..1)? {
            "c" => Device::Control,
            "g" => Device::Gpu(0),
            "u" => Device::Uvm,
            _ => return None,
        };
        let hex = |digits| u32::from_str_radix(digits, 16).ok();
        let (call, status) = word[1..].split_once('!')?;
        let (nr, detail) = call
            .split_once(':')
            .map_or((call, None), |(nr, detail)| (nr, hex(detail)));
        Some(Self {
            device,
            nr: hex(nr)?,
            detail,
            status: hex(status)?,
        })
    }

    /// The argument that the program passed, as far as it was recorded.
    pub(crate) fn argument(&self) -> Argument {
        match (self.device, self.nr, self.detail) {
            (Device::Uvm, nr, _) => Argument::uvm(nr),
            (device, 0x2b, Some(class)) => Argument::front(device, 0x2b, 48).u32(12, class).answer(40, self.status),
            (device, 0x2a, Some(cmd)) => Argument::front(device, 0x2a, 32).u32(8, cmd).answer(28, self.status),
            // not recorded of which class; it is pinned memory
            (device, 0x27, Some(size)) => Argument::front(device, 0x27, size).u32(12, 0x71),
            (device, nr, Some(size)) => Argument::front(device, nr, size),
            (device, nr, None) => panic!("{device} {nr:#x}: no size was recorded"),
        }
    }

    fn decode(&self) -> Ioctl {
        self.argument().decode(dialect(580))
    }
}

/// The recorded CUDA calls, in order, each with its ioctls.
pub(crate) fn calls() -> Vec<(&'static str, Vec<Recorded>)> {
    let mut calls = Vec::new();
    for line in TRACE.lines() {
        let words = match line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            Some((call, words)) => {
                calls.push((call, Vec::new()));
                words
            }
            None => line,
        };
        if let Some((_, ioctls)) = calls.last_mut() {
            ioctls.extend(words.split_whitespace().filter_map(Recorded::parse));
        }
    }
    calls
}

/// The ioctls of the first call whose name begins so.
pub(crate) fn of(call: &str) -> Vec<Recorded> {
    let found = calls().into_iter().find(|(name, _)| name.starts_with(call));
    found.unwrap_or_else(|| panic!("{call} is not in the trace")).1
}

/// How often each call was made: all of a kind, and by class or method.
fn counts(call: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for ioctl in of(call) {
        let name = ioctl.decode().name;
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
        let ioctl = recorded.decode();
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
    let names: Vec<String> = of("MemAlloc_v2").iter().map(|ioctl| ioctl.decode().name).collect();
    let expected = [
        "RM_ALLOC NV01_MEMORY_LOCAL_USER",
        "RM_CONTROL NV503C_CTRL_CMD_REGISTER_VIDMEM",
        "UVM_CREATE_EXTERNAL_RANGE",
        "UVM_MAP_EXTERNAL_ALLOCATION",
    ];
    assert_eq!(names, expected);
}
