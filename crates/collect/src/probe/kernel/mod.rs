//! Functions of the kernel and tracepoints: what the running kernel calls them, what it says of their arguments, and
//! the hooks at them.
//!
//! Owns every look into kallsyms, tracefs and the kernel's type information. [`symbols`], [`mod@format`] and [`btf`] are
//! pure: any bytes yield what they describe, or an error.

pub mod btf;
#[cfg(test)]
mod btf_tests;
mod explain;
pub mod format;
mod held;
pub mod hooks;
pub mod listing;
pub mod lists;
mod look;
pub mod place;
pub mod symbols;
pub mod types;
pub mod ways;

pub use explain::{Explained, explain};
pub use hooks::KernelHooks;
pub use types::Types;
pub use ways::{Way, Ways};
