//! Whether there is address space to work in: who finds none in the middle of its work is ended by its allocator, and what
//! it has seen is gone.
//!
//! Owns the limit that `ulimit -v` sets, not memory that is short for other reasons.

use crate::text::quantity::bytes;
use anyhow::{Result, bail};
use std::fs;

/// More than tracing takes at first, with rings of the usual sizes (docs/verified.md).
const TRACING_BYTES: u64 = 512 << 20;
/// More than it takes to read the command line and to say what is wrong.
const STARTING_BYTES: u64 = 16 << 20;

/// # Errors
/// `ulimit -v` leaves too little to trace.
pub(crate) fn check_tracing() -> Result<()> {
    enough(limit_bytes(), TRACING_BYTES, "to trace in")
}

/// # Errors
/// `ulimit -v` leaves too little beside the program itself for any command.
pub fn check_starting() -> Result<()> {
    enough(limit_bytes(), own_bytes() + STARTING_BYTES, "to start in")
}

fn enough(limit: Option<u64>, least: u64, purpose: &str) -> Result<()> {
    match limit {
        Some(limit) if limit < least => bail!(
            "{} of address space are too little {purpose}; {} are enough\nhint: ulimit -v unlimited",
            bytes(limit),
            bytes(TRACING_BYTES)
        ),
        _ => Ok(()),
    }
}

/// What this process has mapped, with its libraries. 0: `/proc` does not tell.
fn own_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .next()
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * page_bytes()
}

fn page_bytes() -> u64 {
    // SAFETY: asks for a number
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0)
}

/// `None`: the kernel does not tell.
fn limit_bytes() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: fills a structure of ours
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (failed == 0).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_is_named_with_its_cure() {
        let error = enough(Some(160 << 20), TRACING_BYTES, "to trace in")
            .expect_err("too little")
            .to_string();
        assert_eq!(
            error,
            "160.0 MiB of address space are too little to trace in; 512.0 MiB are enough\nhint: ulimit -v unlimited"
        );
        for limit in [Some(TRACING_BYTES), Some(libc::RLIM_INFINITY), None] {
            assert!(enough(limit, TRACING_BYTES, "to trace in").is_ok());
        }
    }

    #[test]
    fn what_this_process_has_mapped_is_known() {
        assert!(own_bytes() > 1 << 20, "{}", own_bytes());
    }
}
