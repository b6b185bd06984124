//! A process that holds the same leases, for the time in which we cannot give ours back.
//!
//! The kernel waits for the holder of a lease for a while only (`fs.lease-break-time`, 45 s); then the file is written
//! to, and programs that load it crash of the probes in it. If we are stopped, or hang, nobody takes them away. So this
//! process ends us in time: with us go our probes.

use crate::discover;
use crate::foreign::ForeignFile;
use crate::foreign::handle;
use crate::foreign::worker::{Channel, Role, Worker};
use crate::output::say;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A process that holds the same leases, for the time in which we cannot give ours back.
pub const GUARDIAN: Role = Role {
    name: "gpuscope-lease",
    speaks: true,
    serve,
};

/// How long we may take to let go of a file.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);
const BREAK_TIME: &str = "/proc/sys/fs/lease-break-time";

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// A file has a lease; it comes along.
    Watch {
        number: u64,
    },
    Forget {
        number: u64,
    },
    /// Until this process has ended there are probes, and those who started this one have done what they could.
    Await {
        pid: u32,
    },
}

static GUARDIAN_PROCESS: Mutex<Option<Worker>> = Mutex::new(None);

/// Has a file watched under a number of its own.
pub(super) fn watch(number: u64, file: &ForeignFile) {
    tell(&Order::Watch { number }, Some(file));
}

/// What was watched is given back.
pub(super) fn forget(number: u64) {
    tell(&Order::Forget { number }, None);
}

/// Probes in what is watched are a process' business from now on.
pub(super) fn leave_to(pid: u32) {
    tell(&Order::Await { pid }, None);
}

fn tell(order: &Order, file: Option<&ForeignFile>) {
    let mut process = GUARDIAN_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    if process.is_none() && file.is_some() {
        *process = Worker::start(GUARDIAN).ok();
    }
    let Some(worker) = process.as_ref() else { return };
    // without it there is our own lease still
    if worker.channel().send(order, file.map(AsFd::as_fd)).is_err() {
        *process = None;
    }
}

/// A file, and since when somebody waits to write to it.
struct Watched {
    lease: File,
    wanted: Option<Instant>,
}

fn serve(channel: Channel) {
    let patience = patience();
    // SAFETY: a plain system call
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    // asked of the channel: whoever started us may have ended before we came so far
    let Ok(guarded) = channel.maker() else { return };
    let mut files: HashMap<u64, Watched> = HashMap::new();
    let mut looked = Instant::now();
    loop {
        match channel.receive::<Order>(Some(LOOK_EVERY)) {
            Ok((Order::Watch { number }, Some(found))) => drop(watched(found).map(|file| files.insert(number, file))),
            Ok((Order::Forget { number }, _)) => drop(files.remove(&number)),
            Ok((Order::Await { pid }, _)) => return outlive(pid),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            Err(_) => return until_gone(guarded),
        }
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            if files.values_mut().any(|file| file.is_overdue(patience)) {
                end(guarded);
                return;
            }
        }
    }
}

/// Half of what the kernel allows where that is less.
fn patience() -> Duration {
    let seconds = std::fs::read_to_string(BREAK_TIME).ok();
    let seconds = seconds.and_then(|text| text.trim().parse().ok());
    seconds
        .map_or(PATIENCE, |seconds| Duration::from_secs(seconds) / 2)
        .min(PATIENCE)
}

fn watched(found: OwnedFd) -> io::Result<Watched> {
    let lease = handle::open(found.as_fd())?;
    super::set(&lease)?;
    Ok(Watched { lease, wanted: None })
}

impl Watched {
    fn is_overdue(&mut self, patience: Duration) -> bool {
        if super::is_wanted(&self.lease) {
            self.wanted.get_or_insert_with(Instant::now).elapsed() >= patience
        } else {
            self.wanted = None;
            false
        }
    }
}

/// With the process go its probes; only then do our leases go.
fn end(guarded: libc::pid_t) {
    say(
        "gpuscope: did not let go of a file that is being overwritten, stopped or hanging: ended, so that no program crashes",
    );
    // SAFETY: the process that started this one; if it has ended, its number is not ours to signal
    unsafe {
        if libc::getppid() == guarded {
            libc::kill(guarded, libc::SIGKILL);
        }
    }
    until_gone(guarded);
}

/// Its probes are gone when it is nobody's parent any more.
fn until_gone(guarded: libc::pid_t) {
    // SAFETY: plain system calls
    unsafe {
        while libc::getppid() == guarded {
            libc::usleep(1000);
        }
    }
}

/// Waits until a process has ended. Nobody waits for us meanwhile: neither who reads what we might say, nor a terminal.
fn outlive(pid: u32) {
    const MOMENT: Duration = Duration::from_millis(10);
    // SAFETY: plain system calls; stdout is nowhere already
    unsafe {
        libc::setsid();
        libc::dup2(libc::STDOUT_FILENO, libc::STDERR_FILENO);
    }
    while !discover::has_ended(pid) {
        std::thread::sleep(MOMENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_ended_before_is_not_waited_for() {
        let begun = Instant::now();
        // nobody is his own parent
        until_gone(std::process::id() as libc::pid_t);
        assert!(begun.elapsed() < LOOK_EVERY);
    }
}
