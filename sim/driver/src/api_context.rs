//! Contexts.

use gpusim_common::book::How;

use crate::error::*;
use crate::work::Waited;
use crate::{context, machine, memory, pool, stream, work};

unsafe fn create(place: *mut usize, device: i32) -> Result<(), u32> {
    machine::ready()?;
    machine::device(device)?;
    let made = context::create(device);
    context::push(made)?;
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, made) }
}

fn destroy(context: usize) -> Result<(), u32> {
    context::destroy(context)?;
    memory::release_context(context, How::ContextDestroyed);
    Ok(())
}

fn release(device: i32) -> Result<(), u32> {
    if let Some(context) = context::release(device)? {
        memory::release_context(context, How::ContextReset);
        memory::release_device(device, How::ContextReset);
    }
    Ok(())
}

/// Frees all that the primary context has, which stays in use.
fn reset(device: i32) -> Result<(), u32> {
    let context = context::primary(device)?.handle();
    memory::release_context(context, How::ContextReset);
    memory::release_device(device, How::ContextReset);
    Ok(())
}

fn synchronise(context: &context::Context) {
    stream::synchronise_context(context);
    work::waited(Waited::Context(context.handle()));
    pool::settle(context.device);
}

api! {
    fn cuDevicePrimaryCtxRetain(place: *mut usize, device: i32) { put(place, context::retain(device)?)?; }
    fn cuDevicePrimaryCtxRelease_v2(device: i32) { release(device)?; }
    fn cuDevicePrimaryCtxRelease(device: i32) { release(device)?; }
    fn cuDevicePrimaryCtxReset_v2(device: i32) { reset(device)?; }
    fn cuDevicePrimaryCtxReset(device: i32) { reset(device)?; }
    fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) {
        machine::device(device)?;
        put(flags, 0)?;
        put(active, i32::from(context::is_active(device)?))?;
    }
    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, _flags: u32) { machine::device(device)?; }
    fn cuCtxCreate_v2(place: *mut usize, _flags: u32, device: i32) { create(place, device)?; }
    fn cuCtxCreate_v3(place: *mut usize, _affinity: usize, _count: i32, _flags: u32, device: i32) { create(place, device)?; }
    fn cuCtxCreate_v4(place: *mut usize, _params: usize, _flags: u32, device: i32) { create(place, device)?; }
    fn cuCtxDestroy(context: usize) { destroy(context)?; }
    fn cuCtxDestroy_v2(context: usize) { destroy(context)?; }
    fn cuCtxGetCurrent(place: *mut usize) { machine::ready()?; put(place, context::current_handle())?; }
    fn cuCtxSetCurrent(context: usize) { context::set_current(context)?; }
    fn cuCtxPushCurrent(context: usize) { context::push(context)?; }
    fn cuCtxPopCurrent(place: *mut usize) { put_if(place, context::pop()?); }
    fn cuCtxPushCurrent_v2(context: usize) { context::push(context)?; }
    fn cuCtxPopCurrent_v2(place: *mut usize) { put_if(place, context::pop()?); }
    fn cuCtxGetDevice(device: *mut i32) { put(device, context::current_device()?)?; }
    fn cuCtxGetDevice_v2(device: *mut i32, context: usize) {
        let own = context::current_device()?;
        put(device, if context == 0 { own } else { context::device_of(context)? })?;
    }
    fn cuCtxSynchronize() { synchronise(context::current()?); }
    fn cuCtxSynchronize_v2(context: usize) {
        let own = context::current()?;
        synchronise(if context == 0 { own } else { context::find(context)? });
    }
    fn cuCtxGetFlags(flags: *mut u32) { context::current_device()?; put(flags, 0)?; }
    fn cuCtxSetFlags(_flags: u32) { context::current_device()?; }
    fn cuCtxGetApiVersion(_context: usize, version: *mut u32) { put(version, 3020)?; }
    fn cuCtxGetId(context: usize, id: *mut u64) { put(id, if context == 0 { context::current()?.id } else { context::find(context)?.id })?; }
    fn cuCtxGetLimit(value: *mut usize, _limit: i32) { context::current_device()?; put(value, 8 << 20)?; }
    fn cuCtxSetLimit(_limit: i32, _value: usize) { context::current_device()?; }
    fn cuCtxGetCacheConfig(value: *mut i32) { context::current_device()?; put(value, 0)?; }
    fn cuCtxSetCacheConfig(_value: i32) { context::current_device()?; }
    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) {
        context::current_device()?;
        put_if(least, 0);
        put_if(greatest, -5);
    }
    fn cuCtxEnablePeerAccess(peer: usize, _flags: u32) { context::device_of(peer)?; }
    fn cuCtxDisablePeerAccess(peer: usize) { context::device_of(peer)?; }
}
