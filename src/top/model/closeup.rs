//! What is known of one process beyond its samples, which would be too much of all: by function, by thread, by allocation.

use super::count::Count;
use serde::Serialize;

/// What is known of one process beyond its samples, which would be too much of all.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Closeup {
    pub pid: u32,
    /// Most time first.
    pub functions: Vec<Function>,
    /// The longest first.
    pub(crate) in_progress: Vec<InProgress>,
    /// Why calls in progress are not seen of all threads.
    pub(crate) in_progress_unseen: Option<String>,
    /// Most bytes first.
    pub allocations: Vec<Allocations>,
    /// Most bytes first; `None`: nobody wants them one by one.
    pub(crate) single: Option<Vec<Single>>,
    /// As old, and smaller than those.
    pub(crate) single_left_out: u64,
}

/// Calls of one function.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Function {
    pub layer: String,
    pub name: String,
    pub calls: Count,
    pub errors: u64,
    /// `None`: its return is not hooked.
    pub seconds: Option<f64>,
}

/// A call that has not returned.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct InProgress {
    pub tid: u32,
    /// Name of its thread.
    pub thread: String,
    /// The outermost first.
    pub functions: Vec<String>,
    /// Of the outermost.
    pub seconds: f64,
}

/// One allocation that is held.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Single {
    /// Of an array its handle; `None`: memory without a mapping.
    pub address: Option<String>,
    pub bytes: u64,
    pub age_seconds: f64,
    pub function: String,
    /// The line that asked for it; `None`: its stack was not taken.
    #[serde(rename = "where")]
    pub place: Option<String>,
    pub family: String,
    pub device: Option<i16>,
}

/// Allocations that are held, by call site and the function that was asked for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Allocations {
    pub function: String,
    /// The line that asked for them; `None`: stacks were not taken.
    #[serde(rename = "where")]
    pub place: Option<String>,
    pub family: String,
    /// As the program numbers it; `None`: the host's, or not known.
    pub device: Option<i16>,
    pub bytes: u64,
    pub count: u64,
    pub(crate) oldest_seconds: f64,
    pub(crate) newest_seconds: f64,
}
