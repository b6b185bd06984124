//! A process of our own that does what may never end, or may end whoever does it.
//!
//! Owns starting it, and the channel to it: messages, descriptors beside them, and a piece of shared memory for what is
//! large. Whoever waits for an answer waits for a limited time; a worker that does not answer is given up.

use super::usage;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes that both sides can write to: the largest text or piece of a file.
pub(crate) const SHARED_BYTES: usize = 16 << 20;
/// No message is longer.
const MESSAGE_BYTES: usize = 128 << 10;
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

/// A message, and the descriptor that came with it.
pub type Message<T> = (T, Option<OwnedFd>);

/// One end.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    shared: Shared,
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
                    channel: Channel { socket: ours, shared },
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
pub fn is_gone(pid: libc::pid_t) -> bool {
    usage::reap(pid)
}

impl Channel {
    /// The process that made both ends, also when it is gone by now.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn maker(&self) -> io::Result<libc::pid_t> {
        let mut maker = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the kernel writes at most so many bytes into the structure
        let code = unsafe {
            let to = (&raw mut maker).cast();
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                to,
                &raw mut bytes,
            )
        };
        match code {
            0 => Ok(maker.pid),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sends a message, and a descriptor beside it.
    ///
    /// # Errors
    /// The other side is gone, or the message is too long.
    pub fn send(&self, message: &impl Serialize, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > MESSAGE_BYTES {
            return Err(io::Error::other("a message that is too long"));
        }
        send(self.socket.as_raw_fd(), &bytes, descriptor)
    }

    /// The next message. `patience`: as long as is waited for it; `None`: for ever.
    ///
    /// # Errors
    /// None came in time, or the other side is gone.
    pub fn receive<T: DeserializeOwned>(&self, patience: Option<Duration>) -> io::Result<Message<T>> {
        if let Some(patience) = patience
            && !readable(self.socket.as_raw_fd(), patience)
        {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut bytes = vec![0; MESSAGE_BYTES];
        let (length, descriptor) = receive(self.socket.as_raw_fd(), &mut bytes)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let message = serde_json::from_slice(bytes.get(..length).unwrap_or_default())?;
        Ok((message, descriptor))
    }

    /// The beginning of what is shared. The other side may change it meanwhile.
    pub(crate) fn copy_out(&self, into: &mut [u8]) {
        self.shared.copy_out(into);
    }

    /// Has the other side see `bytes`, as far as there is room.
    pub fn copy_in(&self, bytes: &[u8]) -> usize {
        self.shared.copy_in(bytes)
    }
}

fn readable(socket: RawFd, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd {
            fd: socket,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, which the call fills
        let ready = unsafe { libc::poll(&raw mut poll, 1, left.as_millis() as i32 + 1) };
        if ready != -1 || left.is_zero() {
            return ready > 0;
        }
    }
}

/// Room for one descriptor beside a message.
#[repr(C, align(8))]
struct Beside([u8; 24]);

fn send(socket: RawFd, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut piece = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut beside = Beside([0; 24]);
    // SAFETY: all pointers are to what lives until the call is over, and the sizes are theirs
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        if let Some(descriptor) = descriptor {
            header.msg_control = beside.0.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
            libc::CMSG_DATA(first)
                .cast::<RawFd>()
                .write_unaligned(descriptor.as_raw_fd());
        }
        loop {
            if libc::sendmsg(socket, &raw const header, libc::MSG_NOSIGNAL) >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

fn receive(socket: RawFd, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut piece = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let mut beside = Beside([0; 24]);
    // SAFETY: all pointers are to what lives until the call is over, and the sizes are theirs; a descriptor that came
    // is nobody else's
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = beside.0.as_mut_ptr().cast();
        header.msg_controllen = beside.0.len();
        let length = loop {
            let length = libc::recvmsg(socket, &raw mut header, libc::MSG_CMSG_CLOEXEC);
            if length >= 0 {
                break length as usize;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        };
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        let is_descriptor = !first.is_null() && (*first).cmsg_type == libc::SCM_RIGHTS;
        let descriptor =
            is_descriptor.then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(first).cast::<RawFd>().read_unaligned()));
        Ok((length, descriptor))
    }
}

fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for both descriptors, which nobody else owns
    unsafe {
        match libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) {
            0 => Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Memory that two processes map. It cannot shrink under who reads it.
#[derive(Debug)]
struct Shared(*mut u8);

// SAFETY: it is copied from and to only, through whoever owns it
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> io::Result<(Shared, OwnedFd)> {
        // SAFETY: a new descriptor, which nobody else owns
        let memory = unsafe {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            let got = libc::memfd_create(c"gpuscope answers".as_ptr(), flags);
            if got < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(got)
        };
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the descriptor is ours
        unsafe {
            if libc::ftruncate(memory.as_raw_fd(), SHARED_BYTES as libc::off_t) != 0
                || libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, seals) != 0
            {
                return Err(io::Error::last_os_error());
            }
        }
        Ok((Shared::map(memory.as_raw_fd())?, memory))
    }

    fn map(memory: RawFd) -> io::Result<Shared> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which nothing else uses
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SHARED_BYTES,
                protection,
                libc::MAP_SHARED,
                memory,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Shared(start.cast()))
    }

    fn copy_out(&self, into: &mut [u8]) {
        let size = into.len().min(SHARED_BYTES);
        // SAFETY: both are at least as long
        unsafe { std::ptr::copy_nonoverlapping(self.0, into.as_mut_ptr(), size) };
    }

    fn copy_in(&self, bytes: &[u8]) -> usize {
        let size = bytes.len().min(SHARED_BYTES);
        // SAFETY: both are at least as long
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, size) };
        size
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` mapped
        unsafe { libc::munmap(self.0.cast(), SHARED_BYTES) };
    }
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
        if ENTERS.load(Ordering::Relaxed) {
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
            let channel = Channel { socket, shared };
            // in a copy of another program nothing of that must go on
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (role.serve)(channel)));
        }
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_channel_say_who_made_it() {
        let (ours, theirs) = sockets().unwrap();
        for socket in [ours, theirs] {
            let (shared, _) = Shared::new().unwrap();
            let channel = Channel { socket, shared };
            assert_eq!(channel.maker().unwrap(), std::process::id() as libc::pid_t);
        }
    }
}
