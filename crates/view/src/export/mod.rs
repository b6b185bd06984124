//! A trace in other formats, live or from a recording: one format per file.
//!
//! Each is an [`Encoder`](crate::record::Encoder), of a run or of its recording, which become the same file; [`writing`] has the
//! bytes of a recording go somewhere. What is a slice, on which track, with which
//! arrows is said once, in [`scene`]; [`chrome`] and [`perfetto`] only draw it.

pub mod chrome;
pub mod csv;
mod nest;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod paths;
pub mod perfetto;
pub(crate) mod scene;
mod sides;
mod sums;
mod waits;
pub(crate) mod writing;

#[cfg(test)]
pub(crate) mod sample;

use std::collections::HashMap;

pub use writing::{Writing, Written};

/// Asked several times for each row; what comes from the traced side cannot foresee where it lies in it.
type Map<K, V> = HashMap<K, V, ahash::RandomState>;
