//! The calls the scenarios make, with Rust's types.

use std::ffi::c_void;

use crate::calls::{self, Call, Dim3, HostFunction};
use crate::counts;

pub const HOST_TO_DEVICE: u32 = 1;
pub const DEVICE_TO_HOST: u32 = 2;
pub const DEVICE_TO_DEVICE: u32 = 3;
/// Kernels registered before main.
pub const KERNELS: u32 = 8;

unsafe extern "C" {
    fn cudaGetLastError() -> u32;
    fn gpusim_launch(kernel: u32, grid: Dim3, block: Dim3, smem: usize, stream: u64, args: *mut *mut c_void) -> u32;
    fn gpusim_flush_ledgers();
    fn gpusim_longjmp(stream: u64, times: u32) -> u32;
    fn gpusim_thread_exit(times: u32) -> u32;
}

pub(crate) fn ok<T>(code: u32, value: T) -> Result<T, u32> {
    if code == 0 { Ok(value) } else { Err(code) }
}

macro_rules! made {
    ($call:ident($($arg:expr),*)) => {{
        let mut place = 0;
        // SAFETY: an out-pointer to a local; the rest are numbers the runtime checks.
        let code = unsafe { calls::$call(&mut place $(, $arg)*) };
        ok(code, place)
    }};
}

pub(crate) use made;

macro_rules! done {
    ($call:ident($($arg:expr),*)) => {
        // SAFETY: numbers, which the runtime checks.
        ok(unsafe { calls::$call($($arg),*) }, ())
    };
}

pub(crate) use done;

pub fn malloc(size: usize) -> Result<u64, u32> {
    made!(cudaMalloc(size))
}
pub fn free(address: u64) -> Result<(), u32> {
    done!(cudaFree(address))
}
pub fn malloc_managed(size: usize) -> Result<u64, u32> {
    made!(cudaMallocManaged(size, 1))
}
pub fn malloc_host(size: usize) -> Result<u64, u32> {
    made!(cudaMallocHost(size))
}
pub fn free_host(address: u64) -> Result<(), u32> {
    done!(cudaFreeHost(address))
}
pub fn host_register(memory: &[u8]) -> Result<(), u32> {
    done!(cudaHostRegister(memory.as_ptr() as u64, memory.len(), 0))
}
pub fn host_unregister(address: u64) -> Result<(), u32> {
    done!(cudaHostUnregister(address))
}
pub fn malloc_async(size: usize, stream: u64) -> Result<u64, u32> {
    made!(cudaMallocAsync(size, stream))
}
pub fn free_async(address: u64, stream: u64) -> Result<(), u32> {
    done!(cudaFreeAsync(address, stream))
}
pub fn memset(dst: u64, count: usize) -> Result<(), u32> {
    done!(cudaMemset(dst, 0, count))
}
pub fn memset_async(dst: u64, count: usize, stream: u64) -> Result<(), u32> {
    done!(cudaMemsetAsync(dst, 0, count, stream))
}
/// To device 0.
pub fn prefetch(address: u64, size: usize, stream: u64) -> Result<(), u32> {
    done!(cudaMemPrefetchAsync(address, size, 1, 0, stream))
}
pub fn get_device() -> Result<i32, u32> {
    made!(cudaGetDevice())
}
pub fn set_device(device: i32) -> Result<(), u32> {
    done!(cudaSetDevice(device))
}
pub fn device_count() -> Result<i32, u32> {
    made!(cudaGetDeviceCount())
}
pub fn synchronize() -> Result<(), u32> {
    done!(cudaDeviceSynchronize())
}
pub fn stream() -> Result<u64, u32> {
    made!(cudaStreamCreateWithFlags(1))
}
pub fn stream_destroy(stream: u64) -> Result<(), u32> {
    done!(cudaStreamDestroy(stream))
}
pub fn stream_query(stream: u64) -> Result<(), u32> {
    done!(cudaStreamQuery(stream))
}
pub fn stream_synchronize(stream: u64) -> Result<(), u32> {
    done!(cudaStreamSynchronize(stream))
}
pub fn stream_wait(stream: u64, event: u64) -> Result<(), u32> {
    done!(cudaStreamWaitEvent(stream, event, 0))
}
pub fn begin_capture(stream: u64) -> Result<(), u32> {
    done!(cudaStreamBeginCapture(stream, 0))
}
pub fn event() -> Result<u64, u32> {
    made!(cudaEventCreateWithFlags(0))
}
pub fn event_destroy(event: u64) -> Result<(), u32> {
    done!(cudaEventDestroy(event))
}
pub fn event_record(event: u64, stream: u64) -> Result<(), u32> {
    done!(cudaEventRecord(event, stream))
}
pub fn event_synchronize(event: u64) -> Result<(), u32> {
    done!(cudaEventSynchronize(event))
}
pub fn graph_instantiate(graph: u64) -> Result<u64, u32> {
    made!(cudaGraphInstantiate(graph, 0))
}
pub fn graph_destroy(graph: u64) -> Result<(), u32> {
    done!(cudaGraphDestroy(graph))
}
pub fn graph_exec_destroy(graph: u64) -> Result<(), u32> {
    done!(cudaGraphExecDestroy(graph))
}
pub fn map_resources() -> Result<(), u32> {
    done!(cudaGraphicsMapResources(0, 0, 0))
}
pub fn set_attribute_of(function: u64) -> Result<(), u32> {
    done!(cudaFuncSetAttribute(function, 8, 0))
}

