//! Stacks of threads that call CUDA: the programs that take them, and how they are read.
//!
//! Owns the clock of each thread. Which stacks matter is the business of whoever asks.

use super::Session;
use super::links::hooks;
use super::skeleton::types;
use crate::engine::samples::TICK_NS;
use crate::engine::{Hook, Hooks, Seen};
use crate::stack::wire::SiteEvent;
use crate::wire::u64_at;
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags, libbpf_sys as sys};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// Readings of a stack that is being taken; each takes a few µs.
const READINGS: usize = 4;

impl Session {
    /// Has the stacks of threads taken as these leave their CPU.
    ///
    /// # Errors
    /// The kernel refuses, or has refused the programs; why.
    pub(super) fn sample_switches(&self) -> Result<Hooks> {
        if let Some(why) = &self.unsampled {
            anyhow::bail!("{why}");
        }
        let link = self.skel.progs.thread_switched.attach();
        Ok(hooks(vec![
            link.context("failed to attach to tracepoint sched_switch")?,
        ]))
    }

    /// Has the stack of thread `tid` taken at each tick of its time on a CPU.
    ///
    /// # Errors
    /// The thread is gone, or the kernel refuses.
    pub(super) fn start_clock(&self, tid: u32) -> Result<Box<dyn Hook>> {
        let clock = clock_of(tid).with_context(|| format!("failed to open a clock of thread {tid}"))?;
        let link = self.skel.progs.thread_ticked.attach_perf_event(clock.as_raw_fd())?;
        let _ = clock.into_raw_fd(); // the link closes it
        Ok(Box::new(link))
    }

    /// The stack that thread `tid` was seen with last. `None`: none was taken, or this kernel does not tell of that thread.
    pub(super) fn stack_of(&self, tid: u32) -> Option<Seen> {
        let thread = super::open_calls::descriptor_of(tid).ok()?;
        let key = thread.as_raw_fd().to_ne_bytes();
        let stacks = &self.skel.maps.sampled_threads;
        for _ in 0..READINGS {
            let value = stacks.lookup(&key, MapFlags::ANY);
            let (first, seen) = sampled(&value.ok()??)?;
            let value = stacks.lookup(&key, MapFlags::ANY);
            let (second, _) = sampled(&value.ok()??)?;
            if first % 2 == 0 && first == second {
                return seen;
            }
        }
        None
    }
}

/// The number of changes, and what there is.
fn sampled(bytes: &[u8]) -> Option<(u64, Option<Seen>)> {
    if bytes.len() < size_of::<types::sampled>() {
        return None;
    }
    let sequence = u64_at(bytes, offset_of!(types::sampled, sequence));
    let at = u64_at(bytes, offset_of!(types::sampled, at));
    let stack = SiteEvent::parse(&bytes[offset_of!(types::sampled, stack)..]);
    Some((sequence, stack.filter(|_| at > 0).map(|stack| Seen { at, stack })))
}

fn clock_of(tid: u32) -> io::Result<OwnedFd> {
    let mut wanted = sys::perf_event_attr {
        type_: sys::PERF_TYPE_SOFTWARE,
        size: size_of::<sys::perf_event_attr>() as u32,
        config: u64::from(sys::PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    wanted.__bindgen_anon_1.sample_period = TICK_NS;
    let (any_cpu, no_group) = (-1, -1);
    // SAFETY: the kernel reads `wanted`, which says how long it is, and keeps nothing of it
    let clock = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const wanted,
            tid,
            any_cpu,
            no_group,
            sys::PERF_FLAG_FD_CLOEXEC,
        )
    };
    if clock < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened for us just now
    Ok(unsafe { OwnedFd::from_raw_fd(clock as i32) })
}
