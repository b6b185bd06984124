//! All entries of a map, many with each system call.
//!
//! libbpf-rs has such an iterator, too; it takes a batch that is not full for the last one, which it need not be, and
//! ends silently on errors.

use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, libbpf_sys};
use std::ffi::c_void;
use std::os::fd::AsRawFd;

/// Entries of a batch. No chain of a table is nearly as long.
const BATCH: usize = 512;
/// What values of one map may take at a time: those of all processors of a large machine are many.
const MOST_VALUE_BYTES: usize = 1 << 20;

/// Calls `each` with every key and value. What comes or goes meanwhile is seen or is not.
///
/// # Errors
/// The kernel refuses.
pub(super) fn for_each(map: &dyn MapCore, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
    for_each_of(map, map.value_size() as usize, each)
}

/// The same of a map that has a value for each processor: the value is all of them, each of which begins at eight bytes.
///
/// # Errors
/// The kernel refuses.
pub(super) fn for_each_per_cpu(
    map: &dyn MapCore,
    each: &mut dyn FnMut(&[u8], std::slice::ChunksExact<u8>),
) -> Result<()> {
    let cpus = libbpf_rs::num_possible_cpus().context("failed to count processors")?;
    let own_bytes = (map.value_size() as usize).next_multiple_of(8);
    for_each_of(map, own_bytes * cpus, &mut |key, values| {
        each(key, values.chunks_exact(own_bytes))
    })
}

fn for_each_of(map: &dyn MapCore, value_bytes: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
    let key_bytes = map.key_size() as usize;
    let mut walk = Walk::new(key_bytes, value_bytes);
    loop {
        let (count, more) = walk.next(map)?;
        let keys = walk.keys.chunks_exact(key_bytes);
        for (key, value) in keys.zip(walk.values.chunks_exact(value_bytes)).take(count) {
            each(key, value);
        }
        if !more {
            return Ok(());
        }
    }
}

struct Walk {
    /// Entries of a batch.
    entries: usize,
    keys: Vec<u8>,
    values: Vec<u8>,
    /// Where the next batch begins; the kernel's own business.
    place: [u8; 64],
    begun: bool,
}

impl Walk {
    fn new(key_bytes: usize, value_bytes: usize) -> Walk {
        let entries = (MOST_VALUE_BYTES / value_bytes.max(1)).clamp(1, BATCH);
        Walk {
            entries,
            keys: vec![0; entries * key_bytes],
            values: vec![0; entries * value_bytes],
            place: [0; 64],
            begun: false,
        }
    }

    /// Reads a batch: how many there are, and whether others may come.
    fn next(&mut self, map: &dyn MapCore) -> Result<(usize, bool)> {
        let mut count = self.entries as u32;
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as _,
            ..Default::default()
        };
        let place: *mut c_void = self.place.as_mut_ptr().cast();
        // SAFETY: both buffers hold so many entries of the map's sizes, and a place is no longer than a key or four bytes
        let code = unsafe {
            let from = if self.begun { place } else { std::ptr::null_mut() };
            let (keys, values) = (self.keys.as_mut_ptr().cast(), self.values.as_mut_ptr().cast());
            let fd = map.as_fd().as_raw_fd();
            libbpf_sys::bpf_map_lookup_batch(fd, from, place, keys, values, &raw mut count, &raw const options)
        };
        self.begun |= code == 0;
        match -code {
            0 => Ok((count as usize, true)),
            libc::ENOENT => Ok((count as usize, false)),
            libc::EINTR => Ok((0, true)),
            error => {
                let error = std::io::Error::from_raw_os_error(error);
                bail!("failed to read the table {}: {error}", map.name().to_string_lossy())
            }
        }
    }
}
