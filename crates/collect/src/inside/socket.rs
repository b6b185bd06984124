//! Messages of what programs have loaded, each on a connection of its own, and the answers.
//!
//! Owns who is believed to be which process: the kernel says it.

use super::arena::{ARENA_MAGIC, Answer};
use crate::wire::{Plain, bytes_of, read};
use anyhow::{Context, Result};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Connections that wait to be taken.
const WAITING: libc::c_int = 512;
/// How long a message may take that was announced.
const PATIENCE: Duration = Duration::from_millis(200);

/// Where agents call.
pub(crate) struct Listener(OwnedFd);

/// An agent that waits for an answer.
#[derive(Debug)]
pub(crate) struct Caller {
    connection: OwnedFd,
    pub pid: u32,
    pub uid: u32,
}

impl Listener {
    /// # Errors
    /// There is a file of that name, or none may be made.
    pub(crate) fn open(path: &Path) -> Result<Listener> {
        let socket = socket()?;
        let (address, bytes) = address_of(path);
        // SAFETY: the address is one, and as long as is said
        let bound = unsafe {
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) == 0
                && libc::listen(socket.as_raw_fd(), WAITING) == 0
        };
        if !bound {
            return Err(io::Error::last_os_error()).with_context(|| format!("failed to listen at {}", path.display()));
        }
        Ok(Listener(socket))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The next one who calls, and what it says, if that is a message of these; `None`: nobody does.
    pub(crate) fn accept<M: Plain>(&self) -> Option<(Caller, Option<M>)> {
        // SAFETY: makes a descriptor that nobody else owns
        let connection = unsafe {
            owned(libc::accept4(
                self.fd(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                libc::SOCK_CLOEXEC,
            ))
        };
        let connection = connection.ok()?;
        let caller = Caller::at(connection)?;
        let message = caller.hear();
        Some((caller, message))
    }
}

impl Caller {
    /// One who listens at `path`, whom we call: who that is, as the kernel says. It is awaited for a moment.
    ///
    /// # Errors
    /// Nobody listens there.
    pub(crate) fn to(path: &Path) -> Result<Caller> {
        let connection = socket()?;
        let (address, bytes) = address_of(path);
        // SAFETY: the address is one, and as long as is said; then a plain call on a descriptor of ours
        let connected = unsafe {
            libc::connect(connection.as_raw_fd(), (&raw const address).cast(), bytes) == 0
                && libc::fcntl(connection.as_raw_fd(), libc::F_SETFL, 0) == 0
        };
        if !connected {
            return Err(io::Error::last_os_error()).context("nobody answers");
        }
        Caller::at(connection).context("it is not known who answers")
    }

    /// Who is at the other end, as the kernel says.
    fn at(connection: OwnedFd) -> Option<Caller> {
        let peer = peer_of(&connection)?;
        Some(Caller {
            connection,
            pid: u32::try_from(peer.pid).unwrap_or(0),
            uid: peer.uid,
        })
    }

    /// What it says, if that is a message of these.
    pub(crate) fn hear<M: Plain>(&self) -> Option<M> {
        receive(&self.connection, PATIENCE)
    }

    /// The same of one whom we have called, and who may be busy.
    pub(crate) fn hear_within<M: Plain>(&self, patience: Duration) -> Option<M> {
        receive(&self.connection, patience)
    }

    /// Whether its end of the connection is closed: it has gone, or has ended.
    pub(crate) fn has_left(&self) -> bool {
        let mut polled = libc::pollfd {
            fd: self.connection.as_raw_fd(),
            events: 0,
            revents: 0,
        };
        // SAFETY: one initialised entry
        let ready = unsafe { libc::poll(&raw mut polled, 1, 0) };
        ready == 1 && polled.revents & libc::POLLHUP != 0
    }

    /// Lets the agent go on. False: it waits no longer.
    pub(crate) fn answer(self, accepted: bool, files: Option<[BorrowedFd<'_>; 2]>) -> bool {
        let answer = Answer {
            magic: ARENA_MAGIC,
            accepted: accepted.into(),
        };
        let files = files.as_ref().map_or(&[][..], |files| &files[..]);
        send(&self.connection, bytes_of(&answer), files)
    }

    /// Gives it `file` with `answer`; the connection, which stays open. `None`: it waits no longer.
    pub(crate) fn give<A: Plain>(self, answer: &A, file: BorrowedFd<'_>) -> Option<OwnedFd> {
        send(&self.connection, bytes_of(answer), &[file]).then_some(self.connection)
    }
}

/// For messages, that does not wait.
fn socket() -> Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: makes a descriptor that nobody else owns
    unsafe { owned(libc::socket(libc::AF_UNIX, kind, 0)) }.context("failed to make a socket")
}

/// # Safety
/// Nobody else owns `fd`.
unsafe fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    match fd < 0 {
        true => Err(io::Error::last_os_error()),
        // SAFETY: by the caller
        false => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

fn address_of(path: &Path) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: all zero is an address without a path
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    let last = address.sun_path.len() - 1;
    for (to, from) in address.sun_path[..last].iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    (address, size_of::<libc::sockaddr_un>() as libc::socklen_t)
}

fn peer_of(connection: &OwnedFd) -> Option<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the call fills the structure that it is given
    let known = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut bytes,
        ) == 0
    };
    (known && peer.pid > 0).then_some(peer)
}

fn receive<M: Plain>(connection: &OwnedFd, patience: Duration) -> Option<M> {
    let patience = libc::timeval {
        tv_sec: patience.as_secs().cast_signed(),
        tv_usec: patience.subsec_micros().into(),
    };
    let mut bytes = vec![0u8; size_of::<M>()];
    // SAFETY: a plain option of our descriptor, and a buffer as long as is said
    let received = unsafe {
        libc::setsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const patience).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        );
        libc::recv(connection.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0)
    };
    let is_whole = usize::try_from(received).is_ok_and(|count| count == bytes.len());
    is_whole.then(|| read::<M>(&bytes)).flatten()
}

/// Descriptors of a message, at most.
const MOST_FILES: usize = 2;

/// Room for them, aligned as a header of such a message.
#[repr(C)]
struct Passed {
    header: libc::cmsghdr,
    files: [RawFd; MOST_FILES],
}

fn send(connection: &OwnedFd, bytes: &[u8], files: &[BorrowedFd<'_>]) -> bool {
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let count = files.len().min(MOST_FILES);
    let mut passed = Passed {
        header: libc::cmsghdr {
            cmsg_len: size_of::<libc::cmsghdr>() + count * size_of::<RawFd>(),
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        files: [-1; MOST_FILES],
    };
    for (place, file) in passed.files.iter_mut().zip(files) {
        *place = file.as_raw_fd();
    }
    // SAFETY: all zero is a message of nothing
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if count > 0 {
        message.msg_control = std::ptr::from_mut(&mut passed).cast();
        message.msg_controllen = size_of::<Passed>();
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: what the message names lives until the call returns
    unsafe { libc::sendmsg(connection.as_raw_fd(), &raw const message, flags) == bytes.len() as isize }
}
