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
    others: Vec<RawFd>,
}

impl Remover {
    /// Starts it for all events that there are, so many `probes`; `None`: they are few, or this program does not begin with
    /// [`enter`]. Leases with these descriptors last as long as it does.
    ///
    /// # Errors
    /// What is open cannot be read, or there can be no more processes.
    pub(super) fn start(probes: usize, leases: &[RawFd]) -> io::Result<Option<Remover>> {
        if probes < FEWEST || !worker::is_entered() {
            return Ok(None);
        }
        let open = Kept::find()?;
        // all that needs memory comes before the copy is made
        let kept = [&open.links, &open.events, leases].concat();
        let (go, held_back) = io::pipe()?;
        // SAFETY: the child makes system calls alone, and never returns
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => become_remover(&kept, &go),
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
                _ => kept.others.push(number),
            }
        }
        Ok(kept)
    }
}

/// In the child: the same program again, which has those descriptors, the pipe for its stdin, and nothing else of ours, so that who
/// reads what we write sees its end when we end.
fn become_remover(kept: &[RawFd], go: &PipeReader) -> ! {
    let arguments = [NAME.as_ptr(), std::ptr::null()];
    // SAFETY: plain system calls; the descriptors that are closed here are used by nobody else in this process
    unsafe {
        // no terminal ends it, nor keeps it
        libc::setsid();
        libc::dup2(go.as_raw_fd(), libc::STDIN_FILENO);
        libc::close(libc::STDOUT_FILENO);
        libc::close(libc::STDERR_FILENO);
        for fd in kept {
            libc::fcntl(*fd, libc::F_SETFD, 0);
        }
        libc::execv(c"/proc/self/exe".as_ptr(), arguments.as_ptr());
        libc::_exit(1)
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
    // SAFETY: a name that ends with a zero
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    let kept = Kept::find().unwrap_or_default();
    let (leases, inherited): (Vec<RawFd>, Vec<RawFd>) = kept.others.into_iter().partition(|fd| has_lease(*fd));
    // who started gpuscope may wait for the end of these
    inherited
        .into_iter()
        .filter(|fd| *fd > libc::STDERR_FILENO)
        .for_each(close);
    // until nothing holds it back
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
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
    fn few_probes_need_none() {
        assert!(Remover::start(FEWEST - 1, &[]).unwrap().is_none());
    }
}
