//! The runtime functions this program calls, each counted.

#![allow(non_camel_case_types, non_snake_case)]

use std::ffi::c_void;

use crate::counts;

pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dim3(pub u32, pub u32, pub u32);

/// `cudaIpcMemHandle_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct IpcHandle(pub [u64; 8]);

/// `cudaExtent`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent(pub usize, pub usize, pub usize);

macro_rules! counted {
    ($($name:ident($($arg:ident: $ty:ty),*);)* ; $($uncounted:ident)*) => {
        /// A function by its place in [`NAMES`].
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub enum Call { $($name,)* $($uncounted,)* }

        /// The functions counted, by name.
        pub const NAMES: [&str; { [$(stringify!($name),)* $(stringify!($uncounted),)*].len() }] =
            [$(stringify!($name),)* $(stringify!($uncounted),)*];

        pub mod raw {
            use super::{Extent, HostFunction, IpcHandle, c_void};
            unsafe extern "C" { $(pub fn $name($($arg: $ty),*) -> u32;)* }
        }

        $(
            /// The CUDA function of this name, counted.
            ///
            /// # Safety
            /// That of the CUDA function.
            pub unsafe fn $name($($arg: $ty),*) -> u32 {
                counts::add(Call::$name, 1);
                // SAFETY: by this function's contract.
                let code = unsafe { raw::$name($($arg),*) };
                counts::result(stringify!($name), code);
                code
            }
        )*
    };
}

counted! {
    cudaMalloc(place: *mut u64, size: usize);
    cudaFree(address: u64);
    cudaMallocManaged(place: *mut u64, size: usize, flags: u32);
    cudaMallocHost(place: *mut u64, size: usize);
    cudaFreeHost(address: u64);
    cudaHostRegister(address: u64, size: usize, flags: u32);
    cudaHostUnregister(address: u64);
    cudaMallocAsync(place: *mut u64, size: usize, stream: u64);
    cudaFreeAsync(address: u64, stream: u64);
    cudaMemcpy(dst: u64, src: u64, size: usize, kind: u32);
    cudaMemcpyAsync(dst: u64, src: u64, size: usize, kind: u32, stream: u64);
    cudaMemcpy2D(dst: u64, dpitch: usize, src: u64, spitch: usize, width: usize, height: usize, kind: u32);
    cudaMallocPitch(place: *mut u64, pitch: *mut usize, width: usize, height: usize);
    cudaMemset(dst: u64, value: i32, count: usize);
    cudaMemsetAsync(dst: u64, value: i32, count: usize, stream: u64);
    cudaMemPrefetchAsync(address: u64, size: usize, location: u64, flags: u32, stream: u64);
    cudaMemGetInfo(free: *mut usize, total: *mut usize);
    cudaGetDevice(device: *mut i32);
    cudaSetDevice(device: i32);
    cudaGetDeviceCount(count: *mut i32);
    cudaDeviceSynchronize();
    cudaStreamCreateWithFlags(place: *mut u64, flags: u32);
    cudaStreamDestroy(stream: u64);
    cudaStreamQuery(stream: u64);
    cudaStreamSynchronize(stream: u64);
    cudaStreamWaitEvent(stream: u64, event: u64, flags: u32);
    cudaStreamBeginCapture(stream: u64, mode: u32);
    cudaStreamEndCapture(stream: u64, graph: *mut u64);
    cudaEventCreateWithFlags(place: *mut u64, flags: u32);
    cudaEventDestroy(event: u64);
    cudaEventRecord(event: u64, stream: u64);
    cudaEventSynchronize(event: u64);
    cudaEventElapsedTime(ms: *mut f32, start: u64, end: u64);
    cudaGraphInstantiate(place: *mut u64, graph: u64, flags: u64);
    cudaGraphLaunch(graph: u64, stream: u64);
    cudaGraphDestroy(graph: u64);
    cudaGraphExecDestroy(graph: u64);
    cudaLaunchHostFunc(stream: u64, function: HostFunction, data: *mut c_void);
    cudaGraphicsMapResources(count: i32, resources: u64, stream: u64);
    cudaFuncSetAttribute(function: u64, which: i32, value: i32);
    cudaHostAlloc(place: *mut u64, size: usize, flags: u32);
    cudaMallocFromPoolAsync(place: *mut u64, size: usize, pool: u64, stream: u64);
    cudaMallocArray(place: *mut u64, channels: *const [i32; 5], width: usize, height: usize, flags: u32);
    cudaMalloc3DArray(place: *mut u64, channels: *const [i32; 5], extent: Extent, flags: u32);
    cudaMallocMipmappedArray(place: *mut u64, channels: *const [i32; 5], extent: Extent, levels: u32, flags: u32);
    cudaFreeArray(array: u64);
    cudaFreeMipmappedArray(array: u64);
    cudaIpcGetMemHandle(place: *mut IpcHandle, address: u64);
    cudaIpcOpenMemHandle(place: *mut u64, handle: IpcHandle, flags: u32);
    cudaIpcCloseMemHandle(address: u64);
    cudaImportExternalMemory(place: *mut u64, import: *const [u64; 13]);
    cudaExternalMemoryGetMappedBuffer(place: *mut u64, external: u64, view: *const [u64; 11]);
    cudaDestroyExternalMemory(external: u64);
    cudaDeviceGetDefaultMemPool(place: *mut u64, device: i32);
    cudaMemPoolCreate(place: *mut u64, properties: *const [i32; 22]);
    cudaMemPoolDestroy(pool: u64);
    cudaMemPoolTrimTo(pool: u64, keep: usize);
    cudaMemPoolGetAttribute(pool: u64, which: i32, value: *mut u64);
    cudaMemPoolSetAttribute(pool: u64, which: i32, value: *mut u64);
    cudaGraphCreate(place: *mut u64, flags: u32);
    cudaGraphAddMemAllocNode(node: *mut u64, graph: u64, dependencies: u64, count: usize, params: *mut [u64; 15]);
    cudaGraphAddMemFreeNode(node: *mut u64, graph: u64, dependencies: u64, count: usize, address: u64);
    cudaDeviceReset();
    ;
    cudaGetLastError cudaLaunchKernel __cudaLaunchKernel __cudaGetKernel
    __cudaPushCallConfiguration __cudaPopCallConfiguration
    __cudaRegisterFatBinary __cudaRegisterFunction __cudaRegisterFatBinaryEnd
    __cudaUnregisterFatBinary
}
