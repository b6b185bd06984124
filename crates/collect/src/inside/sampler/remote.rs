//! The memory of another process as it is during one look: no page is read twice.
//!
//! Owns that the kernel is asked seldom. It is read in the thread that samples, which may be held up by whoever controls
//! what lies there: nobody else waits for it.

use crate::stack::memory::Memory;
use std::cell::RefCell;
use std::collections::HashMap;

const PAGE: usize = 4096;

/// The memory of another process as it is during one look.
pub(super) struct Remote {
    pid: u32,
    pages: RefCell<HashMap<u64, Option<Box<[u8; PAGE]>>>>,
}

impl Remote {
    pub(super) fn of(pid: u32) -> Remote {
        Remote {
            pid,
            pages: RefCell::default(),
        }
    }

    fn fetch(&self, page: u64) -> Option<Box<[u8; PAGE]>> {
        let mut bytes = Box::new([0; PAGE]);
        let ours = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: PAGE,
        };
        let theirs = libc::iovec {
            iov_base: page.checked_mul(PAGE as u64)? as *mut _,
            iov_len: PAGE,
        };
        // SAFETY: the kernel writes into `bytes`, which is as long; the other address is the other process's
        let read =
            unsafe { libc::process_vm_readv(self.pid as libc::pid_t, &raw const ours, 1, &raw const theirs, 1, 0) };
        (read == PAGE as isize).then_some(bytes)
    }
}

impl Memory for Remote {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let mut pages = self.pages.borrow_mut();
        let (mut at, mut rest) = (address, into);
        while !rest.is_empty() {
            let (page, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let have = pages.entry(page).or_insert_with(|| self.fetch(page)).as_deref()?;
            let count = rest.len().min(PAGE - within);
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&have[within..within + count]);
            at = at.checked_add(count as u64)?;
            rest = later;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_several_pages_is_read_as_one() {
        let bytes: Vec<u8> = (0..3 * PAGE).map(|index| (index % 251) as u8).collect();
        let own = Remote::of(std::process::id());
        let mut read = vec![0; 2 * PAGE];
        own.read(bytes.as_ptr() as u64 + 100, &mut read).expect("own memory");
        assert_eq!(read, bytes[100..100 + 2 * PAGE]);
    }

    #[test]
    fn what_is_not_there_cannot_be_read() {
        assert_eq!(Remote::of(std::process::id()).word(8), None);
        assert_eq!(Remote::of(std::process::id()).read(u64::MAX - 4, &mut [0; 16]), None);
        assert_eq!(Remote::of(0x7fff_fff0).word(1 << 20), None);
    }
}
