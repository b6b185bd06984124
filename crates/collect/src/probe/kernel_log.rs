//! Follows the kernel's log, `/dev/kmsg`, for Xids.
//!
//! Owns the descriptor, what of the log was missed, and who may be believed: records of the kernel alone. The log is
//! never waited for. `GPUSCOPE_KMSG` names another file to read, for tests.

use crate::driver::kmsg::Record;
use crate::driver::xid::Xid;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const LOG: &str = "/dev/kmsg";
const OVERRIDE: &str = "GPUSCOPE_KMSG";
/// A record of `/dev/kmsg` is at most so long, and one read gives one.
const RECORD_BYTES: usize = 8192;
/// Records taken at once: a flood must not keep others waiting.
const MOST_AT_ONCE: usize = 2000;
/// A log with much in it wakes us no more often.
const REST: Duration = Duration::from_millis(50);

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The oldest record that is still there.
    Oldest,
    /// What comes from now on.
    Now,
}

/// Why the log cannot be read, in words, with the cure.
#[derive(Debug)]
pub struct Unreadable {
    path: PathBuf,
    error: std::io::Error,
}

impl Unreadable {
    /// What was refused.
    #[must_use]
    pub fn why(&self) -> String {
        format!("failed to read {}: {}", self.path.display(), self.error)
    }

    /// What mends it.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self.error.kind() {
            ErrorKind::PermissionDenied => "sudo, or CAP_SYSLOG, or sysctl kernel.dmesg_restrict=0",
            ErrorKind::NotFound => "give the container the host's /dev/kmsg",
            _ => "sudo dmesg says whether the log can be read at all",
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}; hint: {}", self.why(), self.cure())
    }
}

/// An Xid and when the log says it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    pub xid: Xid,
    /// Microseconds by the log's clock; it runs as CLOCK_MONOTONIC does but is not set right by it.
    pub at_us: u64,
}

/// What of the log does not count, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Records that were overwritten before they were read; at least so many.
    pub overwritten: u64,
    /// Records that look like Xids and are a program's.
    pub foreign: u64,
}

impl Missed {
    /// One line for each.
    pub fn notes(self) -> impl Iterator<Item = String> {
        let overwritten = "Xids may be missing: records of the kernel's log were overwritten before they were read";
        let foreign = "the kernel's log has lines that look like Xids and are not the driver's: they do not count";
        let counts = [(self.overwritten, overwritten), (self.foreign, foreign)];
        let some = counts.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, words)| format!("{words} ({count})"))
    }
}

/// The log, open.
pub struct KernelLog {
    file: File,
    /// The beginning of a line whose end has not come; a real log has none.
    begun: Vec<u8>,
    next: Option<u64>,
    /// Number of the oldest record that was read.
    oldest: Option<u64>,
    missed: Missed,
    overrun: bool,
    read_at: Instant,
}

impl KernelLog {
    /// Opens the log.
    ///
    /// # Errors
    /// There is none here, or it may not be read.
    pub fn open(from: From) -> Result<KernelLog, Unreadable> {
        let path = PathBuf::from(named_log().unwrap_or_else(|| LOG.into()));
        let open = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let file = open.map_err(|error| Unreadable { path, error })?;
        if from == From::Now {
            // SAFETY: moves in a file of ours; what cannot be moved in has nothing old
            unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) };
        }
        Ok(KernelLog {
            file,
            begun: Vec::new(),
            next: None,
            oldest: None,
            missed: Missed::default(),
            overrun: false,
            read_at: Instant::now(),
        })
    }

    /// Becomes readable when there is more; -1: it was read a moment ago.
    #[must_use]
    pub fn bell(&self) -> RawFd {
        if self.read_at.elapsed() < REST {
            return -1;
        }
        self.file.as_raw_fd()
    }

    /// The Xids that have come; those of a flood over several calls.
    pub fn read(&mut self) -> Vec<Logged> {
        self.read_at = Instant::now();
        let mut found = Vec::new();
        let mut buffer = [0; RECORD_BYTES];
        for _ in 0..MOST_AT_ONCE {
            match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.take_in(&buffer[..length], &mut found),
                Err(error) => match error.raw_os_error() {
                    // the next read goes on with the oldest that is left
                    Some(libc::EPIPE) => self.overrun = true,
                    // longer than any record is: the next read goes on behind it
                    Some(libc::EINVAL | libc::EINTR) => {}
                    _ => break,
                },
            }
        }
        found
    }

    /// All Xids that are there now.
    pub fn read_all(&mut self) -> Vec<Logged> {
        let mut found = Vec::new();
        loop {
            let before = self.next;
            found.extend(self.read());
            if self.next == before {
                return found;
            }
        }
    }

    /// What was missed so far.
    #[must_use]
    pub fn missed(&self) -> Missed {
        self.missed
    }

    /// Whether what was read begins with the boot; `None`: nothing was read.
    #[must_use]
    pub(crate) fn reaches_to_boot(&self) -> Option<bool> {
        self.oldest.map(|oldest| oldest == 0)
    }

    fn take_in(&mut self, bytes: &[u8], found: &mut Vec<Logged>) {
        self.begun.extend_from_slice(bytes);
        let end = self
            .begun
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.begun.drain(..end).collect();
        for line in lines.split(|byte| *byte == b'\n') {
            found.extend(Record::parse(line).and_then(|record| self.consider(&record)));
        }
        if self.begun.len() > RECORD_BYTES {
            self.begun.clear();
        }
    }

    fn consider(&mut self, record: &Record) -> Option<Logged> {
        let skipped = self.next.map_or(0, |next| record.sequence.saturating_sub(next));
        let overrun = u64::from(std::mem::take(&mut self.overrun));
        self.missed.overwritten += skipped.max(overrun);
        self.next = Some(record.sequence.saturating_add(1));
        self.oldest.get_or_insert(record.sequence);
        let own = Xid::of_record(&record.text).filter(|_| record.is_of_kernel());
        if own.is_none() && Xid::parse(&record.text).is_some() {
            self.missed.foreign += 1;
        }
        let at_us = record.at_us;
        own.map(|xid| Logged { xid, at_us })
    }
}

/// None when this program has more rights than who started it: that one must not choose what is believed.
fn named_log() -> Option<OsString> {
    // SAFETY: reads a value that the kernel put beside this program at its start
    let has_more_rights = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    std::env::var_os(OVERRIDE).filter(|path| !path.is_empty() && !has_more_rights)
}

#[cfg(test)]
#[path = "kernel_log_tests.rs"]
mod tests;
