//! The process that touches files and memory of others: it may be stuck for ever, or end, and nothing else does.

use super::handle::Handle;
use super::order::{Answer, Facts, Order};
use super::worker::{Channel, Role, SHARED_BYTES};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// A file that nobody asks about for so long is closed, whatever else is asked: a file system with an open file cannot be
/// unmounted.
const IDLE: Duration = Duration::from_secs(1);
/// Open files that it keeps.
const MOST_OPEN: usize = 64;
/// Names of a folder that are looked at.
const MOST_NAMES: usize = 1 << 16;
const FRAME_BITS: u64 = (1 << 55) - 1;

/// The process that touches files and memory of others.
pub const HANDS: Role = Role {
    name: "gpuscope-reader",
    speaks: false,
    serve,
};

fn serve(channel: Channel) {
    let mut hands = Hands::default();
    loop {
        let patience = (!hands.open.is_empty()).then_some(IDLE);
        let (order, descriptor) = match channel.receive::<Order>(patience) {
            Ok(message) => message,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                hands.close_unused(Instant::now());
                continue;
            }
            Err(_) => return,
        };
        hands.close_unused(Instant::now());
        let mut found = None;
        let answer = match order {
            Order::Find(place) => place.find().and_then(|handle| {
                let facts = Facts::of(&handle, &place)?;
                found = Some(handle);
                Ok(Answer::Found(facts))
            }),
            order => hands.obey(order, descriptor, &channel),
        };
        let answer = answer.unwrap_or_else(|error| Answer::from(&error));
        if channel.send(&answer, found.as_ref().map(AsFd::as_fd)).is_err() {
            return;
        }
    }
}

#[derive(Default)]
struct Hands {
    /// With when each was asked about last.
    open: HashMap<u64, (File, Instant)>,
    buffer: Vec<u8>,
}

impl Hands {
    fn obey(&mut self, order: Order, descriptor: Option<OwnedFd>, channel: &Channel) -> io::Result<Answer> {
        match order {
            Order::Read { number, offset, size } => {
                let mut buffer = std::mem::take(&mut self.buffer);
                buffer.resize(size.min(SHARED_BYTES), 0);
                self.opened(number, descriptor)?.read_exact_at(&mut buffer, offset)?;
                self.buffer = buffer;
                Ok(Answer::Bytes(channel.copy_in(&self.buffer)))
            }
            Order::Frame { number } => first_frame(self.opened(number, descriptor)?).map(Answer::Frame),
            Order::Touch { number, offsets } => {
                touch(self.opened(number, descriptor)?, &offsets).map(|()| Answer::Done)
            }
            Order::Memory { pid, address, size } => {
                self.buffer.resize(size.min(SHARED_BYTES), 0);
                read_memory(pid, address, &mut self.buffer)?;
                Ok(Answer::Bytes(channel.copy_in(&self.buffer)))
            }
            Order::Text { path, limit } => {
                self.buffer.clear();
                let limit = limit.min(SHARED_BYTES) as u64;
                File::open(path)?.take(limit).read_to_end(&mut self.buffer)?;
                Ok(Answer::Bytes(channel.copy_in(&self.buffer)))
            }
            Order::Names { path } => {
                self.buffer.clear();
                for entry in std::fs::read_dir(path)?.take(MOST_NAMES).flatten() {
                    self.buffer.extend_from_slice(entry.file_name().as_bytes());
                    self.buffer.push(0);
                }
                Ok(Answer::Bytes(channel.copy_in(&self.buffer)))
            }
            Order::Find(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn opened(&mut self, number: u64, descriptor: Option<OwnedFd>) -> io::Result<&File> {
        if self.open.len() >= MOST_OPEN && !self.open.contains_key(&number) {
            self.open.clear();
        }
        let now = Instant::now();
        let file = match self.open.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let found = descriptor.ok_or(io::ErrorKind::InvalidInput)?;
                unknown.insert((Handle::from(found).open()?, now))
            }
        };
        file.1 = now;
        Ok(&file.0)
    }

    fn close_unused(&mut self, now: Instant) {
        self.open
            .retain(|_, (_, asked)| now.saturating_duration_since(*asked) < IDLE);
    }
}

fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    let unreadable = || io::Error::from_raw_os_error(libc::EFAULT);
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(usize::try_from(address).map_err(|_| unreadable())?),
        iov_len: into.len(),
    };
    let pid = i32::try_from(pid).map_err(|_| unreadable())?;
    // SAFETY: the kernel writes to `into` alone, and checks the other process's addresses itself
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(read) {
        Ok(read) if read == into.len() => Ok(()),
        Ok(_) => Err(unreadable()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// A page of a file in our address space.
struct Page {
    address: *mut libc::c_void,
    size: usize,
}

impl Page {
    /// That of `offset`. Only one that lies inside of the file may be read.
    fn map(file: &File, offset: u64, flags: i32) -> io::Result<Page> {
        // SAFETY: makes a new mapping that nothing else uses
        let (address, size) = unsafe {
            let size = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let start = offset / size as u64 * size as u64;
            let file = file.as_raw_fd();
            let address = libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ,
                flags,
                file,
                start as libc::off_t,
            );
            (address, size)
        };
        match address {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            _ => Ok(Page { address, size }),
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` mapped
        unsafe { libc::munmap(self.address, self.size) };
    }
}

/// The number of the physical page that holds the first page of a file; 0 where the kernel hides it.
pub(super) fn first_frame(file: &File) -> io::Result<u64> {
    let page = Page::map(file, 0, libc::MAP_SHARED | libc::MAP_POPULATE)?;
    let pagemap = File::open("/proc/self/pagemap")?;
    let mut entry = [0; 8];
    pagemap.read_exact_at(&mut entry, (page.address as usize / page.size * 8) as u64)?;
    Ok(u64::from_ne_bytes(entry) & FRAME_BITS)
}

/// Has the kernel read the pages of these bytes: who puts a probe there need not wait for them.
fn touch(file: &File, offsets: &[u64]) -> io::Result<()> {
    let mut pages: Vec<u64> = offsets.iter().map(|offset| offset / 4096 * 4096).collect();
    pages.sort_unstable();
    pages.dedup();
    for offset in pages {
        // unlike a read it goes through the page cache on every file system
        drop(Page::map(file, offset, libc::MAP_PRIVATE | libc::MAP_POPULATE)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_closed_while_others_are_asked_about() {
        let mut hands = Hands::default();
        let descriptor = || Some(OwnedFd::from(tempfile::tempfile().unwrap()));
        hands.opened(1, descriptor()).unwrap();
        hands.opened(2, descriptor()).unwrap();
        let asked = hands.open[&1].1;
        hands.open.get_mut(&2).unwrap().1 = asked + IDLE / 2;
        hands.close_unused(asked + IDLE);
        assert!(!hands.open.contains_key(&1) && hands.open.contains_key(&2));
    }
}
