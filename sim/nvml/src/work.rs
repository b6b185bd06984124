//! How busy the engines of a device are, and with whom: `gpu_percent`, `memory_percent`, `encoder_percent`,
//! `decoder_percent`, and lines `DEVICE work PID SM MEMORY ENCODER DECODER`, each the newest sample of its process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use gpusim_common::clock::now_ns;
use gpusim_common::shared::processes;

use crate::device::{at, memory};
use crate::usage::used;
use crate::{INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS, mig, nvml, put, state};

const SAMPLE_PERIOD_US: u32 = 167_000;

#[repr(C)]
pub struct Utilization {
    gpu: u32,
    memory: u32,
}

/// `nvmlProcessUtilizationSample_t`.
#[repr(C)]
pub struct Sample {
    pid: u32,
    time_us: u64,
    sm: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
}

/// Percent of the time since the last question that a device was given work for.
fn busy_percent(device: usize) -> u64 {
    static LAST: Mutex<BTreeMap<usize, (u64, u64)>> = Mutex::new(BTreeMap::new());
    let now = (now_ns(), processes(device).iter().map(|(_, _, busy)| busy).sum::<u64>());
    let before = LAST.lock().unwrap_or_else(PoisonError::into_inner).insert(device, now);
    let Some(before) = before.filter(|before| now.0 > before.0) else {
        return 0;
    };
    let busy = u128::from(now.1.saturating_sub(before.1));
    (busy * 100 / u128::from(now.0 - before.0)).min(100) as u64
}

/// Not for a device in MIG mode.
fn shares(device: usize) -> Result<Utilization, u32> {
    if mig::parts(device).is_some() {
        return Err(NOT_SUPPORTED);
    }
    let memory = u128::from(used(device)) * 100 / u128::from(memory().max(1));
    Ok(Utilization {
        gpu: state::number(device, "gpu_percent", busy_percent(device))? as u32,
        memory: state::number(device, "memory_percent", memory as u64)? as u32,
    })
}

fn samples(device: usize) -> Vec<Sample> {
    let time_us = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_micros() as u64);
    let sample = |line: String| {
        let words: Vec<u32> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [pid, sm, memory, encoder, decoder] = words[..] else {
            return None;
        };
        Some(Sample {
            pid,
            time_us,
            sm,
            memory,
            encoder,
            decoder,
        })
    };
    state::lines(&device.to_string(), "work")
        .into_iter()
        .filter_map(sample)
        .collect()
}

unsafe fn fill(found: Vec<Sample>, count: *mut u32, place: *mut Sample) -> u32 {
    if count.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller gives the room at `place` in `count`.
    unsafe {
        let room = count.read() as usize;
        count.write(found.len() as u32);
        if found.is_empty() {
            return NOT_FOUND;
        }
        if place.is_null() || room < found.len() {
            return INSUFFICIENT_SIZE;
        }
        found
            .into_iter()
            .enumerate()
            .for_each(|(i, sample)| place.add(i).write(sample));
    }
    SUCCESS
}

unsafe fn engine(device: usize, key: &str, percent: *mut u32, period_us: *mut u32) -> u32 {
    match state::number(device, key, 0) {
        // SAFETY: out-pointers of the caller.
        Ok(value) => match unsafe { put(percent, value as u32) } {
            // SAFETY: as above.
            SUCCESS => unsafe { put(period_us, SAMPLE_PERIOD_US) },
            code => code,
        },
        Err(code) => code,
    }
}

nvml! {
    fn nvmlDeviceGetUtilizationRates(handle: usize, place: *mut Utilization) {
        match shares(at!(handle)) { Ok(shares) => put(place, shares), Err(code) => code }
    }
    fn nvmlDeviceGetEncoderUtilization(handle: usize, percent: *mut u32, period_us: *mut u32) { engine(at!(handle), "encoder_percent", percent, period_us) }
    fn nvmlDeviceGetDecoderUtilization(handle: usize, percent: *mut u32, period_us: *mut u32) { engine(at!(handle), "decoder_percent", percent, period_us) }
    fn nvmlDeviceGetProcessUtilization(handle: usize, place: *mut Sample, count: *mut u32, seen_us: u64) {
        let device = at!(handle);
        if mig::parts(device).is_some() { return NOT_SUPPORTED; }
        let mut found = samples(device);
        found.retain(|sample| sample.time_us > seen_us);
        fill(found, count, place)
    }
}
