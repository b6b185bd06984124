//! A program that uses the driver API directly, as Triton does: `dlopen` and no runtime.

use std::ffi::{CStr, c_void};

use crate::counts;

/// `libcuda.so.1`, loaded.
pub struct Driver(pub(crate) *mut c_void);

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const FILE: i32 = 1;
const PTX: &CStr = c".version 8.0\n.target sm_90\n.visible .entry triton_per_fused_add_0()\n{ ret; }\n";

/// `CUlaunchConfig`.
#[repr(C)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    smem: u32,
    stream: u64,
    attributes: u64,
    count: u32,
}

macro_rules! call {
    ($driver:expr, $name:ident($($ty:ty),*), $($arg:expr),*) => {{
        let name = concat!(stringify!($name), "\0");
        // SAFETY: an open library and a C string.
        let address = unsafe { libc::dlsym($driver.0, name.as_ptr().cast()) };
        if address.is_null() {
            return Err(500);
        }
        counts::add_driver(stringify!($name));
        // SAFETY: the type is that of the CUDA function of this name; out-pointers are to locals.
        let code = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> u32>(address)($($arg),*)
        };
        counts::result(stringify!($name), code);
        if code != 0 { return Err(code); }
    }};
}

impl Driver {
    pub fn load() -> Option<Self> {
        // SAFETY: loading the driver runs its initialisers, which is what is wanted.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        (!library.is_null()).then_some(Driver(library))
    }

    pub fn start(&self) -> Result<(), u32> {
        let (mut device, mut context) = (0, 0);
        call!(self, cuInit(u32), 0);
        call!(self, cuDeviceGet(*mut i32, i32), &mut device, 0);
        call!(self, cuDevicePrimaryCtxRetain(*mut u64, i32), &mut context, device);
        call!(self, cuCtxSetCurrent(u64), context);
        Ok(())
    }

    pub fn function(&self, name: &CStr) -> Result<u64, u32> {
        let (mut module, mut function) = (0, 0);
        call!(
            self,
            cuModuleLoadData(*mut u64, *const c_void),
            &mut module,
            PTX.as_ptr().cast()
        );
        call!(
            self,
            cuModuleGetFunction(*mut u64, u64, *const i8),
            &mut function,
            module,
            name.as_ptr().cast()
        );
        Ok(function)
    }

    pub fn launch(&self, function: u64) -> Result<(), u32> {
        let config = Config {
            grid: [4, 1, 1],
            block: [128, 1, 1],
            smem: 0,
            stream: 0,
            attributes: 0,
            count: 0,
        };
        call!(
            self,
            cuLaunchKernelEx(*const Config, u64, u64, u64),
            &config,
            function,
            0,
            0
        );
        counts::add_launches(1);
        Ok(())
    }

    pub fn synchronize(&self) -> Result<(), u32> {
        call!(self, cuCtxSynchronize(),);
        Ok(())
    }

    pub fn reserve(&self, size: u64) -> Result<u64, u32> {
        let mut address = 0;
        call!(
            self,
            cuMemAddressReserve(*mut u64, u64, u64, u64, u64),
            &mut address,
            size,
            0,
            0,
            0
        );
        Ok(address)
    }

    pub fn free_addresses(&self, address: u64, size: u64) -> Result<(), u32> {
        call!(self, cuMemAddressFree(u64, u64), address, size);
        Ok(())
    }

    pub fn create(&self, size: u64) -> Result<u64, u32> {
        self.create_on(0, size)
    }

    /// Physical memory that can be exported; of the host for device -1.
    pub fn create_on(&self, device: i32, size: u64) -> Result<u64, u32> {
        let mut handle = 0;
        // CUmemAllocationProp: pinned, exported as files, in the memory of a device or the host.
        let properties = match device {
            -1 => [1, FILE, 2, 0, 0, 0, 0, 0],
            _ => [1, FILE, 1, device, 0, 0, 0, 0],
        };
        call!(
            self,
            cuMemCreate(*mut u64, u64, *const i32, u64),
            &mut handle,
            size,
            properties.as_ptr(),
            0
        );
        Ok(handle)
    }

    pub fn release(&self, handle: u64) -> Result<(), u32> {
        call!(self, cuMemRelease(u64), handle);
        Ok(())
    }

    pub fn map(&self, address: u64, size: u64, handle: u64) -> Result<(), u32> {
        call!(self, cuMemMap(u64, u64, u64, u64, u64), address, size, 0, handle, 0);
        Ok(())
    }

    pub fn set_access(&self, address: u64, size: u64) -> Result<(), u32> {
        self.set_access_of(0, address, size)
    }

    /// Lets a device read and write.
    pub fn set_access_of(&self, device: i32, address: u64, size: u64) -> Result<(), u32> {
        let access = [1, device, 3];
        call!(
            self,
            cuMemSetAccess(u64, u64, *const i32, u64),
            address,
            size,
            access.as_ptr(),
            1
        );
        Ok(())
    }

    pub fn unmap(&self, address: u64, size: u64) -> Result<(), u32> {
        call!(self, cuMemUnmap(u64, u64), address, size);
        Ok(())
    }

    /// Another handle of what is mapped at an address.
    pub fn retain(&self, address: u64) -> Result<u64, u32> {
        let mut handle = 0;
        call!(self, cuMemRetainAllocationHandle(*mut u64, u64), &mut handle, address);
        Ok(handle)
    }

    pub fn export(&self, handle: u64) -> Result<i32, u32> {
        let mut file = -1;
        call!(
            self,
            cuMemExportToShareableHandle(*mut i32, u64, i32, u64),
            &mut file,
            handle,
            FILE,
            0
        );
        Ok(file)
    }

    pub fn import(&self, file: i32) -> Result<u64, u32> {
        let mut handle = 0;
        call!(
            self,
            cuMemImportFromShareableHandle(*mut u64, u64, i32),
            &mut handle,
            file as u64,
            FILE
        );
        Ok(handle)
    }

    pub fn alloc(&self, size: usize) -> Result<u64, u32> {
        let mut address = 0;
        call!(self, cuMemAlloc_v2(*mut u64, usize), &mut address, size);
        Ok(address)
    }

    pub fn alloc_host(&self, size: usize) -> Result<u64, u32> {
        let mut address = 0;
        call!(self, cuMemAllocHost_v2(*mut u64, usize), &mut address, size);
        Ok(address)
    }

    pub fn free(&self, address: u64) -> Result<(), u32> {
        call!(self, cuMemFree_v2(u64), address);
        Ok(())
    }

    /// A new context, which is then the thread's.
    pub fn create_context(&self, device: i32) -> Result<u64, u32> {
        let mut context = 0;
        call!(
            self,
            cuCtxCreate_v4(*mut u64, u64, u32, i32),
            &mut context,
            0,
            0,
            device
        );
        Ok(context)
    }

    pub fn destroy_context(&self, context: u64) -> Result<(), u32> {
        call!(self, cuCtxDestroy_v2(u64), context);
        Ok(())
    }

    pub fn set_context(&self, context: u64) -> Result<(), u32> {
        call!(self, cuCtxSetCurrent(u64), context);
        Ok(())
    }

    pub fn pop_context(&self) -> Result<u64, u32> {
        let mut context = 0;
        call!(self, cuCtxPopCurrent_v2(*mut u64), &mut context);
        Ok(context)
    }
}
