//! What events mean, added up. Pure: no I/O, no kernel.

pub mod order;
pub mod summary;
pub mod window;
