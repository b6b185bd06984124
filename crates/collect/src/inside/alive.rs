//! Whether a process that takes part is still there.
//!
//! Owns telling it from another that has its number by now. What an end means is `shared`'s business.

use crate::discover;
use crate::owner::start_ticks;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// A process that was there when it was looked at first.
pub(super) struct Alive {
    pid: u32,
    /// Becomes readable when it ends; `None`: this kernel has nothing of the kind.
    file: Option<OwnedFd>,
    /// Its start, in clock ticks since boot.
    began: Option<u64>,
}

impl Alive {
    pub(super) fn of(pid: u32) -> Alive {
        Alive {
            pid,
            file: process_file(pid),
            began: began(pid),
        }
    }

    /// What to poll; negative: nothing.
    pub(super) fn fd(&self) -> RawFd {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Whether it is no more, whoever has its number.
    pub(super) fn has_ended(&self) -> bool {
        match self.file {
            Some(_) => is_readable(self.fd()),
            None => discover::has_ended(self.pid) || began(self.pid) != self.began,
        }
    }
}

fn began(pid: u32) -> Option<u64> {
    start_ticks(Path::new("/proc"), pid)
}

fn is_readable(fd: RawFd) -> bool {
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one initialised entry
    unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
}

fn process_file(pid: u32) -> Option<OwnedFd> {
    // SAFETY: makes a descriptor that nobody else owns
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        i32::try_from(fd)
            .ok()
            .filter(|fd| *fd >= 0)
            .map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn without_file(alive: Alive) -> Alive {
        Alive { file: None, ..alive }
    }

    #[test]
    fn an_end_is_seen_before_and_after_somebody_has_asked_for_the_status() {
        let mut child = sleeper();
        let alive = [Alive::of(child.id()), without_file(Alive::of(child.id()))];
        assert!(!alive.iter().any(Alive::has_ended));
        child.kill().unwrap();
        while !discover::has_ended(child.id()) {
            std::thread::yield_now();
        }
        assert!(alive.iter().all(Alive::has_ended), "a zombie");
        child.wait().unwrap();
        assert!(alive.iter().all(Alive::has_ended), "gone");
    }

    #[test]
    fn one_that_has_the_number_now_is_another() {
        let own = Alive::of(std::process::id());
        let before = Alive {
            began: own.began.map(|ticks| ticks - 1),
            ..without_file(own)
        };
        assert!(before.has_ended());
    }
}
