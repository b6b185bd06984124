//! Whether two files are one to the kernel, though their devices and inodes differ.
//!
//! A file seen through an overlay (containers of one image) has numbers of its own there, but its pages are those
//! of the file below, and a probe on either fires for both: probing both would count every call twice.

use crate::foreign::ForeignFile;
use std::io;

/// Page frames may move between two looks.
const LOOKS: usize = 3;

/// Whether both have the same pages. Where the kernel does not tell (no CAP_SYS_ADMIN), equal size, times and
/// inode number on an overlay count as the same.
pub(crate) fn is_same(a: &ForeignFile, b: &ForeignFile) -> bool {
    if !may_be_same(a, b) {
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
fn may_be_same(a: &ForeignFile, b: &ForeignFile) -> bool {
    let facts = |file: &ForeignFile| {
        let facts = file.facts();
        (facts.bytes, facts.modified, facts.inode as u32)
    };
    facts(a) == facts(b) && a.facts().bytes > 0
}

/// The physical page frames that hold the first page of each file; 0 where the kernel hides it.
fn first_frames(a: &ForeignFile, b: &ForeignFile) -> io::Result<(u64, u64)> {
    Ok((a.first_frame()?, b.first_frame()?))
}

fn on_overlay(file: &ForeignFile) -> bool {
    file.facts().file_system == libc::OVERLAYFS_SUPER_MAGIC
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
        let open = |path: &std::path::Path| ForeignFile::find(path).unwrap();
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
