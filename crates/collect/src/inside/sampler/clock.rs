//! Where a thread runs: the kernel notes its stack at the ticks of a clock that goes while it is on a CPU, as far as frame
//! pointers lead.
//!
//! Owns the layout of the kernel's events, and whether time that is spent in the kernel itself is seen: who may not look there sees
//! which code the kernel fetches pages for, as for managed memory that a device had.

use crate::stack::wire::NATIVE;
use crate::wire::{u32_at, u64_at};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const PAGE: usize = 4096;
/// One for what the kernel says of its ring, and the ring.
const MAPPED: usize = 3 * PAGE;
const RING: u64 = 2 * PAGE as u64;
/// Where the newest record begins: the kernel writes each below the one before, and over the oldest.
const HEAD: usize = 1024;
/// No record is longer: what it begins with, a time, and a stack with its marks.
const LONGEST: u64 = 8 * (3 + NATIVE as u64 + 8);
/// Of a running thread, 2 ms apart: when it is looked at, the last one is of the same moment, nearly.
const PERIOD_NS: u64 = 2_000_000;

/// Of so many page faults one is noted at least: of those that take long there are few between two looks.
const FAULTS: u64 = 16;
/// And at most.
const MANY_FAULTS: u64 = 1 << 14;
/// From one look to the next so many notes are as many as are wanted: each costs the thread a walk through its stack.
const NOTES: std::ops::RangeInclusive<u64> = 6..=16;

const SOFTWARE: u32 = 1;
const OF_PAGE_FAULTS: u64 = 2;
const SET_OUTPUT: libc::c_ulong = 0x2405;
const SET_PERIOD: libc::c_ulong = 0x4008_2404;
const TIME_AND_STACK: u64 = 1 << 2 | 1 << 5;
const WITHOUT_KERNEL: u64 = 1 << 5;
const WITHOUT_HYPERVISOR: u64 = 1 << 6;
const WITHOUT_KERNELS_STACK: u64 = 1 << 21;
const OF_OUR_CLOCK: u64 = 1 << 25;
const BACKWARDS: u64 = 1 << 27;
const CLOSED_ON_EXEC: libc::c_ulong = 1 << 3;
const IS_SAMPLE: u32 = 9;
/// Words of a stack from here on are no addresses, but say whose what follows is.
const FIRST_MARK: u64 = -4095i64 as u64;

/// `struct perf_event_attr`, as far as kernels from 4.8 on have it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    tells: u64,
    format: u64,
    flags: u64,
    wake: u32,
    breakpoint: u32,
    breakpoint_at: [u64; 3],
    registers: u64,
    stack: u32,
    clock: u32,
    more_registers: u64,
    aside: u32,
    longest: u16,
    pad: u16,
}

/// Why there is no such clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// The thread is gone.
    Gone,
    /// In words.
    Because(String),
}

/// Page faults of a thread, noted in the ring of its clock: of so many one.
struct Faults {
    event: OwnedFd,
    period: u64,
}

impl Faults {
    /// `None`: this kernel does not note them.
    fn into_ring_of(clock: &OwnedFd, tid: u32) -> Option<Faults> {
        let event = open(tid, Wanted::faults()).ok()?;
        // SAFETY: both are ours, and nothing is passed but their numbers
        let set = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, clock.as_raw_fd()) };
        let period = FAULTS;
        (set == 0).then_some(Faults { event, period })
    }

    /// Goes by how many notes came since the last look.
    fn pace(&mut self, notes: u64) {
        let wanted = paced(self.period, notes);
        if wanted != self.period {
            self.period = wanted;
            // SAFETY: the kernel reads a number of ours; where it refuses, the period stays as it is
            unsafe { libc::ioctl(self.event.as_raw_fd(), SET_PERIOD, &raw const wanted) };
        }
    }
}

fn paced(period: u64, notes: u64) -> u64 {
    match notes {
        few if few < *NOTES.start() => (period / 2).max(FAULTS),
        many if many > *NOTES.end() => (period * 2).min(MANY_FAULTS),
        _ => period,
    }
}

/// The clock of one thread; and the newest stack that it has noted.
pub(super) struct Clock {
    _event: OwnedFd,
    /// Where the clock stands still while the kernel fetches pages.
    faults: Option<Faults>,
    at: NonNull<u8>,
    /// Where the newest record began at the last look.
    head: u64,
    newest: Option<(u64, Vec<u64>)>,
}

// SAFETY: the mapping is the kernel's and ours alone, wherever this is
unsafe impl Send for Clock {}

