//! The name of a stream within its process.

use super::Call;

/// The default stream of a context.
pub const LEGACY: u64 = 0;
/// The default stream of a thread.
pub const PER_THREAD: u64 = 2;

/// See the module. Handles are names by themselves; default streams belong to a context, or to a thread in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream {
    pub stream: u64,
    pub context: u64,
    pub tid: u32,
}

impl Stream {
    /// The one that `call` goes to, or asks about.
    #[must_use]
    pub fn of(call: &Call<'_>) -> Stream {
        Stream::named(call.raw.stream, call.raw.context, call.raw.tid)
    }

    /// The one that a thread means by a handle.
    #[must_use]
    pub fn named(stream: u64, context: u64, tid: u32) -> Stream {
        let is_default = stream <= PER_THREAD;
        Stream {
            stream,
            context: if is_default { context } else { 0 },
            tid: if stream == PER_THREAD { tid } else { 0 },
        }
    }
}
