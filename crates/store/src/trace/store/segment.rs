//! One file of a recording: whole messages alone, brought to the disk each second.

use crate::output::file;
use crate::trace::frame::END;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// A file that is being written. Whatever ends it, what it has is readable.
pub(super) struct Segment {
    pub path: PathBuf,
    pub bytes: u64,
    pub rows: u64,
    file: File,
    /// `None`: nobody is there for that, or it has ended.
    disk: Option<Disk>,
}

/// A file that gets no more.
pub(super) struct Ended {
    pub path: PathBuf,
    pub bytes: u64,
    pub rows: u64,
}

impl Ended {
    /// # Errors
    /// It is there, and stays.
    pub(super) fn delete(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            // somebody has deleted or moved it before us
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            deleted => deleted,
        }
    }
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
            disk: Disk::start(),
        };
        segment.write(header, 0)?;
        Ok(segment)
    }

    /// Adds whole messages with so many rows, all of them or none.
    ///
    /// # Errors
    /// The file is full or broken, and as it was.
    pub(super) fn write(&mut self, messages: &[u8], rows: u64) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), Disk::refused)?;
        if let Err(error) = self.file.write_all(messages) {
            self.undo();
            return Err(error);
        }
        self.bytes += messages.len() as u64;
        self.rows += rows;
        if let (Some(disk), Ok(file)) = (&self.disk, self.file.try_clone()) {
            // it is still at work on what was written before: the next time takes this along
            let _ = disk.files.try_send(file);
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
        synced(&self.file)?;
        self.disk.take().map_or(Ok(()), Disk::end)
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

fn synced(file: &File) -> io::Result<()> {
    match file.sync_data() {
        // a pipe, or a file system that has no disk
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EROFS)) => Ok(()),
        synced => synced,
    }
}

/// Has the disk take what was written, in a thread of its own: that may take long.
struct Disk {
    files: SyncSender<File>,
    thread: JoinHandle<()>,
    /// The number of what it said when it did not: the kernel says so once, to whoever asks first.
    refused: Arc<OnceLock<i32>>,
}

impl Disk {
    /// `None`: there is no room for a thread; the end is when the disk has to have it all.
    fn start() -> Option<Disk> {
        let (files, written) = sync_channel::<File>(1);
        let refused = Arc::new(OnceLock::new());
        let says = Arc::clone(&refused);
        let thread = std::thread::Builder::new().spawn(move || {
            for file in written {
                if let Err(error) = synced(&file) {
                    let _ = says.set(error.raw_os_error().unwrap_or(libc::EIO));
                }
            }
        });
        let thread = thread.ok()?;
        Some(Disk { files, thread, refused })
    }

    /// # Errors
    /// As [`Disk::refused`], also of what it is still at work on.
    fn end(self) -> io::Result<()> {
        let Disk { files, thread, refused } = self;
        drop(files);
        // who panics has said so
        let _ = thread.join();
        said_by(&refused)
    }

    /// # Errors
    /// It did not take what was written earlier.
    fn refused(&self) -> io::Result<()> {
        said_by(&self.refused)
    }
}

fn said_by(refused: &OnceLock<i32>) -> io::Result<()> {
    let error = refused.get().map(|number| io::Error::from_raw_os_error(*number));
    error.map_or(Ok(()), Err)
}