pub fn last_error() -> u32 {
    counts::add(Call::cudaGetLastError, 1);
    // SAFETY: takes nothing. Its answer is about another call, so it is no error of its own.
    unsafe { cudaGetLastError() }
}

pub fn memory_info() -> Result<(usize, usize), u32> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: out-pointers to locals.
    ok(unsafe { calls::cudaMemGetInfo(&mut free, &mut total) }, (free, total))
}

pub fn elapsed_ms(start: u64, end: u64) -> Result<f32, u32> {
    let mut ms = 0.0;
    // SAFETY: an out-pointer to a local.
    ok(unsafe { calls::cudaEventElapsedTime(&mut ms, start, end) }, ms)
}

pub fn end_capture(stream: u64) -> Result<u64, u32> {
    let mut graph = 0;
    // SAFETY: an out-pointer to a local.
    ok(unsafe { calls::cudaStreamEndCapture(stream, &mut graph) }, graph)
}

/// Launches a graph of `kernels` kernels.
pub fn graph_launch(graph: u64, stream: u64, kernels: u64) -> Result<(), u32> {
    let result = done!(cudaGraphLaunch(graph, stream));
    counts::add_launches(if result.is_ok() { kernels } else { 0 });
    result
}

pub fn to_device(dst: u64, src: &[u8]) -> Result<(), u32> {
    // SAFETY: `src` is read only, and the runtime checks `dst`.
    ok(
        unsafe { calls::cudaMemcpy(dst, src.as_ptr() as u64, src.len(), HOST_TO_DEVICE) },
        (),
    )
}

pub fn to_host(dst: &mut [u8], src: u64) -> Result<(), u32> {
    // SAFETY: `dst` is ours to write, and the runtime checks `src`.
    ok(
        unsafe { calls::cudaMemcpy(dst.as_mut_ptr() as u64, src, dst.len(), DEVICE_TO_HOST) },
        (),
    )
}

pub fn between(dst: u64, src: u64, size: usize) -> Result<(), u32> {
    done!(cudaMemcpy(dst, src, size, DEVICE_TO_DEVICE))
}

/// A copy whose arguments are wrong on purpose, in ways the runtime finds before using them.
pub fn wrong_copy(dst: u64, src: u64, size: usize, kind: u32) -> Result<(), u32> {
    done!(cudaMemcpy(dst, src, size, kind))
}

/// Copies between the device and pinned memory.
pub fn copy_async(dst: u64, src: u64, size: usize, kind: u32, stream: u64) -> Result<(), u32> {
    done!(cudaMemcpyAsync(dst, src, size, kind, stream))
}

