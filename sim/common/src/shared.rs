//! What the simulated NVML knows about other processes: a small file per process in the folder
//! `GPUSIM_STATE` names, which the simulated driver of that process keeps mapped.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

/// The devices a file has room for.
pub const DEVICES: usize = 16;

/// One device, as one process uses it.
#[repr(C)]
#[derive(Default)]
pub struct Slot {
    pub used: AtomicU64,
    pub busy_ns: AtomicU64,
}

/// The folder of state files, when there is one.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("GPUSIM_STATE")
        .filter(|f| !f.is_empty())
        .map(PathBuf::from)
}

/// This process's devices; in memory of its own when nobody is to watch.
pub fn device_slots(count: usize) -> impl Iterator<Item = &'static Slot> {
    let count = count.min(DEVICES);
    let mapped = folder().and_then(|f| map_own(&f));
    let slots = mapped.unwrap_or_else(|| Box::leak(Box::<[Slot; DEVICES]>::default()));
    slots.iter().take(count)
}

fn map_own(folder: &Path) -> Option<&'static [Slot; DEVICES]> {
    let path = folder.join(std::process::id().to_string());
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .ok()?;
    file.set_len(size_of::<[Slot; DEVICES]>() as u64).ok()?;
    // SAFETY: a new shared mapping of a file of just this size.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<[Slot; DEVICES]>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    // SAFETY: zeros are valid slots, the mapping is never undone, and slots are atomics.
    (address != libc::MAP_FAILED).then(|| unsafe { &*address.cast::<[Slot; DEVICES]>() })
}

/// (process, bytes in use, nanoseconds of work so far) of each live process using `device`.
pub fn processes(device: usize) -> Vec<(u32, u64, u64)> {
    let Some(entries) = folder().and_then(|f| fs::read_dir(f).ok()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        if !Path::new("/proc").join(&name).exists() {
            continue;
        }
        let Ok(bytes) = fs::read(entry.path()) else { continue };
        let word = |i: usize| {
            let chunk = bytes.get(i * 8..i * 8 + 8)?;
            chunk.try_into().ok().map(u64::from_ne_bytes)
        };
        if let (Some(used), Some(busy)) = (word(device * 2), word(device * 2 + 1)) {
            found.push((pid, used, busy));
        }
    }
    found.sort_unstable();
    found
}
