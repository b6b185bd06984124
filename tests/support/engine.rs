//! Which engine the tests are about: the kernel's, or with `GPUSCOPE_ENGINE=inside` the other one.
//!
//! A test whose reason to be ignored is "needs the simulated CUDA" holds for both; one that "needs root and BPF: …" is about
//! the kernel's alone, and says why. `scripts/test.sh` runs the former with either.

use super::kernel::{TIERS, kernel_version};

pub const ENGINE: &str = "GPUSCOPE_ENGINE";

/// What gpuscope is told, where a test asks for neither.
pub fn engine() -> &'static str {
    match std::env::var(ENGINE).as_deref() {
        Ok("inside") => "inside",
        Ok("kernel") | Err(_) => "kernel",
        Ok(other) => panic!("{ENGINE}={other}: inside, or kernel"),
    }
}

/// Whether the tests are about what is seen from inside.
pub fn is_inside() -> bool {
    engine() == "inside"
}

/// The ways of attaching that this engine has on this kernel.
pub fn ways() -> Vec<&'static str> {
    let here = TIERS.iter().filter(|tier| kernel_version() >= tier.since);
    match is_inside() {
        true => vec![engine()],
        false => here.map(|tier| tier.name).collect(),
    }
}

/// Those that attach many probes at a time.
pub fn groups() -> Vec<&'static str> {
    ways().into_iter().filter(|way| *way != TIERS[2].name).collect()
}
