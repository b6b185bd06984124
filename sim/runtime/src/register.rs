//! What programs register before `main`: images, and the host stubs of their kernels.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::driver::{Driver, check};
use crate::last_error::{INSUFFICIENT_DRIVER, INVALID_DEVICE_FUNCTION, INVALID_SYMBOL};

struct Named {
    image: usize,
    name: CString,
    size: usize,
    /// How many were registered before it.
    ordinal: usize,
    /// The driver's handle or address, once it was needed.
    resolved: OnceLock<usize>,
}

#[derive(Default)]
struct Tables {
    /// Driver libraries of registered images, by the handle programs hold.
    libraries: HashMap<usize, OnceLock<usize>>,
    functions: HashMap<usize, Named>,
    variables: HashMap<usize, Named>,
}

fn tables() -> &'static RwLock<Tables> {
    static TABLES: OnceLock<RwLock<Tables>> = OnceLock::new();
    TABLES.get_or_init(RwLock::default)
}

pub fn image(image: *const c_void) -> usize {
    let handle = Box::leak(Box::new([image as usize; 4])) as *const _ as usize;
    let mut tables = tables().write().unwrap_or_else(PoisonError::into_inner);
    tables.libraries.insert(handle, OnceLock::new());
    handle
}

/// # Safety
/// `name` is a C string.
pub unsafe fn function(image: usize, stub: usize, name: *const c_char) {
    // SAFETY: by this function's contract.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let mut tables = tables().write().unwrap_or_else(PoisonError::into_inner);
    let ordinal = tables.functions.len();
    let named = Named {
        image,
        name,
        size: 0,
        ordinal,
        resolved: OnceLock::new(),
    };
    tables.functions.insert(stub, named);
}

/// # Safety
/// `name` is a C string.
pub unsafe fn variable(image: usize, host: usize, name: *const c_char, size: usize) {
    // SAFETY: by this function's contract.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let named = Named {
        image,
        name,
        size,
        ordinal: 0,
        resolved: OnceLock::new(),
    };
    tables()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .variables
        .insert(host, named);
}

pub fn forget(image: usize) {
    let mut tables = tables().write().unwrap_or_else(PoisonError::into_inner);
    tables.libraries.remove(&image);
    tables.functions.retain(|_, named| named.image != image);
    tables.variables.retain(|_, named| named.image != image);
}

/// The driver's handle for a host stub: looked up by name at its first use. Every other one is
/// a `CUfunction` and the rest are `CUkernel`s, because real programs launch both.
pub fn kernel(driver: &Driver, stub: usize) -> Result<usize, u32> {
    let tables = tables().read().unwrap_or_else(PoisonError::into_inner);
    let named = tables.functions.get(&stub).ok_or(INVALID_DEVICE_FUNCTION)?;
    if let Some(kernel) = named.resolved.get() {
        return Ok(*kernel);
    }
    let library = tables.library(driver, named.image)?;
    let mut kernel = 0;
    // SAFETY: a C string, and an out-pointer to a local.
    check(unsafe { (driver.cuLibraryGetKernel)(&mut kernel, library, named.name.as_ptr()) })?;
    if named.ordinal % 2 == 1 {
        // SAFETY: a kernel the driver just gave out, and an out-pointer to a local.
        check(unsafe { (driver.cuKernelGetFunction)(&mut kernel, kernel) })?;
    }
    Ok(*named.resolved.get_or_init(|| kernel))
}

/// The device address and size of a registered variable.
pub fn address(driver: &Driver, host: usize) -> Result<(u64, usize), u32> {
    let tables = tables().read().unwrap_or_else(PoisonError::into_inner);
    let named = tables.variables.get(&host).ok_or(INVALID_SYMBOL)?;
    if let Some(address) = named.resolved.get() {
        return Ok((*address as u64, named.size));
    }
    let library = tables.library(driver, named.image)?;
    let (mut address, mut size) = (0, 0);
    // SAFETY: a C string, and out-pointers to locals.
    check(unsafe { (driver.cuLibraryGetGlobal)(&mut address, &mut size, library, named.name.as_ptr()) })?;
    Ok((*named.resolved.get_or_init(|| address as usize) as u64, named.size))
}

/// The name a stub was registered with.
pub fn name(stub: usize) -> Result<*const c_char, u32> {
    let tables = tables().read().unwrap_or_else(PoisonError::into_inner);
    let named = tables.functions.get(&stub).ok_or(INVALID_DEVICE_FUNCTION)?;
    Ok(named.name.as_ptr())
}

impl Tables {
    /// Loads an image the way the real runtime does: through a private table of the driver, so
    /// that no exported function is seen being called.
    fn library(&self, driver: &Driver, image: usize) -> Result<usize, u32> {
        const ID: [u8; 16] = [
            0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9,
        ];
        let slot = self.libraries.get(&image).ok_or(INVALID_DEVICE_FUNCTION)?;
        if let Some(library) = slot.get() {
            return Ok(*library);
        }
        let mut table: *const c_void = std::ptr::null();
        // SAFETY: out-pointers to locals; the table is {size, load function}.
        let library = unsafe {
            if (driver.cuGetExportTable)(&mut table, &ID) != 0 || table.is_null() {
                return Err(INSUFFICIENT_DRIVER);
            }
            let load = table.cast::<usize>().add(1).read();
            std::mem::transmute::<usize, unsafe extern "C" fn(*const u8) -> usize>(load)(std::ptr::null())
        };
        Ok(*slot.get_or_init(|| library))
    }
}
