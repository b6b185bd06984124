//! The driver: found at the first call, its functions by name.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::last_error::INSUFFICIENT_DRIVER;

type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;
type StreamCallback = Option<unsafe extern "C" fn(usize, u32, *mut c_void)>;
type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64, *mut i32) -> u32;

/// `CUipcMemHandle` and `cudaIpcMemHandle_t`, which travel by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IpcHandle([u64; 8]);

macro_rules! driver_functions {
    ($($name:ident($($ty:ty),*);)*) => {
        /// The driver functions the runtime uses.
        pub struct Driver {
            $(pub $name: unsafe extern "C" fn($($ty),*) -> u32,)*
        }
        impl Driver {
            unsafe fn resolve(get: GetProcAddress, flags: u64) -> Result<Self, u32> {
                // SAFETY: the types are those of the CUDA functions of these names.
                Ok(Driver { $($name: unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> u32>(
                        lookup(get, concat!(stringify!($name), "\0").as_bytes(), flags)?,
                    )
                },)* })
            }
        }
    };
}

driver_functions! {
    cuInit(u32);
    cuDriverGetVersion(*mut i32);
    cuDeviceGet(*mut i32, i32);
    cuDeviceGetCount(*mut i32);
    cuDeviceGetName(*mut c_char, i32, i32);
    cuDeviceGetUuid_v2(*mut [u8; 16], i32);
    cuDeviceGetPCIBusId(*mut c_char, i32, i32);
    cuDeviceTotalMem_v2(*mut usize, i32);
    cuDeviceGetAttribute(*mut i32, i32, i32);
    cuDeviceCanAccessPeer(*mut i32, i32, i32);
    cuDevicePrimaryCtxRetain(*mut usize, i32);
    cuDevicePrimaryCtxReset_v2(i32);
    cuDeviceGetDefaultMemPool(*mut usize, i32);
    cuDeviceGetMemPool(*mut usize, i32);
    cuDeviceSetMemPool(i32, usize);
    cuCtxGetCurrent(*mut usize);
    cuCtxSetCurrent(usize);
    cuCtxGetDevice_v2(*mut i32, usize);
    cuCtxSynchronize_v2(usize);
    cuCtxGetLimit(*mut usize, i32);
    cuCtxSetLimit(i32, usize);
    cuCtxGetStreamPriorityRange(*mut i32, *mut i32);
    cuGetExportTable(*mut *const c_void, *const [u8; 16]);
    cuGetProcAddress_v2(*const c_char, *mut *mut c_void, i32, u64, *mut i32);
    cuMemAlloc_v2(*mut u64, usize);
    cuMemAllocPitch_v2(*mut u64, *mut usize, usize, usize, u32);
    cuMemAllocManaged(*mut u64, usize, u32);
    cuMemFree_v2(u64);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemHostAlloc(*mut u64, usize, u32);
    cuMemFreeHost(u64);
    cuMemHostRegister_v2(u64, usize, u32);
    cuMemHostUnregister(u64);
    cuMemHostGetDevicePointer_v2(*mut u64, u64, u32);
    cuMemHostGetFlags(*mut u32, u64);
    cuMemAdvise_v2(u64, usize, i32, u64);
    cuMemPrefetchAsync_v2(u64, usize, u64, u32, usize);
    cuMemAllocAsync(*mut u64, usize, usize);
    cuMemAllocFromPoolAsync(*mut u64, usize, usize, usize);
    cuMemFreeAsync(u64, usize);
    cuArray3DCreate_v2(*mut u64, *const c_void);
    cuArray3DGetDescriptor_v2(*mut c_void, u64);
    cuArrayDestroy(u64);
    cuMipmappedArrayCreate(*mut u64, *const c_void, u32);
    cuMipmappedArrayDestroy(u64);
    cuIpcGetMemHandle(*mut IpcHandle, u64);
    cuIpcOpenMemHandle_v2(*mut u64, IpcHandle, u32);
    cuIpcCloseMemHandle(u64);
    cuImportExternalMemory(*mut u64, *const c_void);
    cuExternalMemoryGetMappedBuffer(*mut u64, u64, *const c_void);
    cuDestroyExternalMemory(u64);
    cuMemPoolCreate(*mut usize, usize);
    cuMemPoolDestroy(usize);
    cuMemPoolTrimTo(usize, usize);
    cuMemPoolGetAttribute(usize, i32, *mut u64);
    cuMemPoolSetAttribute(usize, i32, *const u64);
    cuPointerGetAttributes(u32, *const i32, *const *mut u64, u64);
    cuMemcpy(u64, u64, usize);
    cuMemcpyAsync(u64, u64, usize, usize);
    cuMemcpyHtoD_v2(u64, u64, usize);
    cuMemcpyDtoH_v2(u64, u64, usize);
    cuMemcpyDtoD_v2(u64, u64, usize);
    cuMemcpyHtoDAsync_v2(u64, u64, usize, usize);
    cuMemcpyDtoHAsync_v2(u64, u64, usize, usize);
    cuMemcpyDtoDAsync_v2(u64, u64, usize, usize);
    cuMemcpyPeer(u64, usize, u64, usize, usize);
    cuMemcpyPeerAsync(u64, usize, u64, usize, usize, usize);
    cuMemcpy2DUnaligned_v2(*const c_void);
    cuMemcpy3D_v2(*const c_void);
    cuMemcpy3DAsync_v2(*const c_void, usize);
    cuMemcpy3DPeer(*const c_void);
    cuMemcpy3DPeerAsync(*const c_void, usize);
    cuMemcpyBatchAsync_v2(usize, usize, usize, usize, usize, usize, usize, usize);
    cuMemcpy3DBatchAsync_v2(usize, usize, u64, usize);
    cuMemPrefetchBatchAsync(usize, usize, usize, usize, usize, usize, u64, usize);
    cuMemcpy2DAsync_v2(*const c_void, usize);
    cuMemsetD8_v2(u64, u8, usize);
    cuMemsetD8Async(u64, u8, usize, usize);
    cuMemsetD2D8_v2(u64, usize, u8, usize, usize);
    cuMemsetD2D8Async(u64, usize, u8, usize, usize, usize);
    cuStreamCreate(*mut usize, u32);
    cuStreamCreateWithPriority(*mut usize, u32, i32);
    cuStreamDestroy_v2(usize);
    cuStreamQuery(usize);
    cuStreamSynchronize(usize);
    cuStreamWaitEvent(usize, usize, u32);
    cuStreamGetFlags(usize, *mut u32);
    cuStreamGetPriority(usize, *mut i32);
    cuStreamGetId(usize, *mut u64);
    cuStreamGetDevice(usize, *mut i32);
    cuStreamAddCallback(usize, StreamCallback, *mut c_void, u32);
    cuStreamBeginCapture_v2(usize, u32);
    cuStreamEndCapture(usize, *mut usize);
    cuStreamIsCapturing(usize, *mut u32);
    cuThreadExchangeStreamCaptureMode(*mut u32);
    cuEventCreate(*mut usize, u32);
    cuEventDestroy_v2(usize);
    cuEventRecord(usize, usize);
    cuEventRecordWithFlags(usize, usize, u32);
    cuEventQuery(usize);
    cuEventSynchronize(usize);
    cuEventElapsedTime_v2(*mut f32, usize, usize);
    cuGraphCreate(*mut usize, u32);
    cuGraphDestroy(usize);
    cuGraphClone(*mut usize, usize);
    cuGraphGetNodes(usize, usize, *mut usize);
    cuGraphAddKernelNode_v2(*mut usize, usize, usize, usize, *const c_void);
    cuGraphAddMemcpyNode(*mut usize, usize, usize, usize, *const c_void, usize);
    cuGraphAddMemsetNode(*mut usize, usize, usize, usize, *const c_void, usize);
    cuGraphAddChildGraphNode(*mut usize, usize, usize, usize, usize);
    cuGraphAddEmptyNode(*mut usize, usize, usize, usize);
    cuGraphExecUpdate_v2(usize, usize, *mut c_void);
    cuGraphExecKernelNodeSetParams_v2(usize, usize, *const c_void);
    cuGraphInstantiateWithFlags(*mut usize, usize, u64);
    cuGraphUpload(usize, usize);
    cuGraphInstantiateWithParams(*mut usize, usize, *mut c_void);
    cuGraphAddMemAllocNode(*mut usize, usize, usize, usize, *mut c_void);
    cuGraphAddMemFreeNode(*mut usize, usize, usize, usize, u64);
    cuDeviceGraphMemTrim(i32);
    cuDeviceGetGraphMemAttribute(i32, i32, *mut u64);
    cuGraphLaunch(usize, usize);
    cuGraphExecDestroy(usize);
    cuLibraryLoadData(*mut usize, *const u8, usize, usize, u32, usize, usize, u32);
    cuLibraryUnload(usize);
    cuLibraryGetKernel(*mut usize, usize, *const c_char);
    cuLibraryGetGlobal(*mut u64, *mut usize, usize, *const c_char);
    cuKernelGetFunction(*mut usize, usize);
    cuFuncSetAttribute(usize, i32, i32);
    cuFuncSetCacheConfig(usize, i32);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(*mut i32, usize, i32, usize, u32);
    cuLaunchKernel(usize, u32, u32, u32, u32, u32, u32, u32, usize, usize, usize);
    cuLaunchKernelEx(*const c_void, usize, usize, usize);
    cuLaunchCooperativeKernel(usize, u32, u32, u32, u32, u32, u32, u32, usize, usize);
    cuLaunchHostFunc(usize, HostFunction, *mut c_void);
}

