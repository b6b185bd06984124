//! Addresses for device memory: ranges nobody else in the process can be given.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::OUT_OF_MEMORY;

const SPAN: u64 = 4 << 40;
/// Used when the process may not reserve address space: below where Linux places mappings.
const FALLBACK_BASE: u64 = 0x1000_0000_0000;

/// Free ranges, by start; neighbours are always merged.
pub struct Heap {
    free: BTreeMap<u64, u64>,
}

pub fn heap() -> MutexGuard<'static, Heap> {
    static HEAP: OnceLock<Mutex<Heap>> = OnceLock::new();
    let heap = HEAP.get_or_init(|| {
        Mutex::new(Heap {
            free: BTreeMap::from([(base(), SPAN)]),
        })
    });
    heap.lock().unwrap_or_else(PoisonError::into_inner)
}

fn base() -> u64 {
    // SAFETY: a new mapping wherever the kernel likes; it is inaccessible and costs no memory,
    // and makes a host access to device memory fault as it does on a real machine.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
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
    /// The first free range that fits, so that freed addresses come back as they do in CUDA.
    pub fn take(&mut self, size: u64, align: u64) -> Result<u64, u32> {
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

    pub fn give(&mut self, mut start: u64, mut size: u64) {
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

    #[test]
    fn freed_ranges_merge_and_return() {
        let mut heap = Heap {
            free: BTreeMap::from([(4096, 1 << 20)]),
        };
        let a = heap.take(512, 512).unwrap();
        let b = heap.take(512, 512).unwrap();
        heap.give(a, 512);
        heap.give(b, 512);
        assert_eq!(heap.free, BTreeMap::from([(4096, 1 << 20)]));
        assert_eq!(heap.take(512, 512).unwrap(), a);
    }
}
