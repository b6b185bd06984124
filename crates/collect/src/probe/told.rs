//! What the body of a call is told before anything runs, and what it counts meanwhile, as bytes: for an engine that runs it
//! elsewhere than in the kernel.
//!
//! Owns that these structures, which user space has from the compiled body alone, are plain integers.

use super::setup::{Setup, fill_options, fill_site_options};
use super::skeleton::types;
use crate::engine::Counters;
use anyhow::Result;
use std::mem::{MaybeUninit, offset_of};

/// `struct options`.
///
/// # Errors
/// More is selected than there is room for.
pub(crate) fn options(setup: &Setup) -> Result<Vec<u8>> {
    let mut filled = zeroed::<types::options>();
    fill_options(&mut filled, setup)?;
    Ok(bytes_of(&filled))
}

/// From inside a stack costs a fifth of what the kernel takes for one (docs/overhead.md): as much time buys more of them.
const CHEAPER: u32 = 5;

/// `struct site_options`.
pub(crate) fn site_options(setup: &Setup) -> Vec<u8> {
    let mut filled = zeroed::<types::site_options>();
    fill_site_options(&mut filled, setup);
    filled.stacks_per_second = filled.stacks_per_second.saturating_mul(CHEAPER);
    bytes_of(&filled)
}

/// Where `struct control` has the word that says whether calls count.
pub(crate) const COUNTING: usize = offset_of!(types::control, counting);
/// Where it has the number of kernels that have totals of their own.
pub(crate) const KERNEL_TOTALS: usize = offset_of!(types::control, kernel_totals);
/// Where `struct thread` has the context switches before its first call.
pub(crate) const VOLUNTARY: usize = offset_of!(types::thread, voluntary);
pub(crate) const INVOLUNTARY: usize = offset_of!(types::thread, involuntary);
pub(crate) const THREAD_BYTES: usize = size_of::<types::thread>();
pub(crate) const CONTROL_BYTES: usize = size_of::<types::control>();
pub(crate) const SUMS_BYTES: usize = size_of::<types::aggregate_counters>();

/// What a `struct control` and a `struct aggregate_counters` have counted; bytes that are missing count as zero.
pub(crate) fn counters(control: &[u8], sums: &[u8]) -> Counters {
    let control = plain::<types::control>(control);
    let sums = plain::<types::aggregate_counters>(sums);
    Counters {
        notices_lost: control.notices_lost,
        events_lost: control.events_lost,
        totals_overflowed: control.totals_overflowed,
        memory_lost: control.memory_lost,
        work_lost: control.work_lost,
        shapes_lost: control.shapes_lost,
        threads_ended: control.threads_ended,
        voluntary: control.voluntary,
        involuntary: control.involuntary,
        sums_full: sums.full,
        sums_raced: sums.races,
        ..Counters::default()
    }
}

/// Of a `struct thread`: how many calls it is in, and when the last one returned; when the outermost was entered, and where
/// on the stack the return address of the innermost lies.
pub(crate) struct Between {
    pub depth: u32,
    pub returned: u64,
    pub entered: u64,
    pub called_at: u64,
}

/// Open calls that it has room for.
const FRAMES: usize =
    (offset_of!(types::thread, spare) - offset_of!(types::thread, frames)) / size_of::<types::frame>();

/// What a `struct thread` remembers of calls, where `word` reads eight bytes of it.
pub(crate) fn between(word: impl Fn(u64) -> u64) -> Between {
    let first = offset_of!(types::thread, frames);
    let at = |offset: usize| word(offset as u64);
    let depth = offset_of!(types::thread, depth);
    let depth = (at(depth & !7) >> ((depth & 7) * 8)) as u32;
    let last = first + size_of::<types::frame>() * (depth as usize).clamp(1, FRAMES).saturating_sub(1);
    Between {
        depth,
        returned: at(offset_of!(types::thread, returned)),
        entered: at(first + offset_of!(types::frame, entered)),
        called_at: at(last + offset_of!(types::frame, sp)),
    }
}

fn zeroed<T: Copy>() -> T {
    // SAFETY: the structures of the body are made of integers and arrays of these
    unsafe { MaybeUninit::zeroed().assume_init() }
}

pub(super) fn plain<T: Copy>(bytes: &[u8]) -> T {
    let mut value = MaybeUninit::<T>::zeroed();
    let count = bytes.len().min(size_of::<T>());
    // SAFETY: as many bytes as both have, and any bytes are one, as in `zeroed`
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), count);
        value.assume_init()
    }
}

fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<T>()];
    // SAFETY: as in `zeroed`, and it was made of zeros: padding, too, is known
    unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast(), bytes.as_mut_ptr(), bytes.len()) }
    bytes
}
