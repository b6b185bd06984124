//! The fuzz program: one target, which `FUZZ_TARGET` names. Without it, prints what targets there are.
#![no_main]

use gpuscope_fuzz::{TARGETS, Target, watch};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| {
        // whoever runs all of them wants to know how long their inputs may be
        for target in TARGETS {
            println!("{} {}", target.name, target.longest);
        }
        std::process::exit(if name.is_empty() { 0 } else { 2 })
    })
});

fuzz_target!(
    init: watch::begin(*TARGET),
    |data: &[u8]| watch::run(*TARGET, data)
);
