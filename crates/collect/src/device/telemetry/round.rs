//! One round of questions to all GPUs, while NVML is open.

use super::answer::{Answers, Trouble};
use super::gpm::Gpm;
use super::gpu::{Gpu, Identity};
use super::kept::Kept;
use super::work::{ProcessWork, Work};
use super::{read, xid};
use crate::device::ask::{Gpu as Handle, describe};
use crate::device::nvml::processes_of;
use crate::device::owner::Owners;
use crate::device::{Device, Devices, ProcessMemory};
use nvml_wrapper::error::NvmlError;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// What one round was told.
#[derive(Default)]
pub(super) struct Told {
    pub(super) gpus: Vec<Gpu>,
    pub(super) devices: Vec<Device>,
    pub(super) processes: Vec<ProcessMemory>,
    /// GPUs of which they are all there.
    pub(super) listed: BTreeSet<String>,
    pub(super) work: Vec<ProcessWork>,
    /// By NVML's number of the GPU.
    pub(super) errors: BTreeMap<u32, u64>,
    pub(super) notes: Vec<String>,
    pub(super) trouble: Trouble,
}

/// Asks round after round.
pub(super) struct Rounds<'a> {
    devices: &'a Devices,
    /// From one to the next.
    every: Duration,
    gpm: Gpm<'a>,
    work: Work,
    owners: Owners,
    /// By UUID.
    kept: HashMap<String, Kept>,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(devices: &'a Devices, every: Duration) -> Rounds<'a> {
        Rounds {
            devices,
            every,
            gpm: Gpm::new(devices.nvml()),
            work: Work::default(),
            owners: Owners::new("/proc"),
            kept: HashMap::new(),
        }
    }

    /// One device that does not answer takes nothing from the others.
    pub(super) fn ask(&mut self) -> Told {
        let mut told = Told::default();
        self.owners.look_again();
        let count = self.devices.nvml().device_count().unwrap_or_else(|error| {
            told.trouble = Trouble::of(&error);
            told.notes.push(format!("NVML: the devices cannot be counted: {error}"));
            0
        });
        for index in 0..count {
            let noted = told.notes.len();
            self.ask_one(index, &mut told);
            let errors = (told.notes.len() - noted) as u64;
            if errors > 0 {
                told.errors.insert(index, errors);
            }
        }
        told
    }

    fn ask_one(&mut self, index: u32, told: &mut Told) {
        let mut notes = Vec::new();
        let described = self.devices.nvml().device_by_index(index);
        let described = described.and_then(|gpu| Ok((describe(&gpu, index, &mut notes)?, gpu)));
        let mut answers = Answers {
            index,
            notes: &mut told.notes,
            trouble: &mut told.trouble,
        };
        answers.notes.append(&mut notes);
        match described {
            Ok((device, gpu)) => {
                let kept = self.kept.remove(&device.uuid);
                let mut kept = kept.unwrap_or_else(|| Kept::for_rounds(self.every));
                if kept.totals.now(Instant::now()) {
                    read::totals(&gpu, &mut kept, &mut answers);
                    kept.work = self.work.read(&gpu, &device.uuid, &mut self.owners, &mut answers);
                }
                told.gpus.push(self.read(&gpu, &device, &mut kept, &mut answers));
                told.work.extend(kept.work.iter().cloned());
                self.kept.insert(device.uuid.clone(), kept);
                let noted = answers.notes.len();
                let held = processes_of(&gpu, index, &mut self.owners, answers.notes);
                let held = answers.told("processes", held);
                let (held, has_lists) = held.unwrap_or_default();
                if has_lists && answers.notes.len() == noted {
                    told.listed.insert(device.uuid.clone());
                }
                told.processes.extend(held);
                told.devices.push(device);
            }
            Err(error) => answers.failed("does not answer", &error),
        }
    }

    fn read(&mut self, gpu: &Handle<'a>, device: &Device, kept: &mut Kept, answers: &mut Answers) -> Gpu {
        let instances = device.mig.as_ref();
        let instances: Option<BTreeSet<u32>> =
            instances.map(|parts| parts.iter().map(|part| part.gpu_instance).collect());
        let gpm = self.gpm.read(gpu, &device.uuid, instances.as_ref(), answers);
        let whole = gpm.iter().find(|reading| reading.gpu_instance.is_none());
        let speeds = whole.map(|all| (all.pcie_sent_bytes_per_second, all.pcie_received_bytes_per_second));
        let mut told = read::read(gpu, device, !matches!(speeds, Some((Some(_), Some(_)))), kept, answers);
        if let Some((Some(sent), Some(received))) = speeds {
            told.pcie.sent_bytes_per_second = Some(sent);
            told.pcie.received_bytes_per_second = Some(received);
        }
        told.gpm = gpm;
        told
    }

    /// Watches for the events of the GPUs that there are.
    pub(super) fn watch(&self) -> (Option<xid::Watch<'a>>, Vec<String>) {
        let nvml = self.devices.nvml();
        let named = |index| -> Result<_, NvmlError> {
            let gpu = nvml.device_by_index(index)?;
            let (uuid, pci_bus_id) = (gpu.uuid()?, gpu.pci_info()?.bus_id);
            Ok((
                gpu,
                Identity {
                    index,
                    uuid,
                    pci_bus_id,
                },
            ))
        };
        let gpus: Vec<_> = (0..nvml.device_count().unwrap_or(0))
            .filter_map(|index| named(index).ok())
            .collect();
        let mut notes = Vec::new();
        (xid::Watch::new(nvml, &gpus, &mut notes), notes)
    }
}
