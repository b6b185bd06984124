//! A file that others control, as we have it: a descriptor that can do nothing, and a process that reads for us.

use super::handle;
use super::order::{Answer, Facts, Mapped, Order, Place};
use super::reader;
use super::stuck::Subject;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A regular file. What is asked of it is answered within a limited time, or not at all.
#[derive(Debug, Clone)]
pub struct ForeignFile(Arc<Found>);

#[derive(Debug)]
struct Found {
    handle: OwnedFd,
    number: u64,
    facts: Facts,
    subject: Subject,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl ForeignFile {
    /// The regular file at `path`; links are followed.
    ///
    /// # Errors
    /// There is none, or its file system does not answer.
    pub fn find(path: &Path) -> io::Result<ForeignFile> {
        let place = Place::Path(path.as_os_str().as_bytes().to_vec());
        Self::found(Subject::Path(path.to_owned()), &Order::Find(place))
    }

    /// What a process maps, itself.
    ///
    /// # Errors
    /// The process is gone, or may not be looked at, or the file system does not answer.
    pub(crate) fn mapped(mapped: Mapped) -> io::Result<ForeignFile> {
        let subject = Subject::Device(mapped.device.clone());
        Self::found(subject, &Order::Find(Place::Mapped(mapped)))
    }

    fn found(subject: Subject, order: &Order) -> io::Result<ForeignFile> {
        match reader::ask(&subject, order, None, None)? {
            (Answer::Found(facts), Some(handle)) => Ok(ForeignFile(Arc::new(Found {
                handle,
                number: NEXT.fetch_add(1, Ordering::Relaxed),
                facts,
                subject,
            }))),
            // no descriptor was left to take it with
            (Answer::Found(_), None) => Err(io::Error::from_raw_os_error(libc::EMFILE)),
            _ => Err(io::Error::other("an answer to another question")),
        }
    }

    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// A path that names the file as long as this lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        handle::descriptor_path(self.0.handle.as_fd())
    }

    /// In which page of the machine's memory it begins; 0: the kernel does not tell.
    ///
    /// # Errors
    /// It cannot be mapped, or its file system does not answer.
    pub(crate) fn first_frame(&self) -> io::Result<u64> {
        match self.ask(&Order::Frame { number: self.0.number })? {
            Answer::Frame(frame) => Ok(frame),
            _ => Err(io::Error::other("an answer to another question")),
        }
    }

    /// Has the kernel read the pages of these bytes, so that nobody else waits for them.
    ///
    /// # Errors
    /// It cannot be mapped, or its file system does not answer.
    pub(crate) fn touch(&self, offsets: impl Iterator<Item = u64>) -> io::Result<()> {
        const AT_ONCE: usize = 2048;
        let offsets: Vec<u64> = offsets.collect();
        for offsets in offsets.chunks(AT_ONCE) {
            self.ask(&Order::Touch {
                number: self.0.number,
                offsets: offsets.to_vec(),
            })?;
        }
        Ok(())
    }

    /// Fills `into` with what lies at `offset`.
    ///
    /// # Errors
    /// Not all of it can be read, or its file system does not answer.
    pub fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let found = &self.0;
        for (at, piece) in (0..).zip(into.chunks_mut(super::worker::SHARED_BYTES)) {
            let order = Order::Read {
                number: found.number,
                offset: offset + at * super::worker::SHARED_BYTES as u64,
                size: piece.len(),
            };
            reader::ask(&found.subject, &order, Some(found.handle.as_fd()), Some(piece))?;
        }
        Ok(())
    }

    /// Opens it in this process. `None`: its file system may never answer, be it to be closed.
    ///
    /// # Errors
    /// We may not read it.
    pub(crate) fn open_here(&self) -> io::Result<Option<File>> {
        if !self.0.facts.is_local {
            return Ok(None);
        }
        handle::open(self.0.handle.as_fd()).map(Some)
    }

    fn ask(&self, order: &Order) -> io::Result<Answer> {
        let found = &self.0;
        Ok(reader::ask(&found.subject, order, Some(found.handle.as_fd()), None)?.0)
    }
}

impl AsFd for ForeignFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.handle.as_fd()
    }
}
