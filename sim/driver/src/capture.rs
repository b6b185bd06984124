//! Stream capture: work that is recorded instead of run, from a stream and from those that wait
//! for events of it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::ILLEGAL_STATE;
use crate::graph::{Node, Recording};
use crate::operation::Work;
use crate::stream::Stream;

/// `CUDA_ERROR_STREAM_CAPTURE_UNMATCHED`.
const UNMATCHED: u32 = 903;

pub struct Capture {
    recording: Mutex<Recording>,
    /// The one it began in comes first.
    streams: Mutex<Vec<&'static Stream>>,
}

impl Capture {
    pub fn record(&self, work: Work) {
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        recording.nodes.push(Node::new(work));
    }

    fn take(&self, stream: &'static Stream, capture: &Arc<Capture>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.push(stream);
        stream.set_capture(Some(capture.clone()));
    }
}

pub fn begin(stream: &'static Stream) -> Result<(), u32> {
    if stream.is_capturing() {
        return Err(ILLEGAL_STATE);
    }
    let capture = Arc::new(Capture {
        recording: Mutex::default(),
        streams: Mutex::default(),
    });
    capture.take(stream, &capture);
    Ok(())
}

/// A stream that waits for an event of a capture records from now on, too.
pub fn join(capture: &Arc<Capture>, stream: &'static Stream) {
    if !stream.is_capturing() {
        capture.take(stream, capture);
    }
}

/// Ends the capture that began in `stream`, for all its streams.
pub fn end(stream: &'static Stream) -> Result<Recording, u32> {
    let capture = stream.capture().ok_or(ILLEGAL_STATE)?;
    let mut streams = capture.streams.lock().unwrap_or_else(PoisonError::into_inner);
    if !streams.first().is_some_and(|first| std::ptr::eq(*first, stream)) {
        return Err(UNMATCHED);
    }
    streams.drain(..).for_each(|stream| stream.set_capture(None));
    let mut recording = capture.recording.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut recording))
}
