//! Stream capture.

use crate::error::*;
use crate::{call, capture, graph, stream};

fn begin(handle: usize, mode: u32) -> Result<(), u32> {
    let stream = stream::find(handle)?;
    require(mode < 3)?;
    if handle < stream::PER_THREAD && !(handle == 0 && call::default_is_per_thread()) {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    capture::begin(stream)
}

unsafe fn end(handle: usize, place: *mut usize) -> Result<(), u32> {
    let recording = capture::end(stream::find(handle)?)?;
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, graph::create(recording)) }
}

api! {
    fn cuStreamBeginCapture_v2 / cuStreamBeginCapture_v2_ptsz (handle: usize, mode: u32) { begin(handle, mode)?; }
    fn cuStreamEndCapture / cuStreamEndCapture_ptsz (handle: usize, graph: *mut usize) { end(handle, graph)?; }
    fn cuStreamIsCapturing / cuStreamIsCapturing_ptsz (handle: usize, status: *mut u32) {
        put(status, u32::from(stream::find(handle)?.is_capturing()))?;
    }
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) { require(!mode.is_null())?; }
}
