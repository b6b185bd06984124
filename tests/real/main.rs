//! What others made and made us download: NVIDIA's libraries, CPython, ClickHouse and Spark. Each module says which script
//! fetches it; without that nothing here runs.

#![allow(clippy::expect_used, reason = "whatever is missing fails the test")]

#[cfg(all(feature = "record", feature = "parquet"))]
mod engines;
mod glibc;
mod interpreters;
mod libraries;
mod runtime;
#[path = "../support/mod.rs"]
mod support;
