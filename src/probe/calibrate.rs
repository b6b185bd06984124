//! What one probe hit costs on this machine, measured on a function of our own.

use super::{Point, Session};
use crate::wire;
use anyhow::{Context, Result};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const CALLS: u32 = 4000;
const ROUNDS: usize = 5;

// The function that is called and probed. Its first instruction is one that the kernel emulates, as those of
// the CUDA libraries are.
std::arch::global_asm!(
    ".type gpuscope_calibration_target, @function",
    "gpuscope_calibration_target:",
    "push rbp",
    "mov rax, rdi",
    "pop rbp",
    "ret",
    ".size gpuscope_calibration_target, . - gpuscope_calibration_target",
);

unsafe extern "C" {
    safe fn gpuscope_calibration_target(value: u64) -> u64;
}

/// Nanoseconds that a counted call costs, entry and return: the median of some short rounds.
///
/// # Errors
/// The probe could not be attached.
pub fn hit_cost_ns(session: &Session, row: u32) -> Result<f64> {
    let offset = target_offset().context("failed to find the calibration function in our own file")?;
    session.set_spec(row, &wire::Spec::counting())?;
    session.add_target(std::process::id())?;
    let bare = median_ns();
    let links = session.attach(
        Path::new("/proc/self/exe"),
        &[Point {
            offset,
            row,
            returns: true,
        }],
    )?;
    let probed = median_ns();
    drop(links);
    Ok((probed - bare).max(0.0))
}

fn median_ns() -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round_ns()).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn round_ns() -> f64 {
    let started = Instant::now();
    for call in 0..CALLS {
        black_box(gpuscope_calibration_target(black_box(u64::from(call))));
    }
    started.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// The file offset of the calibration function, from our own mappings.
fn target_offset() -> Option<u64> {
    let address = gpuscope_calibration_target as *const () as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let inside = (start..u64::from_str_radix(end, 16).ok()?).contains(&address);
        let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
        inside.then_some(address - start + offset)
    })
}
