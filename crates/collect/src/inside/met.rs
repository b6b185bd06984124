//! What its process's memory says of a thread: whether it is in a call, or since when not.

use crate::stack::wire::Python;

/// What is known of a thread from its process's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Met {
    pub tgid: u32,
    pub tid: u32,
    /// The thread's own, as `pthread_self()` gives it.
    pub pointer: u64,
    /// Calls that it is in.
    pub depth: u32,
    /// When the last of them returned, CLOCK_MONOTONIC ns; 0: none has.
    pub returned: u64,
    /// When the outermost of those that it is in was entered.
    pub entered: u64,
    /// Where on its stack the address lies that the innermost returns to.
    pub called_at: u64,
    pub python: Option<Python>,
}