/// Rows into pitched memory, which is freed again.
pub fn pitched(width: usize, height: usize) -> Result<(), u32> {
    let (mut address, mut pitch) = (0, 0);
    // SAFETY: out-pointers to locals.
    ok(
        unsafe { calls::cudaMallocPitch(&mut address, &mut pitch, width, height) },
        (),
    )?;
    let rows = vec![0u8; width * height];
    // SAFETY: `rows` has all that is read.
    ok(
        unsafe {
            calls::cudaMemcpy2D(
                address,
                pitch,
                rows.as_ptr() as u64,
                width,
                width,
                height,
                HOST_TO_DEVICE,
            )
        },
        (),
    )?;
    free(address)
}

/// kernel<<<(blocks), (threads), 0, stream>>>(), recorded rather than run if `captured`.
pub fn launch_as(kernel: u32, blocks: u32, threads: u32, stream: u64, captured: bool) -> Result<(), u32> {
    let kernel = kernel % KERNELS;
    counts::add(Call::__cudaPushCallConfiguration, 1);
    counts::add(Call::__cudaPopCallConfiguration, 1);
    counts::add(Call::cudaLaunchKernel, 1);
    if kernel % 2 == 1 {
        // Compiled as for CUDA 13: `__cudaLaunchKernel` continues in `cudaLaunchKernel`.
        counts::add(Call::__cudaGetKernel, 1);
        counts::add(Call::__cudaLaunchKernel, 1);
    }
    let (mut size, mut data) = (1024i32, 0u64);
    let mut args = [(&raw mut data).cast(), (&raw mut size).cast()];
    // SAFETY: `kernel` is one of the stubs, and simulated kernels read no arguments.
    let code = unsafe {
        gpusim_launch(
            kernel,
            Dim3(blocks, 1, 1),
            Dim3(threads, 1, 1),
            0,
            stream,
            args.as_mut_ptr(),
        )
    };
    counts::result("cudaLaunchKernel", code);
    counts::add_launches(u64::from(code == 0 && !captured));
    ok(code, ())
}

pub fn launch(kernel: u32, blocks: u32, threads: u32, stream: u64) -> Result<(), u32> {
    launch_as(kernel, blocks, threads, stream, false)
}

/// # Safety
/// `function` may be called with `data`.
pub unsafe fn host_function(stream: u64, function: HostFunction, data: *mut c_void) -> Result<(), u32> {
    // SAFETY: by this function's contract.
    ok(unsafe { calls::cudaLaunchHostFunc(stream, function, data) }, ())
}

/// Queries `stream` `times` times without counting each: the caller counts once at the end.
#[inline]
pub fn query_uncounted(stream: u64, times: u64) {
    for _ in 0..times {
        // SAFETY: a handle, which the runtime checks.
        unsafe { calls::raw::cudaStreamQuery(stream) };
    }
}

pub fn count_queries(times: u64) {
    counts::add(Call::cudaStreamQuery, times);
}

pub fn longjmp(stream: u64, times: u32) -> u32 {
    counts::add(Call::cudaLaunchHostFunc, u64::from(times));
    // SAFETY: the jumps start and end in that function; what they skip owns nothing.
    unsafe { gpusim_longjmp(stream, times) }
}

pub fn thread_exit(times: u32) -> u32 {
    counts::add(Call::cudaLaunchHostFunc, u64::from(times));
    // SAFETY: the threads are that function's own.
    unsafe { gpusim_thread_exit(times) }
}

/// Writes the ledgers of the simulated libraries, if that is what is linked.
pub fn flush_ledgers() {
    // SAFETY: takes nothing.
    unsafe { gpusim_flush_ledgers() };
}

/// Counts what the C part called before `main`.
pub fn count_registration() {
    counts::add(Call::__cudaRegisterFatBinary, 1);
    counts::add(Call::__cudaRegisterFunction, u64::from(KERNELS));
    counts::add(Call::__cudaRegisterFatBinaryEnd, 1);
}

/// Counts what the C part will call when this process exits.
pub fn count_exit() {
    counts::add(Call::__cudaUnregisterFatBinary, 1);
}