impl Clock {
    /// # Errors
    /// The thread is gone, or this user may not have it.
    pub(super) fn start(tid: u32) -> Result<Clock, Refused> {
        // who may not look into the kernel may yet look at its own programs
        let (event, with_kernel) = match open(tid, Wanted::clock(0)) {
            Ok(event) => (event, true),
            Err(_) => (
                open(tid, Wanted::clock(WITHOUT_KERNEL)).map_err(|error| refusal(&error))?,
                false,
            ),
        };
        // SAFETY: a new mapping of the event's own pages, wherever there is room
        let at = unsafe {
            // whoever could write would have to say what is read, or nothing new came
            libc::mmap(
                std::ptr::null_mut(),
                MAPPED,
                libc::PROT_READ,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        let at = NonNull::new(at.cast::<u8>()).filter(|_| at != libc::MAP_FAILED);
        let at = at.ok_or_else(|| refusal(&io::Error::last_os_error()))?;
        let faults = match with_kernel {
            true => None,
            false => Faults::into_ring_of(&event, tid),
        };
        Ok(Clock {
            _event: event,
            faults,
            at,
            head: 0,
            newest: None,
        })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the first page, which lives as long as `self`
        unsafe { AtomicU64::from_ptr(self.at.add(offset).as_ptr().cast()) }
    }

    fn bytes(&self, position: u64, count: usize) -> Vec<u8> {
        let byte = |index: usize| {
            let at = (position.wrapping_add(index as u64) % RING) as usize;
            // SAFETY: within the ring, which follows the first page
            unsafe { self.at.add(PAGE + at).as_ptr().read_volatile() }
        };
        (0..count).map(byte).collect()
    }

    /// When the thread ran last, CLOCK_MONOTONIC ns, and its stack then.
    pub(super) fn newest(&mut self) -> Option<&(u64, Vec<u64>)> {
        let head = self.head();
        let bytes = self.bytes(head, LONGEST as usize);
        let is_whole = head.wrapping_sub(self.head()) <= RING - LONGEST;
        let is_sample = u32_at(&bytes, 0) == IS_SAMPLE;
        if head != 0 && is_whole && is_sample {
            self.newest = Some(stack_of(&bytes[8..]));
        }
        let one = u64::from(u16::from_le_bytes([bytes[6], bytes[7]])).max(8);
        let notes = self.head.wrapping_sub(head) / one;
        self.head = head;
        self.faults.iter_mut().for_each(|faults| faults.pace(notes));
        self.newest.as_ref()
    }

    fn head(&self) -> u64 {
        let head = self.word(HEAD).load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        head
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which nothing is used any more
        unsafe {
            libc::munmap(self.at.as_ptr().cast(), MAPPED);
        }
    }
}

/// Time, number of words, words.
fn stack_of(sample: &[u8]) -> (u64, Vec<u64>) {
    let count = (u64_at(sample, 8) as usize).min(sample.len() / 8);
    let words = (0..count).map(|index| u64_at(sample, 16 + 8 * index));
    let addresses = words.filter(|word| *word != 0 && *word < FIRST_MARK);
    (u64_at(sample, 0), addresses.take(NATIVE).collect())
}

impl Wanted {
    fn clock(flags: u64) -> Wanted {
        Wanted {
            kind: SOFTWARE,
            size: size_of::<Wanted>() as u32,
            period: PERIOD_NS,
            tells: TIME_AND_STACK,
            flags: flags | WITHOUT_HYPERVISOR | WITHOUT_KERNELS_STACK | OF_OUR_CLOCK | BACKWARDS,
            clock: libc::CLOCK_MONOTONIC as u32,
            longest: NATIVE as u16,
            ..Wanted::default()
        }
    }

    fn faults() -> Wanted {
        Wanted {
            config: OF_PAGE_FAULTS,
            period: FAULTS,
            ..Wanted::clock(WITHOUT_KERNEL)
        }
    }
}

fn open(tid: u32, wanted: Wanted) -> io::Result<OwnedFd> {
    let (any_cpu, no_group) = (-1, -1);
    // SAFETY: the kernel reads `wanted`, which says how long it is, and keeps nothing of it
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const wanted,
            tid,
            any_cpu,
            no_group,
            CLOSED_ON_EXEC,
        )
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened for us just now
    Ok(unsafe { OwnedFd::from_raw_fd(event as i32) })
}

fn refusal(error: &io::Error) -> Refused {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let level = level.ok().and_then(|text| text.trim().parse::<i32>().ok());
    match (error.raw_os_error(), level) {
        (Some(libc::ESRCH), _) => Refused::Gone,
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => Refused::Because(format!(
            "kernel.perf_event_paranoid is {level}; hint: sysctl kernel.perf_event_paranoid=2"
        )),
        (Some(libc::EACCES | libc::EPERM), _) => Refused::Because(
            "perf_event_open is forbidden, by the container's seccomp profile or a security module; \
             hint: a profile that allows perf_event_open"
                .to_owned(),
        ),
        (Some(libc::ENOSYS), _) => Refused::Because("this kernel has no perf events".to_owned()),
        _ => Refused::Because(format!(
            "perf_event_open: {error}; hint: sysctl kernel.perf_event_mlock_kb"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_read_without_marks_and_within_its_bounds() {
        let words = [7, 3, FIRST_MARK, 0x1000, 0x2000];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        assert_eq!(stack_of(&bytes), (7, vec![0x1000, 0x2000]));
        let lies: Vec<u8> = [7, u64::MAX, 0x1000].into_iter().flat_map(u64::to_ne_bytes).collect();
        assert_eq!(stack_of(&lies), (7, vec![0x1000]));
        assert_eq!(stack_of(&[]), (0, Vec::new()));
    }

    #[test]
    fn of_many_page_faults_fewer_are_noted_until_few_come() {
        let mut period = FAULTS;
        for faults in [5_000; 9] {
            period = paced(period, faults / period);
        }
        assert!(NOTES.contains(&(5_000 / period)), "{period}");
        assert_eq!(paced(MANY_FAULTS, u64::MAX), MANY_FAULTS);
        for _ in 0..20 {
            period = paced(period, 0);
        }
        assert_eq!(period, FAULTS);
    }

    #[test]
    fn what_is_asked_for_is_as_long_as_the_kernel_expects() {
        assert_eq!(size_of::<Wanted>(), 112);
    }
}
