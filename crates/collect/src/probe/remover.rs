//! A process that takes probes away after us, where the kernel takes away one at a time.
//!
//! To let go of a perf event's probe, the kernel waits until all processors have left it: a twentieth to half a second each, one
//! after the other whoever asks. That process holds the same descriptors, so that ours are closed at once. When it is killed, the kernel
//! does what it would have done.

use super::lease;
use crate::confine::{self, Keep};
use crate::foreign::worker;
use crate::text::quantity::plural;
use std::fs;
use std::io::{self, PipeWriter};
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
    probes: usize,
    /// It waits for the end of what comes through this.
    held_back: Option<PipeWriter>,
}

/// Descriptors that it has.
#[derive(Debug, Default)]
struct Kept {
    /// What ties programs to events.
    links: Vec<RawFd>,
    events: Vec<RawFd>,
    files: Vec<RawFd>,
}

impl Remover {
    /// Starts it for all events that there are, so many `probes`; `None`: they are few. Leases with these descriptors last as long
    /// as it does.
    ///
    /// # Errors
    /// What is open cannot be read, or there can be no more processes.
    pub(super) fn start(probes: usize, leases: &[RawFd]) -> io::Result<Option<Remover>> {
        if probes < FEWEST {
            return Ok(None);
        }
        let open = Kept::find()?;
        let kept = [&open.links, &open.events, leases].concat();
        let (go, held_back) = io::pipe()?;
        let pipe = [go.as_raw_fd(), held_back.as_raw_fd()];
        // all that needs memory comes before the copy is made
        let gaps = gaps(kept.iter().chain(&pipe).copied());
        let enters = worker::is_entered();
        // SAFETY: the child makes system calls alone, and never returns
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => become_remover(&kept, &gaps, pipe, enters),
            pid => Ok(Some(Remover {
                pid,
                probes,
                held_back: Some(held_back),
            })),
        }
    }

    /// It begins: ours are closed by now, as whoever closes last is who waits. If we end before, it begins as well.
    pub fn begin(&mut self) {
        if let Some(held_back) = self.held_back.take() {
            lease::leave_to(self.pid.cast_unsigned());
            drop(held_back);
        }
    }

    /// Waits until all probes are gone, but no longer than for `patience`; else says what goes on.
    pub fn settle(mut self, patience: Duration) -> Option<String> {
        self.begin();
        let begun = Instant::now();
        while !self.is_done() {
            if begun.elapsed() >= patience {
                return Some(format!(
                    "this kernel takes probes away one at a time: process {} goes on with that ({}); until it has ended, calls of their \
                     functions take a microsecond or two more; hint: Linux 6.6 takes all at once",
                    self.pid,
                    plural(self.probes as u64, "probe")
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
                _ if what.is_absolute() => kept.files.push(number),
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

/// In the child: once nothing holds it back, the same program again, which has those descriptors and nothing else of ours. Who
/// reads what we write sees its end when we end.
fn become_remover(kept: &[RawFd], gaps: &[(u32, u32)], [go, held_back]: [RawFd; 2], enters: bool) -> ! {
    let mut nothing = [0u8];
    let arguments = [NAME.as_ptr(), std::ptr::null()];
    // SAFETY: plain system calls; the descriptors that are closed here are used by nobody else in this process
    unsafe {
        // no terminal ends it, nor keeps it
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::close(held_back);
        for (first, last) in gaps {
            libc::syscall(libc::SYS_close_range, *first, *last, 0);
        }
        libc::read(go, nothing.as_mut_ptr().cast(), nothing.len());
        if enters {
            for fd in kept {
                libc::fcntl(*fd, libc::F_SETFD, 0);
            }
            libc::execv(c"/proc/self/exe".as_ptr(), arguments.as_ptr());
        }
        // what is open is closed by the kernel, without pauses
        libc::_exit(0)
    }
}

/// Takes probes away if this process was started for that; does not return then. To be called first.
pub fn enter() {
    let named = std::env::args_os().next().unwrap_or_default();
    if named.as_encoded_bytes() != NAME.to_bytes() {
        return;
    }
    confine::this_thread(Keep::NoCapability);
    // no file system is kept from being unmounted
    let _ = std::env::set_current_dir("/");
    let kept = Kept::find().unwrap_or_default();
    let leases: Vec<RawFd> = kept.files.into_iter().filter(|fd| has_lease(*fd)).collect();
    // SAFETY: a name that ends with a zero
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    // without programs first, which is done at once: what is left costs the traced program less
    for fd in kept.links {
        close(fd);
    }
    for fd in kept.events {
        let begun = Instant::now();
        close(fd);
        // who attaches meanwhile waits for the same lock, and who overwrites a file for its last probe
        if !leases.iter().any(lease::is_wanted) {
            std::thread::sleep(begun.elapsed().min(LONGEST_PAUSE));
        }
    }
    // SAFETY: leases go now, with all else
    unsafe { libc::_exit(0) }
}

fn has_lease(fd: RawFd) -> bool {
    // SAFETY: reads a flag of an open descriptor
    let kind = unsafe { libc::fcntl(fd, libc::F_GETLEASE) };
    kind == libc::F_RDLCK
}

fn close(fd: RawFd) {
    // SAFETY: a descriptor that nobody else in this process knows, closed once
    unsafe { libc::close(fd) };
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
    fn few_probes_need_none() {
        assert!(Remover::start(FEWEST - 1, &[]).unwrap().is_none());
    }
}
