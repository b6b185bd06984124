//! NVML, loaded: finds the library and asks about each device in turn.

use super::ask::{Gpu, describe, lists, note, parts};
use super::merge::merged;
use super::owner::Owners;
use super::{Absent, Device, Found, MigDevice, ProcessMemory};
use crate::processor::HERE;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

const LIBRARY: &str = "libnvidia-ml.so.1";
/// Names another library, for tests and unusual installations.
const OVERRIDE: &str = "GPUSCOPE_NVML";
pub(super) const WHOLE_PERCENT: u32 = 100;

/// The devices of this machine. Holds NVML open; without a persistent driver that keeps the GPUs awake.
pub struct Devices {
    nvml: Nvml,
}

/// What NVML is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    /// Of the kernel driver; `None`: not told.
    pub driver: Option<String>,
    /// Of the library; `None`: not told.
    pub nvml: Option<String>,
}

impl Devices {
    /// Loads NVML: the library that `GPUSCOPE_NVML` names, or else the driver's.
    ///
    /// # Errors
    /// When there is none, or when the driver does not answer.
    pub fn open() -> Result<Devices, Absent> {
        if let Some(path) = named_library() {
            return Devices::open_library(Path::new(&path));
        }
        let first = match load(Path::new(LIBRARY)) {
            Err(error) if Absent::is_missing_library(&error) => error,
            other => return other.map_err(|error| Absent::new(LIBRARY, &error)),
        };
        for path in HERE.driver_libraries.map(|place| Path::new(place).join(LIBRARY)) {
            if path.exists() {
                return Devices::open_library(&path);
            }
        }
        Err(Absent::new(LIBRARY, &first))
    }

    /// Loads NVML from `path`.
    ///
    /// # Errors
    /// When it is none, or when the driver does not answer.
    pub(crate) fn open_library(path: &Path) -> Result<Devices, Absent> {
        load(path).map_err(|error| Absent::new(&path.display().to_string(), &error))
    }

    /// Versions of driver and library.
    pub(crate) fn versions(&self) -> Versions {
        Versions {
            driver: self.nvml.sys_driver_version().ok(),
            nvml: self.nvml.sys_nvml_version().ok(),
        }
    }

    /// The devices, in NVML's order.
    pub fn list(&self) -> Found<Device> {
        self.each(|index, gpu, notes| Ok(vec![describe(gpu, index, notes)?]))
    }

    /// What each process holds of each device.
    pub fn processes(&self) -> Found<ProcessMemory> {
        let mut owners = Owners::new("/proc");
        self.each(|index, gpu, notes| Ok(processes_of(gpu, index, &mut owners, notes)?.0))
    }

    /// Processes that hold memory on a device on which a kernel of anybody ran all the time lately, with NVML's number of it.
    pub(super) fn busy_processes(&self, owners: &mut Owners) -> BTreeSet<(u32, u32)> {
        let busy = self.each(|index, gpu, notes| {
            if gpu.utilization_rates()?.gpu < WHOLE_PERCENT {
                return Ok(Vec::new());
            }
            let (held, _) = processes_of(gpu, index, owners, notes)?;
            Ok(held.iter().filter_map(|one| Some((one.pid?, index))).collect())
        });
        busy.items.into_iter().collect()
    }

    pub(super) fn nvml(&self) -> &Nvml {
        &self.nvml
    }

    /// One device that does not answer takes nothing from the others.
    fn each<T>(&self, mut ask: impl FnMut(u32, &Gpu, &mut Vec<String>) -> Result<Vec<T>, NvmlError>) -> Found<T> {
        let (mut items, mut notes) = (Vec::new(), Vec::new());
        let count = self.nvml.device_count().unwrap_or_else(|error| {
            notes.push(format!("NVML: the devices cannot be counted: {error}"));
            0
        });
        for index in 0..count {
            let gpu = self.nvml.device_by_index(index);
            match gpu.and_then(|gpu| ask(index, &gpu, &mut notes)) {
                Ok(found) => items.extend(found),
                Err(error) => notes.push(note(index, "does not answer", &error)),
            }
        }
        Found { items, notes }
    }
}

/// What each process holds of one device, and whether NVML lists processes there at all.
pub(super) fn processes_of(
    gpu: &Gpu,
    index: u32,
    owners: &mut Owners,
    notes: &mut Vec<String>,
) -> Result<(Vec<ProcessMemory>, bool), NvmlError> {
    let uuid = gpu.uuid()?;
    let parts = parts(gpu, index, &uuid, notes);
    let of_gpu = lists(gpu, index, parts.is_some(), notes);
    let (mut described, mut of_parts): (Vec<MigDevice>, Vec<_>) = (Vec::new(), Vec::new());
    for (handle, part) in parts.unwrap_or_default() {
        let lists = lists(&handle, index, false, notes);
        of_parts.extend(lists.into_iter().map(|list| (part.uuid.clone(), list)));
        described.push(part);
    }
    let has_lists = !of_gpu.is_empty() || !of_parts.is_empty();
    let merged = merged(&uuid, &described, &of_gpu, &of_parts).into_iter();
    let found = merged.map(|((device, nvml_pid), bytes)| ProcessMemory {
        device,
        nvml_pid,
        pid: owners.of(nvml_pid),
        bytes,
    });
    Ok((found.collect(), has_lists))
}

/// None when this program has more rights than who started it: that one must not choose what is loaded.
fn named_library() -> Option<OsString> {
    // SAFETY: reads a value that the kernel put beside this program at its start
    let has_more_rights = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    std::env::var_os(OVERRIDE).filter(|path| !path.is_empty() && !has_more_rights)
}

fn load(path: &Path) -> Result<Devices, NvmlError> {
    let nvml = Nvml::builder().lib_path(path.as_os_str()).init()?;
    Ok(Devices { nvml })
}
