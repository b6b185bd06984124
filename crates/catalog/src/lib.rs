//! What functions there are, what is copied of their calls, and what the copied words mean. Pure.

pub mod capture;
pub mod catalog;
pub mod decode;
pub mod driver;
pub mod filter;

// What lies below is called as if it were here: where a module lies is said once.
use gpuscope_core::{text, wire};
