//! Functions of the kernel and tracepoints: what the running kernel calls them, what it says of their arguments, and in which
//! ways they can be hooked.
//!
//! Owns every look into kallsyms, tracefs and the kernel's type information. [`symbols`], [`mod@format`] and [`btf`] are
//! pure: any bytes yield what they describe, or an error.

pub mod btf;
#[cfg(test)]
mod btf_tests;
mod explain;
pub mod format;
pub mod listing;
pub(crate) mod lists;
pub(super) mod look;
pub mod place;
pub mod symbols;
pub(crate) mod types;
pub(crate) mod ways;

pub use explain::{Explained, Explainer};
pub use types::Types;
pub use ways::{Way, Ways};
