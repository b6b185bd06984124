//! All entries of a hash map, many with each system call.
//!
//! libbpf-rs has such an iterator, too; it takes a batch that is not full for the last one, which it need not be, and
//! ends silently on errors.

use crate::wire::Plain;
use anyhow::{Result, bail};
use libbpf_rs::{MapCore, libbpf_sys};
use std::ffi::c_void;
use std::os::fd::AsRawFd;

/// Entries of a batch. No chain of a table is nearly as long.
const BATCH: usize = 512;

/// Calls `each` with every key and value. What comes or goes meanwhile is seen or is not.
///
/// # Errors
/// The kernel refuses, or the map holds something else.
pub(super) fn for_each<K: Plain, V: Plain>(map: &dyn MapCore, mut each: impl FnMut(K, V)) -> Result<()> {
    if map.key_size() as usize != size_of::<K>() || map.value_size() as usize != size_of::<V>() {
        bail!(
            "failed to read the table {}: it holds something else",
            map.name().to_string_lossy()
        );
    }
    let mut walk = Walk::<K, V>::new();
    loop {
        let (count, more) = walk.next(map)?;
        // SAFETY: the kernel has filled so many of both, of which any bytes are one
        let filled = unsafe {
            walk.keys.set_len(count);
            walk.values.set_len(count);
            walk.keys.iter().zip(&walk.values)
        };
        filled.for_each(|(key, value)| each(*key, *value));
        if !more {
            return Ok(());
        }
    }
}

struct Walk<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
    /// Where the next batch begins; the kernel's own business.
    place: [u8; 64],
    begun: bool,
}

impl<K: Plain, V: Plain> Walk<K, V> {
    fn new() -> Walk<K, V> {
        Walk {
            keys: Vec::with_capacity(BATCH),
            values: Vec::with_capacity(BATCH),
            place: [0; 64],
            begun: false,
        }
    }

    /// Reads a batch: how many there are, and whether others may come.
    fn next(&mut self, map: &dyn MapCore) -> Result<(usize, bool)> {
        let mut count = BATCH as u32;
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as _,
            ..Default::default()
        };
        let place: *mut c_void = self.place.as_mut_ptr().cast();
        // SAFETY: both buffers hold `BATCH` entries of the map's sizes, and a place is no longer than a key or four bytes
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
