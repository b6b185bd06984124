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
    pub in_progress: Vec<InProgress>,
    /// Why calls in progress are not seen of all threads.
    pub in_progress_unseen: Option<String>,
    /// Most bytes first.
    pub allocations: Vec<Allocations>,
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

/// Allocations that are held, by the function that asked for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Allocations {
    pub function: String,
    pub family: String,
    /// As the program numbers it; `None`: the host's, or not known.
    pub device: Option<i16>,
    pub bytes: u64,
    pub count: u64,
    pub oldest_seconds: f64,
    pub newest_seconds: f64,
}
