//! The devices of a machine, as NVML describes them. Plain data.

/// What was found, and what could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    /// What was found.
    pub items: Vec<T>,
    /// What is missing, and why; one line each.
    pub notes: Vec<String>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// NVML's number; no CUDA ordinal.
    pub index: u32,
    /// `GPU-` and sixteen bytes in hexadecimal.
    pub uuid: String,
    /// The model.
    pub name: String,
    /// `00000000:17:00.0`: domain, bus, device, function.
    pub pci_bus_id: String,
    /// The number in `/dev/nvidiaNUMBER`; `None`: not known.
    pub minor: Option<u32>,
    /// `None`: not told.
    pub memory: Option<Memory>,
    /// Its MIG devices; `None`: it is not in MIG mode.
    pub mig: Option<Vec<MigDevice>>,
}

impl Device {
    /// The MIG devices, none where it is not in MIG mode.
    pub fn parts(&self) -> &[MigDevice] {
        self.mig.as_deref().unwrap_or_default()
    }
}

/// A part of a GPU that CUDA sees as a device of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigDevice {
    /// `MIG-` and sixteen bytes in hexadecimal; in drivers before 470 `MIG-GPU-…/GI/CI`.
    pub uuid: String,
    /// The model and the profile.
    pub name: String,
    /// The UUID of the GPU that it is a part of.
    pub parent: String,
    /// Which part of the memory and of the engines.
    pub gpu_instance: u32,
    /// Which part of that part's multiprocessors.
    pub compute_instance: u32,
    /// `None`: not told. Compute instances of one GPU instance share their memory.
    pub memory: Option<Memory>,
}

/// The memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All there is.
    pub total_bytes: u64,
    /// In use by processes; drivers before 510 add what is reserved.
    pub used_bytes: u64,
    /// Kept by driver and firmware; `None`: not told apart.
    pub reserved_bytes: Option<u64>,
}
