//! Recordings and what is made of them: reports, pages, exports, the timeline.

#![allow(clippy::expect_used, reason = "whatever fails here fails the test")]

#[cfg(all(feature = "record", feature = "parquet"))]
mod export;
mod reading_rights;
mod recording_size;
mod recordings;
mod report;
#[path = "../support/mod.rs"]
mod support;
