//! Writes recordings in a thread of its own: a disk may take its time, or hang.

use super::folder::Folder;
use super::{Cause, KeptFile};
use crate::confine::{self, Capability, Keep};
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// For a folder that was made for who called sudo.
const WRITING: &[Capability] = &[Capability::DacOverride, Capability::Chown];

/// A recording that is being written at the end is waited for so long.
const LAST: Duration = Duration::from_secs(2);

/// A recording to be written.
pub(crate) struct Job {
    pub cause: Cause,
    pub pid: Option<u32>,
    pub bytes: Vec<u8>,
}

/// How a recording fared.
struct Done {
    written: Result<KeptFile>,
    files: Vec<KeptFile>,
}

/// Writes recordings, one at a time.
pub(crate) struct Writer {
    jobs: SyncSender<Job>,
    done: Receiver<Done>,
    busy: bool,
    files: Vec<KeptFile>,
}

impl Writer {
    /// Of the folder at `path`, for files of `budget` bytes together.
    ///
    /// # Errors
    /// The folder cannot be made or read, or no thread is left.
    pub(crate) fn start(path: &Path, budget: u64) -> Result<Writer> {
        let mut folder = Folder::open(path, budget)?;
        let files = folder.files().to_vec();
        let (jobs, waiting) = sync_channel::<Job>(1);
        let (tell, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("keep".to_owned());
        thread
            .spawn(move || {
                confine::this_thread(Keep::Capabilities(WRITING));
                for job in waiting {
                    let written = folder.write(job.cause, job.pid, &job.bytes);
                    let files = folder.files().to_vec();
                    if tell.send(Done { written, files }).is_err() {
                        break;
                    }
                }
            })
            .context("failed to start the thread that writes recordings")?;
        Ok(Writer {
            jobs,
            done,
            busy: false,
            files,
        })
    }

    /// Whether the last one is still being written.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Hands over a recording; only to be called where none is being written.
    pub(crate) fn write(&mut self, job: Job) {
        self.busy = self.jobs.try_send(job).is_ok();
    }

    /// How the last one fared, once.
    pub(crate) fn outcome(&mut self) -> Option<Result<KeptFile>> {
        let done = self.done.try_recv().ok()?;
        self.busy = false;
        self.files = done.files;
        Some(done.written)
    }

    /// Recordings that lie in the folder.
    pub(crate) fn files(&self) -> &[KeptFile] {
        &self.files
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.busy {
            // without an answer by then, what is there of the file is readable as far as it goes
            let _ = self.done.recv_timeout(LAST);
        }
    }
}
