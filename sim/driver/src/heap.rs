//! Addresses for device memory: ranges nobody else in the process can be given.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::OUT_OF_MEMORY;

const SPAN: u64 = 4 << 40;
/// Used when the process may not reserve address space: below where Linux places mappings.
const FALLBACK_BASE: u64 = 0x1000_0000_0000;

pub struct Heap {
    /// Free ranges, by start; neighbours are always merged.
    free: BTreeMap<u64, u64>,
    /// Ranges freed lately, by size: the last one is the first to be given out again, as a
    /// caching allocator does, so that threads meet at one address.
    recent: BTreeMap<u64, Vec<u64>>,
}

/// How many ranges of one size are kept apart.
const RECENT: usize = 64;

pub fn heap() -> MutexGuard<'static, Heap> {
    static HEAP: OnceLock<Mutex<Heap>> = OnceLock::new();
    let heap = HEAP.get_or_init(|| {
        Mutex::new(Heap {
            free: BTreeMap::from([(start(), SPAN)]),
            recent: BTreeMap::new(),
        })
    });
    heap.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the addresses of devices begin.
pub fn start() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    *START.get_or_init(base)
}

/// Whether an address is one of a device.
pub fn holds(address: u64) -> bool {
    address.checked_sub(start()).is_some_and(|offset| offset < SPAN)
}

/// As much memory as there are addresses; what is not written to costs nothing.
pub fn contents() -> Option<u64> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, which replaces none.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), SPAN as usize, access, flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address as u64)
}

/// Where `GPUSIM_BASE` says, if that is free: two processes then have the same addresses.
fn base() -> u64 {
    let wanted = std::env::var("GPUSIM_BASE").unwrap_or_default();
    let wanted = u64::from_str_radix(wanted.trim_start_matches("0x"), 16).unwrap_or(0);
    // SAFETY: a new mapping, which replaces none; it is inaccessible and costs no memory, and
    // makes a host access to device memory fault as it does on a real machine.
    let address = unsafe {
        libc::mmap(
            wanted as *mut libc::c_void,
            SPAN as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return FALLBACK_BASE;
    }
    (address as u64).next_multiple_of(2 << 20)
}

impl Heap {
    /// What was freed last, if it has just this size, or else the first free range that fits.
    pub fn take(&mut self, size: u64, align: u64) -> Result<u64, u32> {
        if let Some(recent) = self.recent.get_mut(&size)
            && let Some(start) = recent.pop_if(|start| start.is_multiple_of(align))
        {
            return Ok(start);
        }
        self.take_first(size, align).or_else(|_| {
            for (size, starts) in std::mem::take(&mut self.recent) {
                starts.into_iter().for_each(|start| self.merge(start, size));
            }
            self.take_first(size, align)
        })
    }

    fn take_first(&mut self, size: u64, align: u64) -> Result<u64, u32> {
        let fits = self.free.iter().find_map(|(&start, &length)| {
            let address = start.next_multiple_of(align);
            let end = address.checked_add(size)?;
            (end <= start + length).then_some((start, length, address))
        });
        let (start, length, address) = fits.ok_or(OUT_OF_MEMORY)?;
        self.free.remove(&start);
        if address > start {
            self.free.insert(start, address - start);
        }
        if address + size < start + length {
            self.free.insert(address + size, start + length - address - size);
        }
        Ok(address)
    }

    pub fn give(&mut self, start: u64, size: u64) {
        let recent = self.recent.entry(size).or_default();
        if recent.len() < RECENT {
            recent.push(start);
        } else {
            self.merge(start, size);
        }
    }

    fn merge(&mut self, mut start: u64, mut size: u64) {
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.free.remove(&before);
            start = before;
            size += length;
        }
        if let Some(length) = self.free.remove(&(start + size)) {
            size += length;
        }
        self.free.insert(start, size);
    }
}

#[cfg(test)]
mod tests {
    use super::Heap;
    use std::collections::BTreeMap;

    fn heap() -> Heap {
        Heap {
            free: BTreeMap::from([(4096, 1 << 20)]),
            recent: BTreeMap::new(),
        }
    }

    #[test]
    fn freed_ranges_merge_when_room_is_short() {
        let mut heap = heap();
        let (a, b) = (heap.take(1 << 19, 512).unwrap(), heap.take(1 << 19, 512).unwrap());
        heap.give(a, 1 << 19);
        heap.give(b, 1 << 19);
        assert_eq!(heap.take(1 << 20, 512).unwrap(), a);
        assert_eq!(heap.free, BTreeMap::new());
    }

    #[test]
    fn what_was_freed_last_comes_back_first() {
        let mut heap = heap();
        let (a, b) = (heap.take(512, 512).unwrap(), heap.take(512, 512).unwrap());
        heap.give(b, 512);
        heap.give(a, 512);
        assert_eq!(heap.take(512, 512).unwrap(), a);
        assert_eq!(heap.take(512, 512).unwrap(), b);
    }
}
