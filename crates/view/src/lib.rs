//! How it looks: text, JSON lines, the summary; reports, exports and the timeline of recordings.

#![cfg_attr(
    not(feature = "parquet"),
    allow(
        dead_code,
        unused_imports,
        reason = "what reports and exports share has no caller without them"
    )
)]

#[cfg(feature = "record")]
pub mod export;
#[cfg(feature = "record")]
pub mod part;
#[cfg(feature = "record")]
pub mod paths;
#[cfg(feature = "record")]
pub mod report;
pub mod section;
pub mod sink;
#[cfg(feature = "record")]
pub mod timeline;

// What lies below is called as if it were here: where a module lies is said once.
#[cfg(feature = "record")]
use gpuscope_catalog::filter;
use gpuscope_catalog::{catalog, decode, driver};
use gpuscope_collect::elf;
use gpuscope_core::{clock, frame, text, wire};
#[cfg(feature = "record")]
use gpuscope_state::{findings, rule, steps};
use gpuscope_state::{model, record};
#[cfg(feature = "record")]
use gpuscope_store::trace;
