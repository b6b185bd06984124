//! The runtime functions this program calls, each counted.

#![allow(non_camel_case_types, non_snake_case)]
#![allow(clippy::too_many_arguments)]

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

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pitched(pub u64, pub usize, pub usize, pub usize);

/// `cudaKernelNodeParams`.
#[repr(C)]
pub struct KernelNode {
    pub function: u64,
    pub grid: Dim3,
    pub block: Dim3,
    pub smem: u32,
    pub params: u64,
    pub extra: u64,
}

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
            use super::{Extent, HostFunction, IpcHandle, KernelNode, Pitched, c_void};
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
    cudaMemcpy2DAsync(dst: u64, dpitch: usize, src: u64, spitch: usize, width: usize, height: usize, kind: u32, stream: u64);
    cudaMemcpy3D(parms: *const [u64; 20]);
    cudaMemcpy3DAsync(parms: *const [u64; 20], stream: u64);
    cudaMemcpyPeer(dst: u64, to: i32, src: u64, from: i32, size: usize);
    cudaMemcpyPeerAsync(dst: u64, to: i32, src: u64, from: i32, size: usize, stream: u64);
    cudaMemcpyBatchAsync(to: *const u64, from: *const u64, sizes: *const usize, count: usize, attributes: *const u64, firsts: *const usize, attribute_count: usize, stream: u64);
    cudaMemset2D(dst: u64, pitch: usize, value: i32, width: usize, height: usize);
    cudaMemset2DAsync(dst: u64, pitch: usize, value: i32, width: usize, height: usize, stream: u64);
    cudaMemset3D(to: Pitched, value: i32, extent: Extent);
    cudaMemset3DAsync(to: Pitched, value: i32, extent: Extent, stream: u64);
    cudaStreamCreateWithPriority(place: *mut u64, flags: u32, priority: i32);
    cudaStreamGetPriority(stream: u64, priority: *mut i32);
    cudaEventQuery(event: u64);
    cudaGraphClone(place: *mut u64, graph: u64);
    cudaGraphExecUpdate(runnable: u64, graph: u64, info: *mut [u64; 3]);
    cudaGraphAddKernelNode(node: *mut u64, graph: u64, dependencies: *const u64, count: usize, params: *const KernelNode);
    cudaGraphExecKernelNodeSetParams(runnable: u64, node: u64, params: *const KernelNode);
    cudaGraphAddMemcpyNode1D(node: *mut u64, graph: u64, dependencies: *const u64, count: usize, dst: u64, src: u64, size: usize, kind: u32);
    cudaGraphAddMemsetNode(node: *mut u64, graph: u64, dependencies: *const u64, count: usize, params: *const [u64; 5]);
    cudaGraphAddChildGraphNode(node: *mut u64, graph: u64, dependencies: *const u64, count: usize, child: u64);
    ;
    cudaGetLastError cudaLaunchKernel __cudaLaunchKernel __cudaGetKernel
    __cudaPushCallConfiguration __cudaPopCallConfiguration
    __cudaRegisterFatBinary __cudaRegisterFunction __cudaRegisterFatBinaryEnd
    __cudaUnregisterFatBinary
}
