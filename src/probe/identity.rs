//! Whether two files are one to the kernel, though their devices and inodes differ.
//!
//! A file seen through an overlay (containers of one image) has numbers of its own there, but its pages are those
//! of the file below, and a probe on either fires for both: probing both would count every call twice.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Page frames may move between two looks.
const LOOKS: usize = 3;
const FRAME_BITS: u64 = (1 << 55) - 1;

/// Whether both have the same pages. Where the kernel does not tell (no CAP_SYS_ADMIN), equal size, times and
/// inode number on an overlay count as the same.
pub fn is_same(a: &File, b: &File) -> bool {
    if !may_be_same(a, b).unwrap_or(false) {
        return false;
    }
    for _ in 0..LOOKS {
        match first_frames(a, b) {
            Ok((0, _) | (_, 0)) | Err(_) => return on_overlay(a) || on_overlay(b),
            Ok((a, b)) if a == b => return true,
            Ok(_) => {}
        }
    }
    false
}

/// What is equal whichever way a file is reached. Overlays may use the upper bits of the inode number.
fn may_be_same(a: &File, b: &File) -> io::Result<bool> {
    let facts = |file: &File| {
        let data = file.metadata()?;
        io::Result::Ok((data.len(), data.mtime(), data.mtime_nsec(), data.ino() as u32))
    };
    let (a, b) = (facts(a)?, facts(b)?);
    Ok(a == b && a.0 > 0)
}

/// The physical page frames that hold the first page of each file; 0 where the kernel hides it.
fn first_frames(a: &File, b: &File) -> io::Result<(u64, u64)> {
    let (a, b) = (FirstPage::map(a)?, FirstPage::map(b)?);
    let pagemap = File::open("/proc/self/pagemap")?;
    Ok((a.frame(&pagemap)?, b.frame(&pagemap)?))
}

struct FirstPage {
    address: *mut libc::c_void,
    size: usize,
}

impl FirstPage {
    fn map(file: &File) -> io::Result<FirstPage> {
        // SAFETY: makes a new mapping that nothing else uses; it is only looked up, never read
        let (address, size) = unsafe {
            let size = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            let address = libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, flags, file.as_raw_fd(), 0);
            (address, size)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(FirstPage { address, size })
    }

    fn frame(&self, pagemap: &File) -> io::Result<u64> {
        let mut entry = [0; 8];
        pagemap.read_exact_at(&mut entry, (self.address as usize / self.size * 8) as u64)?;
        Ok(u64::from_ne_bytes(entry) & FRAME_BITS)
    }
}

impl Drop for FirstPage {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` mapped
        unsafe { libc::munmap(self.address, self.size) };
    }
}

fn on_overlay(file: &File) -> bool {
    // SAFETY: the call only fills the structure that it is given
    unsafe {
        let mut stat = std::mem::zeroed::<libc::statfs>();
        libc::fstatfs(file.as_raw_fd(), &raw mut stat) == 0 && stat.f_type == libc::OVERLAYFS_SUPER_MAGIC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_as_itself_and_as_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&path, [7; 9000]).unwrap();
        std::fs::copy(&path, &copy).unwrap();
        let open = |path| File::open(path).unwrap();
        let frames = first_frames(&open(&path), &open(&path)).unwrap();
        assert_eq!(frames.0, frames.1);
        assert!(!is_same(&open(&path), &open(&copy)), "another inode");
        if frames.0 != 0 {
            assert!(is_same(&open(&path), &open(&path)));
            let (one, other) = first_frames(&open(&path), &open(&copy)).unwrap();
            assert_ne!(one, other, "equal bytes are not the same page");
        }
    }
}