pub const VERSION: i32 = 13000;
static LIBRARY: OnceLock<usize> = OnceLock::new();

fn lookup(get: GetProcAddress, name: &[u8], flags: u64) -> Result<*mut c_void, u32> {
    let mut address = std::ptr::null_mut();
    // SAFETY: `name` is NUL-terminated, and the out-pointers are valid or null.
    let result = unsafe { get(name.as_ptr().cast(), &mut address, VERSION, flags, std::ptr::null_mut()) };
    if result == 0 && !address.is_null() {
        Ok(address)
    } else {
        Err(INSUFFICIENT_DRIVER)
    }
}

fn symbol(library: usize, name: &CStr) -> *mut c_void {
    // SAFETY: a handle `dlopen` gave out, never closed.
    unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) }
}

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;

fn open() -> Result<GetProcAddress, u32> {
    // SAFETY: a C string; the setting only says whether modules are loaded lazily.
    std::hint::black_box(unsafe { libc::getenv(c"CUDA_ENABLE_MODULE_LAZY_LOADING".as_ptr()) });
    // SAFETY: loading the driver runs its initialisers, which is what is wanted.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) } as usize;
    if library == 0 {
        return Err(INSUFFICIENT_DRIVER);
    }
    LIBRARY.get_or_init(|| library);
    let get = symbol(library, c"cuGetProcAddress_v2");
    if get.is_null() {
        return Err(INSUFFICIENT_DRIVER);
    }
    // SAFETY: the type of the CUDA function of this name.
    Ok(unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(get) })
}

