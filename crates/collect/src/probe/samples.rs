//! Stacks of threads that call CUDA: the programs that take them, and how they are read.
//!
//! Owns the clock of each thread. Which stacks matter is the business of whoever asks.

use super::engine::{hooks, in_kernel};
use super::skeleton::types;
use crate::engine::{Engine, Hook, Hooks};
use crate::stack::wire::{SITE_BYTES, SiteEvent};
use crate::wire::u64_at;
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags, libbpf_sys as sys};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// Between two ticks of a thread's clock: 99 a second, so that it does not go with what happens each millisecond.
const TICK_NS: u64 = 1_000_000_000 / 99;
/// Readings of a stack that is being taken; each takes a few µs.
const READINGS: usize = 4;

/// A sample of a thread outside CUDA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When what it stands for ends, CLOCK_MONOTONIC ns.
    pub until: u64,
    pub ns: u64,
    pub stack: SiteEvent,
    /// Its thread was on a CPU.
    pub running: bool,
}

impl Sample {
    /// Reads a record of the ring; `None`: it is none. Frames of Python that it has not are not sent.
    #[must_use]
    pub fn parse(record: &[u8]) -> Option<Sample> {
        let mut stack = record.get(16..)?.to_vec();
        stack.resize(stack.len().max(SITE_BYTES), 0);
        let ns = u64_at(record, 8);
        Some(Sample {
            until: u64_at(record, 0),
            ns,
            stack: SiteEvent::parse(&stack)?,
            running: ns == TICK_NS,
        })
    }
}

/// The stack of a thread at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    pub stack: SiteEvent,
}

impl dyn Engine {
    /// Has the stacks of threads taken as these leave their CPU. Without [`super::Setup::samples`] there is nothing to attach.
    ///
    /// # Errors
    /// The kernel refuses, or has refused the programs; why.
    pub fn attach_samples(&self) -> Result<Hooks> {
        let session = in_kernel(self)?;
        if let Some(why) = &session.unsampled {
            anyhow::bail!("{why}");
        }
        let link = session.skel.progs.thread_switched.attach();
        Ok(hooks(vec![
            link.context("failed to attach to tracepoint sched_switch")?,
        ]))
    }

    /// Has the stack of thread `tid` taken at each tick of its time on a CPU.
    ///
    /// # Errors
    /// The thread is gone, or the kernel refuses.
    pub fn attach_clock(&self, tid: u32) -> Result<Box<dyn Hook>> {
        let clock = clock_of(tid).with_context(|| format!("failed to open a clock of thread {tid}"))?;
        let link = in_kernel(self)?
            .skel
            .progs
            .thread_ticked
            .attach_perf_event(clock.as_raw_fd())?;
        let _ = clock.into_raw_fd(); // the link closes it
        Ok(Box::new(link))
    }

    /// The stack that thread `tid` was seen with last. `None`: none was taken, or this kernel does not tell of that thread.
    pub fn last_stack(&self, tid: u32) -> Option<Seen> {
        let thread = super::open_calls::descriptor_of(tid).ok()?;
        let key = thread.as_raw_fd().to_ne_bytes();
        let stacks = &in_kernel(self).ok()?.skel.maps.sampled_threads;
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
