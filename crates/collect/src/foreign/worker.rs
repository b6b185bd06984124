//! A process of our own that does what may never end, or may end whoever does it.
//!
//! Owns starting it and giving it up: a worker that does not answer in a limited time. Messages are `channel`'s business.

mod channel;
mod shared;

pub use channel::Channel;
pub(crate) use shared::SHARED_BYTES;

use super::usage;
use channel::sockets;
use shared::Shared;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the worker finds its channel and the shared memory at.
const CHANNEL: RawFd = 3;
const SHARED: RawFd = 4;

/// Whether this program begins with [`enter`]: else a worker is a mere copy of this process.
static ENTERS: AtomicBool = AtomicBool::new(false);

/// What a worker is for, and what it does until its channel closes.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// Its name in lists of processes.
    pub name: &'static str,
    /// Whether it has something to say to people.
    pub speaks: bool,
    pub serve: fn(Channel),
}

/// Becomes a worker if this process was started as one; does not return then. To be called first.
pub fn enter(roles: &[Role]) {
    let named = std::env::args_os().next().unwrap_or_default();
    if let Some(role) = roles.iter().find(|role| named.to_str() == Some(role.name)) {
        serve(*role);
    }
    ENTERS.store(true, Ordering::Relaxed);
}

/// Whether what this program executes anew begins with [`enter`], too.
pub(crate) fn is_entered() -> bool {
    ENTERS.load(Ordering::Relaxed)
}

/// A worker, seen from who started it. Dropping it gives it up.
#[derive(Debug)]
pub struct Worker {
    channel: Channel,
    pid: libc::pid_t,
}

impl Worker {
    /// Starts one.
    ///
    /// # Errors
    /// The kernel allows no more processes, descriptors or memory.
    pub fn start(role: Role) -> io::Result<Worker> {
        let (ours, theirs) = sockets()?;
        let (shared, memory) = Shared::new()?;
        // all that needs memory comes before the copy is made
        let name = std::ffi::CString::new(role.name)?;
        // SAFETY: the child makes system calls until it is another program; without that, it serves and never returns
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => become_worker(role, &name, &theirs, &memory),
            pid => {
                usage::started(pid);
                Ok(Worker {
                    channel: Channel::new(ours, shared),
                    pid,
                })
            }
        }
    }

    /// The channel to it.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Ends it, if it can be ended. `Some`: it cannot be yet; this is its number.
    pub fn give_up(self) -> Option<libc::pid_t> {
        let pid = self.pid;
        std::mem::forget(self);
        (!ended(pid)).then_some(pid)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        ended(self.pid);
    }
}

/// Kills a worker; whether it is gone.
fn ended(pid: libc::pid_t) -> bool {
    const MOMENT: Duration = Duration::from_millis(2);
    // SAFETY: a child of ours that nobody else waits for
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let begun = Instant::now();
    while begun.elapsed() < MOMENT {
        if is_gone(pid) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Whether a worker that was given up is gone by now.
pub(crate) fn is_gone(pid: libc::pid_t) -> bool {
    usage::reap(pid)
}

/// In the child: the same program again, which has nothing of ours but the channel and the shared memory.
fn become_worker(role: Role, name: &std::ffi::CStr, channel: &OwnedFd, memory: &OwnedFd) -> ! {
    // SAFETY: plain system calls; the descriptors that are closed here are not used by this process
    unsafe {
        // above those that they are to be
        let channel = libc::fcntl(channel.as_raw_fd(), libc::F_DUPFD, SHARED + 1);
        let memory = libc::fcntl(memory.as_raw_fd(), libc::F_DUPFD, SHARED + 1);
        libc::dup2(channel, CHANNEL);
        libc::dup2(memory, SHARED);
        libc::syscall(libc::SYS_close_range, SHARED + 1, libc::c_uint::MAX, 0);
        if is_entered() {
            let arguments = [name.as_ptr(), std::ptr::null()];
            libc::execv(c"/proc/self/exe".as_ptr(), arguments.as_ptr());
        }
    }
    serve(role)
}

/// What ends processes that a terminal or a supervisor ends does not end this one: it ends with who started it.
pub(crate) fn ignore_ends_from_outside() {
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGPIPE,
        libc::SIGTSTP,
    ] {
        // SAFETY: a plain system call, which changes what this process does with a signal
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Serves until the channel closes. If it dies of what it reads, who started it says so.
fn serve(role: Role) -> ! {
    // SAFETY: plain system calls; both descriptors were put there for us
    unsafe {
        ignore_ends_from_outside();
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..if role.speaks { libc::STDERR_FILENO } else { CHANNEL } {
            libc::dup2(nowhere, standard);
        }
        libc::close(nowhere);
        if let Ok(name) = std::ffi::CString::new(role.name) {
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        }
        if let Ok(shared) = Shared::map(SHARED) {
            let socket = OwnedFd::from_raw_fd(CHANNEL);
            let channel = Channel::new(socket, shared);
            // in a copy of another program nothing of that must go on
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (role.serve)(channel)));
        }
        libc::_exit(0)
    }
}
