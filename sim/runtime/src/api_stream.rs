//! Streams, events and waiting.

use crate::driver::check;
use crate::entry::{api, export, own_name};

api! {
    call d fn cudaStreamCreate(place: *mut usize) { check((d.cuStreamCreate)(place, 0))?; }
    call d fn cudaStreamCreateWithFlags(place: *mut usize, flags: u32) { check((d.cuStreamCreate)(place, flags))?; }
    call d fn cudaStreamCreateWithPriority(place: *mut usize, flags: u32, priority: i32) { check((d.cuStreamCreateWithPriority)(place, flags, priority))?; }
    call d fn cudaStreamDestroy(stream: usize) { check((d.cuStreamDestroy_v2)(stream))?; }
    call d fn cudaStreamQuery / cudaStreamQuery_ptsz (stream: usize) { check((d.cuStreamQuery)(stream))?; }
    call d fn cudaStreamSynchronize / cudaStreamSynchronize_ptsz (stream: usize) { check((d.cuStreamSynchronize)(stream))?; }
    call d fn cudaStreamWaitEvent / cudaStreamWaitEvent_ptsz (stream: usize, event: usize, flags: u32) { check((d.cuStreamWaitEvent)(stream, event, flags))?; }
    call d fn cudaStreamGetFlags / cudaStreamGetFlags_ptsz (stream: usize, flags: *mut u32) { check((d.cuStreamGetFlags)(stream, flags))?; }
    call d fn cudaStreamGetPriority / cudaStreamGetPriority_ptsz (stream: usize, priority: *mut i32) { check((d.cuStreamGetPriority)(stream, priority))?; }
    call d fn cudaStreamGetId / cudaStreamGetId_ptsz (stream: usize, id: *mut u64) { check((d.cuStreamGetId)(stream, id))?; }
    call d fn cudaStreamGetDevice / cudaStreamGetDevice_ptsz (stream: usize, device: *mut i32) { check((d.cuStreamGetDevice)(stream, device))?; }
    call d fn cudaStreamBeginCapture / cudaStreamBeginCapture_ptsz (stream: usize, mode: u32) { check((d.cuStreamBeginCapture_v2)(stream, mode))?; }
    call d fn cudaStreamEndCapture / cudaStreamEndCapture_ptsz (stream: usize, graph: *mut usize) { check((d.cuStreamEndCapture)(stream, graph))?; }
    call d fn cudaStreamIsCapturing / cudaStreamIsCapturing_ptsz (stream: usize, status: *mut u32) { check((d.cuStreamIsCapturing)(stream, status))?; }
    call d fn cudaThreadExchangeStreamCaptureMode(mode: *mut u32) { check((d.cuThreadExchangeStreamCaptureMode)(mode))?; }
    call d fn cudaDeviceSynchronize() { check((d.cuCtxSynchronize_v2)(0))?; }
    call d fn cudaDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) { check((d.cuCtxGetStreamPriorityRange)(least, greatest))?; }

    call d fn cudaEventCreate(place: *mut usize) { check((d.cuEventCreate)(place, 0))?; }
    call d fn cudaEventCreateWithFlags(place: *mut usize, flags: u32) { check((d.cuEventCreate)(place, flags))?; }
    call d fn cudaEventDestroy(event: usize) { check((d.cuEventDestroy_v2)(event))?; }
    call d fn cudaEventRecord / cudaEventRecord_ptsz (event: usize, stream: usize) { check((d.cuEventRecord)(event, stream))?; }
    call d fn cudaEventRecordWithFlags / cudaEventRecordWithFlags_ptsz (event: usize, stream: usize, flags: u32) { check((d.cuEventRecordWithFlags)(event, stream, flags))?; }
    call d fn cudaEventQuery(event: usize) { check((d.cuEventQuery)(event))?; }
    call d fn cudaEventSynchronize(event: usize) { check((d.cuEventSynchronize)(event))?; }
    call d fn cudaEventElapsedTime(ms: *mut f32, start: usize, end: usize) { check((d.cuEventElapsedTime_v2)(ms, start, end))?; }
}
