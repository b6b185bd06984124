//! What gpuscope shares with the library that CUDA loads: `activity.h` in Rust.

mod generated;

pub use generated::*;
