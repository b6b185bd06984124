//! Questions to NVML about one device, put into our words. Nothing is judged here.

use super::merge::Line;
use super::{Device, Memory, MigDevice};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

/// Processes may start between the question how many there are and the list.
const TRIES: usize = 4;

/// The handle of a GPU or of a MIG device.
pub(super) type Gpu<'a> = nvml_wrapper::Device<'a>;

pub(super) fn note(index: u32, what: &str, error: &NvmlError) -> String {
    format!("NVML: GPU {index}: {what}: {error}")
}

pub(super) fn describe(gpu: &Gpu, index: u32, notes: &mut Vec<String>) -> Result<Device, NvmlError> {
    let uuid = gpu.uuid()?;
    let parts = parts(gpu, index, &uuid, notes);
    Ok(Device {
        index,
        name: gpu.name()?,
        pci_bus_id: gpu.pci_info()?.bus_id,
        minor: gpu.minor_number().ok(),
        memory: memory(gpu),
        mig: parts.map(|parts| parts.into_iter().map(|(_, part)| part).collect()),
        uuid,
    })
}

fn memory(gpu: &Gpu) -> Option<Memory> {
    match gpu.memory_info() {
        Ok(memory) => Some(Memory {
            total_bytes: memory.total,
            used_bytes: memory.used,
            reserved_bytes: Some(memory.reserved),
        }),
        Err(error) if is_too_new(&error) => old_memory(gpu),
        Err(_) => None,
    }
}

/// As drivers before 510 tell it.
fn old_memory(gpu: &Gpu) -> Option<Memory> {
    let ask = gpu.nvml().lib().nvmlDeviceGetMemoryInfo.as_ref().ok()?;
    // SAFETY: the handle is this device's, and the call fills the structure, for which zeros are valid
    let (code, told) = unsafe {
        let mut told = std::mem::zeroed();
        (ask(gpu.handle(), &raw mut told), told)
    };
    (code == 0).then_some(Memory {
        total_bytes: told.total,
        used_bytes: told.used,
        reserved_bytes: None,
    })
}

/// The driver is older than the question.
fn is_too_new(error: &NvmlError) -> bool {
    matches!(error, NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound)
}

/// The MIG devices of a GPU with their handles; `None`: it is not in MIG mode.
///
/// NVML counts the places for MIG devices; not all are taken.
pub(super) fn parts<'a>(
    gpu: &Gpu<'a>,
    index: u32,
    uuid: &str,
    notes: &mut Vec<String>,
) -> Option<Vec<(Gpu<'a>, MigDevice)>> {
    if !gpu.mig_mode().is_ok_and(|mode| mode.current != 0) {
        return None;
    }
    let mut parts = Vec::new();
    for place in 0..gpu.mig_device_count().unwrap_or(0) {
        let handle = gpu.mig_device_by_index(place);
        match handle.and_then(|handle| Ok((describe_part(&handle, uuid)?, handle))) {
            Ok((part, handle)) => parts.push((handle, part)),
            Err(NvmlError::NotFound) => {}
            Err(error) => notes.push(note(index, &format!("MIG device {place} does not answer"), &error)),
        }
    }
    Some(parts)
}

fn describe_part(part: &Gpu, parent: &str) -> Result<MigDevice, NvmlError> {
    let lib = part.nvml().lib();
    let instance = |ask: Option<&unsafe extern "C" fn(_, *mut u32) -> u32>| {
        let mut id = 0;
        // SAFETY: the handle is this part's, and the call fills the number
        let code = ask.map(|ask| unsafe { ask(part.handle(), &raw mut id) });
        if code == Some(0) {
            Ok(id)
        } else {
            Err(NvmlError::NotFound)
        }
    };
    Ok(MigDevice {
        uuid: part.uuid()?,
        name: part.name()?,
        parent: parent.to_owned(),
        gpu_instance: instance(lib.nvmlDeviceGetGpuInstanceId.as_ref().ok())?,
        compute_instance: instance(lib.nvmlDeviceGetComputeInstanceId.as_ref().ok())?,
        memory: memory(part),
    })
}

/// The three lists; only privileged users may see those of a divided GPU, and its parts tell the same.
pub(super) fn lists(gpu: &Gpu, index: u32, is_divided: bool, notes: &mut Vec<String>) -> Vec<Vec<Line>> {
    let asked = [
        (
            "compute",
            ask(&|| gpu.running_compute_processes(), &|| {
                gpu.running_compute_processes_v2()
            }),
        ),
        (
            "graphics",
            ask(&|| gpu.running_graphics_processes(), &|| {
                gpu.running_graphics_processes_v2()
            }),
        ),
        ("MPS", ask(&|| gpu.mps_running_compute_processes(), &|| Ok(Vec::new()))),
    ];
    let mut lists = Vec::new();
    for (name, told) in asked {
        match told {
            Ok(list) => lists.push(list.into_iter().map(line).collect()),
            Err(NvmlError::NotSupported) => {}
            Err(NvmlError::NoPermission) if is_divided => {}
            Err(error) => notes.push(note(index, &format!("{name} processes not listed"), &error)),
        }
    }
    lists
}

type Ask<'a> = &'a dyn Fn() -> Result<Vec<ProcessInfo>, NvmlError>;

fn ask(new: Ask, old: Ask) -> Result<Vec<ProcessInfo>, NvmlError> {
    match patiently(new) {
        Err(error) if is_too_new(&error) => patiently(old),
        other => other,
    }
}

fn patiently(ask: Ask) -> Result<Vec<ProcessInfo>, NvmlError> {
    for _ in 1..TRIES {
        match ask() {
            Err(NvmlError::InsufficientSize(_)) => {}
            other => return other,
        }
    }
    ask()
}

fn line(process: ProcessInfo) -> Line {
    Line {
        pid: process.pid,
        bytes: match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        },
        gpu_instance: process.gpu_instance_id,
        compute_instance: process.compute_instance_id,
    }
}
