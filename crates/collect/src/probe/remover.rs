//! A process that takes probes away after us, where the kernel takes away one at a time.
//!
//! To let go of a perf event's probe, the kernel waits until all processors have left it: a tenth to half a second each, one
//! after the other whoever asks. That process holds the same descriptors, so that ours are closed at once. When it is killed, the kernel
//! does what it would have done.

use crate::text::quantity::plural;
use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// As its name in `ps`, which has room for 15 bytes.
const NAME: &std::ffi::CStr = c"gpuscope-probes";
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Fewer events are gone in a few seconds.
const FEWEST: usize = 16;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A process that takes probes away, and goes on with that when we have ended.
#[derive(Debug)]
pub struct Remover {
    pid: libc::pid_t,
    events: usize,
    /// It waits for the end of what comes through this.
    held_back: Option<PipeWriter>,
}

/// Descriptors that it keeps, each in ascending order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kept {
    /// What ties programs to events.
    links: Vec<RawFd>,
    events: Vec<RawFd>,
}

impl Remover {
    /// Starts it for all events that there are; `None`: they are few. Leases with these descriptors last as long as it does.
    ///
    /// # Errors
    /// What is open cannot be read, or there can be no more processes.
    pub(super) fn start(leases: &[RawFd]) -> io::Result<Option<Remover>> {
        let kept = Kept::find()?;
        if kept.events.len() < FEWEST {
            return Ok(None);
        }
        let (go, held_back) = io::pipe()?;
        // all that needs memory comes before the copy is made
        let own = [go.as_raw_fd()];
        let all = kept.links.iter().chain(&kept.events).chain(leases).chain(&own);
        let gaps = gaps(all.copied());
        // SAFETY: the child makes system calls alone, and never returns
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => take_away(&kept, &gaps, &go),
            pid => Ok(Some(Remover {
                pid,
                events: kept.events.len(),
                held_back: Some(held_back),
            })),
        }
    }

    /// It begins: ours are closed by now, as whoever closes last is who waits. If we end before, it begins as well.
    pub fn begin(&mut self) {
        self.held_back = None;
    }

    /// Waits until all probes are gone, but no longer than for `patience`; else says how many there were and which process takes the
    /// rest away.
    pub fn settle(mut self, patience: Duration) -> Option<String> {
        self.begin();
        let begun = Instant::now();
        while !self.is_done() {
            if begun.elapsed() >= patience {
                return Some(format!(
                    "this kernel takes probes away one at a time: process {} goes on with that, of {}",
                    self.pid,
                    plural(self.events as u64, "probe")
                ));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        None
    }

    fn is_done(&self) -> bool {
        // SAFETY: a child of ours that nobody else waits for
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) != 0 }
    }
}

impl Kept {
    fn find() -> io::Result<Kept> {
        let mut kept = Kept::default();
        for entry in fs::read_dir("/proc/self/fd")? {
            let path = entry?.path();
            let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            let (Some(number), Ok(what)) = (number, fs::read_link(&path)) else {
                continue;
            };
            match what.to_str() {
                Some("anon_inode:bpf_link") => kept.links.push(number),
                Some("anon_inode:[perf_event]") => kept.events.push(number),
                _ => {}
            }
        }
        Ok(kept)
    }
}

/// All numbers that are not `kept`, as ranges: first and last.
fn gaps(kept: impl Iterator<Item = RawFd>) -> Vec<(u32, u32)> {
    let mut kept: Vec<u32> = kept.filter_map(|fd| u32::try_from(fd).ok()).collect();
    kept.sort_unstable();
    let mut first = 0;
    let mut gaps = Vec::new();
    for fd in kept {
        if fd > first {
            gaps.push((first, fd - 1));
        }
        first = first.max(fd + 1);
    }
    gaps.push((first, u32::MAX));
    gaps
}

/// In the child. Nothing of ours is kept open for longer than we live: who reads what we write sees its end.
fn take_away(kept: &Kept, gaps: &[(u32, u32)], go: &PipeReader) -> ! {
    let mut nothing = [0u8];
    // SAFETY: plain system calls; the descriptors that are closed here are used by nobody else in this process
    unsafe {
        // no terminal ends it, nor keeps it
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        for (first, last) in gaps {
            libc::syscall(libc::SYS_close_range, *first, *last, 0);
        }
        libc::read(go.as_raw_fd(), nothing.as_mut_ptr().cast(), nothing.len());
        // without programs first, which is done at once: what is left costs the traced program less
        for fd in &kept.links {
            libc::close(*fd);
        }
        for fd in &kept.events {
            let begun = Instant::now();
            libc::close(*fd);
            // who attaches meanwhile waits for the same lock
            std::thread::sleep(begun.elapsed().min(LONGEST_PAUSE));
        }
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_what_is_kept_is_closed() {
        assert_eq!(gaps([].into_iter()), [(0, u32::MAX)]);
        assert_eq!(gaps([5, 3, 4].into_iter()), [(0, 2), (6, u32::MAX)]);
        assert_eq!(gaps([0, 7].into_iter()), [(1, 6), (8, u32::MAX)]);
        assert_eq!(gaps([2, 2, -1].into_iter()), [(0, 1), (3, u32::MAX)]);
    }

    #[test]
    fn where_there_is_nothing_to_take_away_there_is_none() {
        assert!(Remover::start(&[]).unwrap().is_none());
    }
}
