//! The channel to a worker: messages, descriptors beside them, and a piece of shared memory for what is large. Whoever waits for
//! an answer waits for a limited time.

use super::shared::Shared;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// No message is longer.
const MESSAGE_BYTES: usize = 128 << 10;

/// A message, and the descriptor that came with it.
pub type Message<T> = (T, Option<OwnedFd>);

/// One end.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    shared: Shared,
}

impl Channel {
    pub(super) fn new(socket: OwnedFd, shared: Shared) -> Channel {
        Channel { socket, shared }
    }

    /// The process that made both ends, also when it is gone by now.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn maker(&self) -> io::Result<libc::pid_t> {
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

/// Both ends.
pub(super) fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_channel_say_who_made_it() {
        let (ours, theirs) = sockets().unwrap();
        for socket in [ours, theirs] {
            let (shared, _) = Shared::new().unwrap();
            let channel = Channel::new(socket, shared);
            assert_eq!(channel.maker().unwrap(), std::process::id() as libc::pid_t);
        }
    }
}