fn load() -> Result<Driver, u32> {
    // SAFETY: the driver's own function.
    let driver = unsafe { Driver::resolve(open()?, 0)? };
    // SAFETY: a plain call.
    check(unsafe { (driver.cuInit)(0) })?;
    Ok(driver)
}

/// The driver, loaded but with no context set.
pub fn loaded() -> Result<&'static Driver, u32> {
    static DRIVER: OnceLock<Result<Driver, u32>> = OnceLock::new();
    DRIVER.get_or_init(load).as_ref().map_err(|code| *code)
}

/// The same with the variants of functions whose stream 0 is the calling thread's.
pub fn ready_per_thread() -> Result<&'static Driver, u32> {
    static DRIVER: OnceLock<Result<Driver, u32>> = OnceLock::new();
    ready()?;
    // SAFETY: the driver's own function.
    let load = || unsafe { Driver::resolve(open()?, PER_THREAD) };
    DRIVER.get_or_init(load).as_ref().map_err(|code| *code)
}

thread_local! {
    static BOUND: Cell<bool> = const { Cell::new(false) };
}

/// The driver, with the calling thread bound to a device.
#[inline]
pub fn ready() -> Result<&'static Driver, u32> {
    let driver = loaded()?;
    if !BOUND.get() {
        bind(driver, 0)?;
    }
    Ok(driver)
}

/// Makes the primary context of `device` the calling thread's.
pub fn bind(driver: &Driver, device: i32) -> Result<(), u32> {
    let mut ordinal = 0;
    // SAFETY: an out-pointer to a local.
    if unsafe { (driver.cuDeviceGet)(&mut ordinal, device) } != 0 {
        return Err(101);
    }
    let context = primary(driver, ordinal)?;
    // SAFETY: a context of the driver.
    check(unsafe { (driver.cuCtxSetCurrent)(context) })?;
    BOUND.set(true);
    Ok(())
}

/// The primary context of `device`, which the runtime retains once and for all.
pub fn primary(driver: &Driver, device: i32) -> Result<usize, u32> {
    static RETAINED: Mutex<Vec<(i32, usize)>> = Mutex::new(Vec::new());
    let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, context)) = retained.iter().find(|(known, _)| *known == device) {
        return Ok(*context);
    }
    let mut context = 0;
    // SAFETY: an out-pointer to a local.
    check(unsafe { (driver.cuDevicePrimaryCtxRetain)(&mut context, device) })?;
    retained.push((device, context));
    Ok(context)
}

/// A driver result as a `Result`.
#[inline]
pub fn check(code: u32) -> Result<(), u32> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// Writes the driver's ledger, if there is a simulated driver.
pub fn flush() {
    let Some(library) = LIBRARY.get() else { return };
    let flush = symbol(*library, c"gpusim_driver_flush");
    if !flush.is_null() {
        // SAFETY: the simulated driver's function of this name takes and returns nothing.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(flush)() };
    }
}
