//! Runs a target, and holds it to what it may take: memory at a time, and time.
//!
//! At the end says, beside libFuzzer's own statistics, the most that an input took.

use crate::memory::measured;
use crate::{Target, World};
use gpuscope::clock::thread_cpu;
use std::cell::Cell;
use std::sync::Once;

/// CPU time of one input, many times what any takes that is not slower than its length.
const MOST_NS: u64 = 2_000_000_000;

/// The most of anything, and how long the input was that took it.
#[derive(Clone, Copy)]
struct Most {
    value: u64,
    bytes: usize,
}

impl Most {
    const NONE: Most = Most { value: 0, bytes: 0 };
}

thread_local! {
    static SLOWEST: Cell<Most> = const { Cell::new(Most::NONE) };
    static LARGEST: Cell<Most> = const { Cell::new(Most::NONE) };
}

fn keep(most: &Cell<Most>, value: u64, bytes: usize) {
    if value > most.get().value {
        most.set(Most { value, bytes });
    }
}

/// What is read once and kept is no input's.
pub fn begin(target: &Target) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        World::shared();
        for sample in [&[][..], &[0; 512], &[1; 512]] {
            (target.run)(sample);
        }
        // SAFETY: a function that may be called at any time
        unsafe { libc::atexit(tell) };
    });
}

/// Does what `target` does with `data`.
pub fn run(target: &Target, data: &[u8]) {
    let begun = thread_cpu();
    let ((), took) = measured(|| (target.run)(data));
    let ns = (thread_cpu() - begun).as_nanos() as u64;
    keep_all(ns, took, data.len());
    let limit = target.bound.of(data.len());
    assert!(took <= limit, "{took} bytes at a time, allowed are {limit}");
    assert!(ns <= MOST_NS, "{ns} ns of CPU time for {} bytes", data.len());
}

fn keep_all(ns: u64, took: usize, bytes: usize) {
    SLOWEST.with(|most| keep(most, ns, bytes));
    LARGEST.with(|most| keep(most, took as u64, bytes));
}

extern "C" fn tell() {
    let (slowest, largest) = (SLOWEST.get(), LARGEST.get());
    eprintln!("stat::slowest_input_us: {}", slowest.value / 1000);
    eprintln!("stat::slowest_input_bytes: {}", slowest.bytes);
    eprintln!("stat::most_memory_bytes: {}", largest.value);
    eprintln!("stat::most_memory_of_bytes: {}", largest.bytes);
}
