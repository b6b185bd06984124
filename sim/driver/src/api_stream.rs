//! Streams.

use crate::context::{self, current_device};
use crate::error::*;
use crate::work::Waited;
use crate::{event, pool, stream, work};

/// The greatest priority; the least is 0.
const GREATEST: i32 = -5;

unsafe fn create(place: *mut usize, flags: u32, priority: i32) -> Result<(), u32> {
    let context = context::current()?;
    require(!place.is_null() && flags < 2)?;
    let made = stream::create(context, flags, priority.clamp(GREATEST, 0));
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, made) }
}

api! {
    fn cuStreamCreate(place: *mut usize, flags: u32) { create(place, flags, 0)?; }
    fn cuStreamCreateWithPriority(place: *mut usize, flags: u32, priority: i32) { create(place, flags, priority)?; }
    fn cuStreamDestroy_v2(handle: usize) { current_device()?; stream::destroy(handle)?; }
    fn cuStreamQuery / cuStreamQuery_ptsz (handle: usize) {
        if !stream::find(handle)?.is_done() { return Err(NOT_READY); }
    }
    fn cuStreamSynchronize / cuStreamSynchronize_ptsz (handle: usize) {
        let stream = stream::find(handle)?;
        stream.synchronise()?;
        work::waited(Waited::Stream(stream.number));
        pool::settle(stream.device());
    }
    fn cuStreamWaitEvent / cuStreamWaitEvent_ptsz (handle: usize, event: usize, _flags: u32) {
        let stream = stream::find(handle)?;
        event::find(event)?.hold(stream);
    }
    fn cuStreamGetFlags / cuStreamGetFlags_ptsz (handle: usize, flags: *mut u32) { put(flags, stream::find(handle)?.flags)?; }
    fn cuStreamGetPriority / cuStreamGetPriority_ptsz (handle: usize, priority: *mut i32) { put(priority, stream::find(handle)?.priority)?; }
    fn cuStreamGetId / cuStreamGetId_ptsz (handle: usize, id: *mut u64) { put(id, stream::find(handle)?.id)?; }
    fn cuStreamGetDevice / cuStreamGetDevice_ptsz (handle: usize, device: *mut i32) { put(device, stream::find(handle)?.device())?; }
    fn cuStreamGetCtx / cuStreamGetCtx_ptsz (handle: usize, place: *mut usize) { put(place, stream::find(handle)?.context.handle())?; }
}
