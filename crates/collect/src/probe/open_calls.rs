//! Calls that threads are in now, as the kernel programs remember them, read from outside.

use super::session::in_kernel;
use super::skeleton::types;
use super::told;
use crate::discover;
use crate::engine::Engine;
use crate::wire;
use libbpf_rs::{MapCore, MapFlags};
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Makes a descriptor of one thread, from Linux 6.9 on; before, only of a process's first.
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;

/// Why nothing is known of a thread's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSeen {
    /// It has ended.
    Gone,
    /// This kernel tells of the first thread of a process alone.
    OldKernel,
}

/// A call that has not returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    pub row: u32,
    /// CLOCK_MONOTONIC ns.
    pub entered: u64,
    /// Whether it becomes a line when it returns.
    pub streamed: bool,
    /// As the event of a call that is seen at entry only: what can be known before it returns.
    pub event: Vec<u8>,
}

impl dyn Engine {
    /// Calls that thread `tid` of process `tgid` is in, the outermost first.
    ///
    /// # Errors
    /// It is gone or has never called, or the kernel does not tell.
    pub fn open_calls(&self, tgid: u32, tid: u32) -> Result<Vec<OpenCall>, NotSeen> {
        let state = self.thread_state(tid)?.ok_or(NotSeen::Gone)?;
        // nobody has asked for its status yet
        if state.ended_in > 0 {
            return Err(NotSeen::Gone);
        }
        Ok(calls_of(&state, state.depth.into(), (tgid, tid)))
    }

    /// Calls that thread `tid` of process `tgid` was in when it ended, the outermost first. `None`: that is not known any more,
    /// as somebody has asked for its status.
    pub fn ended_in(&self, tgid: u32, tid: u32) -> Option<Vec<OpenCall>> {
        let state = self.thread_state(tid).ok().flatten()?;
        Some(calls_of(&state, state.ended_in, (tgid, tid)))
    }

    /// Context switches of living thread `tid` of process `tgid` since its first call: those in which it waited, others.
    ///
    /// # Errors
    /// As `open_calls`.
    pub fn switches(&self, tgid: u32, tid: u32) -> Result<(u64, u64), NotSeen> {
        let state = self.thread_state(tid)?.ok_or(NotSeen::Gone)?;
        let status = std::fs::read_to_string(format!("/proc/{tgid}/task/{tid}/status")).map_err(|_| NotSeen::Gone)?;
        let number = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        let now = number("voluntary_ctxt_switches:").zip(number("nonvoluntary_ctxt_switches:"));
        let (voluntary, involuntary) = now.ok_or(NotSeen::Gone)?;
        Ok((
            voluntary.saturating_sub(state.voluntary),
            involuntary.saturating_sub(state.involuntary),
        ))
    }

    /// `None`: it has never called.
    fn thread_state(&self, tid: u32) -> Result<Option<types::thread>, NotSeen> {
        if self.is_inside().is_some() {
            // what a thread remembers outlives it
            let lives = !discover::is_gone(tid);
            let told = self.thread(tid).filter(|_| lives);
            return Ok(told.map(|bytes| told::plain(&bytes)));
        }
        let thread = descriptor_of(tid)?;
        let key = thread.as_raw_fd().to_ne_bytes();
        let Ok(session) = in_kernel(self) else {
            return Ok(None);
        };
        let value = session.skel.maps.threads.lookup(&key, MapFlags::ANY);
        let Some(bytes) = value
            .ok()
            .flatten()
            .filter(|bytes| bytes.len() >= size_of::<types::thread>())
        else {
            return Ok(None);
        };
        // SAFETY: plain integers, of which any bytes are one; there are enough bytes
        Ok(Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }))
    }
}

/// Calls that thread `tid` of process `tgid` was in, by what [`Engine::thread`] said of it: the outermost first.
pub fn last_calls(told: &[u8], tgid: u32, tid: u32) -> Vec<OpenCall> {
    let state: types::thread = told::plain(told);
    calls_of(&state, state.depth.into(), (tgid, tid))
}

fn calls_of(state: &types::thread, depth: u64, (tgid, tid): (u32, u32)) -> Vec<OpenCall> {
    let frames = state.frames.iter().take(usize::try_from(depth).unwrap_or(usize::MAX));
    frames.map(|frame| open_call(frame, tgid, tid)).collect()
}

pub(super) fn descriptor_of(tid: u32) -> Result<OwnedFd, NotSeen> {
    for flags in [PIDFD_THREAD, 0] {
        // SAFETY: makes a descriptor that nobody else owns
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, tid, flags);
            if fd >= 0 {
                return Ok(OwnedFd::from_raw_fd(fd as i32));
            }
            if *libc::__errno_location() == libc::ESRCH {
                return Err(NotSeen::Gone);
            }
        }
    }
    Err(NotSeen::OldKernel)
}

fn open_call(frame: &types::frame, tgid: u32, tid: u32) -> OpenCall {
    let header = wire::CallHeader {
        entered: frame.entered,
        caller: frame.caller,
        tgid,
        tid,
        row: frame.row,
        depth: frame.depth,
        flags: wire::EVENT_NO_RETURN,
        size: wire::SIZE_LARGE,
        // nothing that a pointer leads to was read
        unreadable: u8::MAX,
        ..wire::CallHeader::default()
    };
    OpenCall {
        row: frame.row,
        entered: frame.entered,
        streamed: frame.streamed != 0,
        event: wire::entered_event(&header, &frame.word),
    }
}
