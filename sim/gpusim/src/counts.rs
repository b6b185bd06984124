//! The program's own count of its calls, printed as the last line.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::calls::{Call, NAMES};

static CALLS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];
static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static ERRORS: Mutex<BTreeMap<(&str, u32), u64>> = Mutex::new(BTreeMap::new());
static DRIVER_CALLS: Mutex<BTreeMap<&str, u64>> = Mutex::new(BTreeMap::new());

const NOT_READY: u32 = 600;

pub fn add(call: Call, times: u64) {
    CALLS[call as usize].fetch_add(times, Relaxed);
}

pub fn add_launches(kernels: u64) {
    LAUNCHES.fetch_add(kernels, Relaxed);
}

/// Notes how a call ended; a stream that is not ready yet is no error.
pub fn result(name: &'static str, code: u32) {
    if code != 0 && code != NOT_READY {
        let mut errors = ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
        *errors.entry((name, code)).or_default() += 1;
    }
}

pub fn add_driver(name: &'static str) {
    let mut calls = DRIVER_CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    *calls.entry(name).or_default() += 1;
}

/// Forgets everything, in a child that was forked.
pub fn reset() {
    CALLS.iter().for_each(|n| n.store(0, Relaxed));
    LAUNCHES.store(0, Relaxed);
    ERRORS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    DRIVER_CALLS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Prints the counts of this process and forgets them.
pub fn print(scenario: &str) {
    let calls: Vec<String> = NAMES
        .iter()
        .zip(&CALLS)
        .map(|(name, n)| (name, n.load(Relaxed)))
        .filter(|(_, n)| *n != 0)
        .map(|(name, n)| format!("\"{name}\":{n}"))
        .collect();
    let mut errors: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((name, code), n) in ERRORS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        errors.entry(name).or_default().push(format!("\"{code}\":{n}"));
    }
    let errors: Vec<String> = errors
        .iter()
        .map(|(name, codes)| format!("\"{name}\":{{{}}}", codes.join(",")))
        .collect();
    let driver = DRIVER_CALLS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let driver: Vec<String> = driver.iter().map(|(name, n)| format!("\"{name}\":{n}")).collect();
    print_line(format!(
        "GPUSIM {{\"scenario\":\"{scenario}\",\"pid\":{},\"calls\":{{{}}},\"errors\":{{{}}},\"driver_calls\":{{{}}},\"launches\":{}}}",
        std::process::id(),
        calls.join(","),
        errors.join(","),
        driver.join(","),
        LAUNCHES.load(Relaxed),
    ));
    reset();
}

/// Prints a line in one piece, as parents and children print to one place.
pub fn print_line(line: String) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all((line + "\n").as_bytes());
    let _ = out.flush();
}
