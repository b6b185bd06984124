//! Whether there is address space to work in: who finds none in the middle of its work is ended by its allocator, and what
//! it has seen is gone.
//!
//! Owns the limit that `ulimit -v` sets, not memory that is short for other reasons.

use crate::text::quantity::bytes;
use anyhow::{Result, bail};

/// More than tracing takes at first, with rings of the usual sizes (docs/verified.md).
const LEAST_BYTES: u64 = 512 << 20;

/// # Errors
/// `ulimit -v` leaves too little.
pub(super) fn check_space() -> Result<()> {
    enough(limit_bytes())
}

fn enough(limit: Option<u64>) -> Result<()> {
    match limit {
        Some(limit) if limit < LEAST_BYTES => bail!(
            "{} of address space are too little to trace in; {} are enough\nhint: ulimit -v unlimited",
            bytes(limit),
            bytes(LEAST_BYTES)
        ),
        _ => Ok(()),
    }
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
        let error = enough(Some(160 << 20)).expect_err("too little").to_string();
        assert_eq!(
            error,
            "160.0 MiB of address space are too little to trace in; 512.0 MiB are enough\nhint: ulimit -v unlimited"
        );
        assert!(enough(Some(LEAST_BYTES)).is_ok() && enough(Some(libc::RLIM_INFINITY)).is_ok() && enough(None).is_ok());
    }
}
