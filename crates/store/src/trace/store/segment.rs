//! One file of a recording: whole messages alone, brought to the disk each second.

use crate::output::file;
use crate::trace::frame::END;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

/// A file that is being written. Whatever ends it, what it has is readable.
pub(super) struct Segment {
    pub path: PathBuf,
    pub bytes: u64,
    pub rows: u64,
    file: File,
    /// Who has a disk take what was written, in a thread of its own: that may take long.
    disk: Option<SyncSender<File>>,
}

/// A file that gets no more.
pub(super) struct Ended {
    pub path: PathBuf,
    pub bytes: u64,
    pub rows: u64,
}

impl Segment {
    /// Makes a file that is not there yet, and writes what describes the trace.
    ///
    /// # Errors
    /// Something is there, or it cannot be written.
    pub(super) fn create(path: &Path, header: &[u8]) -> io::Result<Segment> {
        let file = file::create_new(path).map_err(|error| io::Error::other(crate::refusal::message(&error)))?;
        Segment::of(file, path, header)
    }

    /// The same of a file that is open.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn of(file: File, path: &Path, header: &[u8]) -> io::Result<Segment> {
        let mut segment = Segment {
            path: path.to_owned(),
            bytes: 0,
            rows: 0,
            file,
            disk: syncing(),
        };
        segment.write(header, 0)?;
        Ok(segment)
    }

    /// Adds whole messages with so many rows, all of them or none.
    ///
    /// # Errors
    /// The file is full or broken, and as it was.
    pub(super) fn write(&mut self, messages: &[u8], rows: u64) -> io::Result<()> {
        if let Err(error) = self.file.write_all(messages) {
            self.undo();
            return Err(error);
        }
        self.bytes += messages.len() as u64;
        self.rows += rows;
        if let Ok(file) = self.file.try_clone() {
            // it is still at work on what was written before: the next time takes this along
            let _ = self.disk.as_ref().map(|disk| disk.try_send(file));
        }
        Ok(())
    }

    /// Leaves the file as it was before a write that failed, and ended, if there is room for that.
    fn undo(&mut self) {
        if self.path == Path::new("-") {
            // what else is in there is not ours
            return;
        }
        let undone = self.file.set_len(self.bytes);
        let _ = undone
            .and_then(|()| self.file.seek(SeekFrom::Start(self.bytes)))
            .and_then(|_| self.file.write_all(&END));
    }

    /// Marks the end.
    ///
    /// # Errors
    /// The file is full or broken.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.write(&END, 0)?;
        match self.file.sync_data() {
            // a pipe, or a file system that has no disk
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EROFS)) => Ok(()),
            synced => synced,
        }
    }

    /// What there is of it.
    pub(super) fn into_ended(self) -> Ended {
        Ended {
            path: self.path,
            bytes: self.bytes,
            rows: self.rows,
        }
    }
}

/// `None`: there is no room for a thread; the end is when the disk has to have it all.
fn syncing() -> Option<SyncSender<File>> {
    let (disk, written) = sync_channel::<File>(1);
    let thread = std::thread::Builder::new().spawn(move || {
        for file in written {
            // what the disk does not take is reported by the next write or by the end
            let _ = file.sync_data();
        }
    });
    thread.ok().map(|_| disk)
}
