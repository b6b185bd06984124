//! Who asks the kernel, files, other processes and NVML. Only `probe` names libbpf; `inside` is the engine that needs no kernel's help.

pub mod activity;
pub mod confine;
pub mod device;
pub mod discover;
pub mod elf;
pub mod engine;
pub mod foreign;
pub mod inside;
pub mod owner;
pub mod probe;
mod processor;
#[cfg(feature = "serve")]
pub mod reserved;
pub mod stack;

// What lies below is called as if it were here: where a module lies is said once.
use gpuscope_catalog::{catalog, driver, filter};
use gpuscope_core::{clock, frame, output, refusal, text, user, wire};
