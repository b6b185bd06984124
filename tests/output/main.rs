//! What gpuscope writes, from made-up events: every format as a committed snapshot, and decoding for any input. And what it
//! reads: files, symbols, a simulated NVML. None of it hooks a program.
//!
//! A snapshot that changes on purpose is accepted with `INSTA_UPDATE=always cargo test --test output`.
#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod decoding;
mod devices;
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
mod reader_memory;
mod registrations;
mod summary;
#[path = "../support/mod.rs"]
mod support;
mod symbols;
mod usage;
mod work;
