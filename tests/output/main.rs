//! What gpuscope writes, from made-up events: every format as a committed snapshot, and decoding for any input.
//!
//! A snapshot that changes on purpose is accepted with `INSTA_UPDATE=always cargo test --test output`.
#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod decoding;
#[cfg(feature = "serve")]
mod display;
mod driver;
mod event;
mod lines;
mod listing;
mod malformed;
mod memory;
#[cfg(feature = "record")]
mod nasty;
mod summary;
mod usage;
mod work;
