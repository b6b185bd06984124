//! Whether a process still has the probes in its code that were put into the files that it maps.
//!
//! Owns the comparison of its code with the file. Others write there, too: a debugger that takes a breakpoint away puts
//! back what it knows, a program may change its own code, and what is mapped of an overlay stays the file of a lower layer
//! when that is copied up, while its name leads to the copy. The kernel tells nobody. A byte that is as in the file has no
//! probe, whether the kernel had put a breakpoint or a jump there.

use super::Attacher;
use super::probes::Probes;
use crate::discover::{self, Mapping};
use crate::stack::memory::{Memory, ProcessMemory};
use std::io;
use std::path::PathBuf;

const PAGE: u64 = 4096;
/// What lies between two probes is read with them where that is one question less.
const LONGEST_READ: u64 = 64 * PAGE;

/// A probed file in whose code, as a process has it, probes are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprobed {
    pub path: PathBuf,
    pub missing: usize,
    /// Probes that should be there.
    pub of: usize,
}

impl Attacher {
    /// The probed files that process `pid` maps and in whose code probes are missing.
    ///
    /// # Errors
    /// It is gone or may not be looked at.
    pub fn unprobed_in(&mut self, pid: u32) -> io::Result<Vec<Unprobed>> {
        let mut found = Vec::new();
        for mapping in discover::mappings(pid)? {
            let key = self.named.get(&mapping.name());
            let Some(file) = key.and_then(|key| self.attached.get_mut(key)) else {
                continue;
            };
            let (missing, of) = file.probes.missing_in(pid, &mapping);
            let path = file.path.clone();
            if missing > 0 {
                found.push((mapping, Unprobed { path, missing, of }));
            }
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // of what was unmapped meanwhile something else was read
        let still = discover::mappings(pid)?;
        found.retain(|(mapping, _)| still.contains(mapping));
        Ok(found.into_iter().map(|(_, unprobed)| unprobed).collect())
    }
}

impl Probes {
    /// How many probes are missing in a mapping, and how many should be there; what cannot be read is not missed.
    fn missing_in(&mut self, pid: u32, mapping: &Mapping) -> (usize, usize) {
        let (Some(original), Some((start, end))) = (self.original(), mapping.addresses()) else {
            return (0, 0);
        };
        let address = |offset: u64| offset.checked_sub(mapping.offset)?.checked_add(start);
        let mapped = |offset: &u64| address(*offset).is_some_and(|address| address < end);
        let before: Vec<&(u64, Option<u8>)> = original.iter().filter(|(offset, _)| mapped(offset)).collect();
        let offsets: Vec<u64> = before.iter().map(|(offset, _)| *offset).collect();
        let memory = ProcessMemory(pid);
        let read = |offset: u64, into: &mut [u8]| memory.read(address(offset)?, into);
        let now = bytes_at(&offsets, read);
        let missing = before
            .iter()
            .zip(&now)
            .filter(|((_, before), now)| now.is_some() && *before == **now);
        (missing.count(), offsets.len())
    }

    /// Where the probes are, and what the file has there; `None`: it cannot be read.
    fn original(&mut self) -> Option<&[(u64, Option<u8>)]> {
        if self.original.is_empty() {
            let read = |offset: u64, into: &mut [u8]| self.file.read_exact_at(offset, into).ok();
            let sites = self.hooked.sites();
            let bytes = bytes_at(&sites, read);
            self.original = sites.into_iter().zip(bytes).collect();
        }
        let known = self.original.iter().any(|(_, byte)| byte.is_some());
        known.then_some(self.original.as_slice())
    }
}

/// The bytes at `offsets`, which are sorted, in few reads; `None`: it cannot be read.
fn bytes_at(offsets: &[u64], read: impl Fn(u64, &mut [u8]) -> Option<()>) -> Vec<Option<u8>> {
    let mut bytes = Vec::with_capacity(offsets.len());
    let near = |first: &[u64], next: u64| {
        let (begin, last) = (first[0], first[first.len() - 1]);
        next - last <= PAGE && next - begin < LONGEST_READ
    };
    let mut left = offsets;
    while !left.is_empty() {
        let count = (1..left.len()).find(|count| !near(&left[..*count], left[*count]));
        let (run, others) = left.split_at(count.unwrap_or(left.len()));
        let mut all = vec![0; (run[run.len() - 1] - run[0] + 1) as usize];
        let was_read = read(run[0], &mut all).is_some();
        bytes.extend(
            run.iter()
                .map(|offset| was_read.then(|| all[(offset - run[0]) as usize])),
        );
        left = others;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_near_is_read_at_once_and_what_is_far_is_not_read() {
        let reads = Cell::new(0);
        let read = |_: u64, into: &mut [u8]| {
            reads.set(reads.get() + 1);
            assert!(into.len() as u64 <= LONGEST_READ);
            Some(())
        };
        bytes_at(&[10, 20, 4000, 1 << 30], read);
        assert_eq!(reads.get(), 2);
    }

    proptest! {
        #[test]
        fn each_byte_is_that_at_its_offset(offsets: BTreeSet<u16>, hole: u16) {
            let offsets: Vec<u64> = offsets.into_iter().map(u64::from).collect();
            let byte = |offset: u64| (offset % 251) as u8;
            let read = |offset: u64, into: &mut [u8]| {
                let range = offset..offset + into.len() as u64;
                if range.contains(&u64::from(hole)) {
                    return None;
                }
                into.iter_mut().zip(range).for_each(|(into, at)| *into = byte(at));
                Some(())
            };
            let got = bytes_at(&offsets, read);
            prop_assert_eq!(got.len(), offsets.len());
            for (offset, got) in offsets.iter().zip(got) {
                prop_assert!(got.is_none_or(|got| got == byte(*offset)));
                prop_assert!(got.is_some() || u64::from(hole).abs_diff(*offset) < LONGEST_READ);
            }
        }
    }
}
