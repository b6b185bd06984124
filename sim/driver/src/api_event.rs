//! Events.

use crate::context::{self, current_device};
use crate::error::*;
use crate::work::Waited;
use crate::{event, pool, stream, work};

fn record(event: usize, stream: usize) -> Result<(), u32> {
    current_device()?;
    event::find(event)?.record(stream::find(stream)?);
    Ok(())
}

unsafe fn elapsed(ms: *mut f32, start: usize, end: usize) -> Result<(), u32> {
    current_device()?;
    let (elapsed, span) = event::elapsed(start, end)?;
    work::elapsed(elapsed, (start, end), span);
    // SAFETY: an out-pointer of the caller.
    unsafe { put(ms, elapsed) }
}

api! {
    fn cuEventCreate(place: *mut usize, flags: u32) {
        current_device()?;
        require(!place.is_null() && flags < 8)?;
        put(place, event::create(flags))?;
    }
    fn cuEventDestroy_v2(handle: usize) { current_device()?; event::destroy(handle)?; }
    fn cuEventRecord / cuEventRecord_ptsz (event: usize, stream: usize) { record(event, stream)?; }
    fn cuEventRecordWithFlags / cuEventRecordWithFlags_ptsz (event: usize, stream: usize, _flags: u32) { record(event, stream)?; }
    fn cuEventQuery(handle: usize) {
        current_device()?;
        if !event::find(handle)?.is_done()? { return Err(NOT_READY); }
    }
    fn cuEventSynchronize(handle: usize) {
        let context = context::current()?;
        event::find(handle)?.synchronise()?;
        work::waited(Waited::Event(handle));
        pool::settle(context.device);
    }
    fn cuEventElapsedTime(ms: *mut f32, start: usize, end: usize) { elapsed(ms, start, end)?; }
    fn cuEventElapsedTime_v2(ms: *mut f32, start: usize, end: usize) { elapsed(ms, start, end)?; }
}
