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

/// What a counted call costs, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HitCost {
    /// Seen at entry and return.
    pub call_ns: f64,
    /// Seen at entry only.
    pub entry_ns: f64,
}

/// Measures both costs with row `row`: the medians of some short rounds.
///
/// # Errors
/// The probe could not be attached.
pub fn hit_cost(session: &Session, row: u32) -> Result<HitCost> {
    session.add_target(std::process::id())?;
    let bare = median_ns();
    let call_ns = probed_ns(session, row, true)?;
    let entry_ns = probed_ns(session, row, false)?;
    Ok(HitCost {
        call_ns: (call_ns - bare).max(0.0),
        entry_ns: (entry_ns - bare).max(0.0),
    })
}

fn probed_ns(session: &Session, row: u32, returns: bool) -> Result<f64> {
    let offset = target_offset().context("failed to find the calibration function in our own file")?;
    session.set_spec(row, &wire::Spec::counting(returns))?;
    let point = Point::entry(offset, row, returns);
    let links = session.attach(Path::new("/proc/self/exe"), &[point])?;
    let probed = median_ns();
    drop(links);
    Ok(probed)
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
