//! What names a stream.

use super::Call;
use crate::wire::PER_THREAD;

/// Another word for stream 0.
const LEGACY: u64 = 1;

/// A stream of one process. Handles name streams by themselves; a default stream is one of a context, or of a thread
/// in one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamName {
    /// 0: the default one of `context`, 2: that of `tid`.
    pub stream: u64,
    /// Of a default stream, else 0.
    pub context: u64,
    /// Of a thread's default stream, else 0.
    pub tid: u32,
}

impl StreamName {
    /// The stream that a call is about; where it names none, the default one of its context.
    #[must_use]
    pub(crate) fn of(call: &Call<'_>) -> StreamName {
        StreamName::named(call.raw.stream, call.raw.context, call.raw.tid)
    }

    /// The stream that a thread means by a handle.
    #[must_use]
    pub fn named(stream: u64, context: u64, tid: u32) -> StreamName {
        match stream {
            0 | LEGACY => StreamName {
                stream: 0,
                context,
                tid: 0,
            },
            PER_THREAD => StreamName { stream, context, tid },
            _ => StreamName {
                stream,
                ..StreamName::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::work::sample::{decoded, raw};

    fn named(stream: u64, context: u64, tid: u32) -> StreamName {
        let mut raw = raw("cuStreamSynchronize", &[]);
        (raw.stream, raw.context, raw.tid) = (stream, context, tid);
        StreamName::of(&decoded(&raw))
    }

    #[test]
    fn a_handle_names_its_stream_in_all_threads_and_contexts() {
        assert_eq!(named(0x5000, 1, 7), named(0x5000, 2, 8));
        assert_ne!(named(0x5000, 1, 7), named(0x5001, 1, 7));
    }

    #[test]
    fn default_streams_are_those_of_a_context_or_of_a_thread_in_it() {
        assert_eq!(named(0, 1, 7), named(1, 1, 8), "1 is another word for it");
        assert_ne!(named(0, 1, 7), named(0, 2, 7));
        assert_ne!(named(2, 1, 7), named(2, 1, 8));
        assert_ne!(named(2, 1, 7), named(2, 2, 7));
    }
}
