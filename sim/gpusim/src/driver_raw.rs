//! Driver functions by name, for those who call many.

use std::ffi::{CString, c_void};

use crate::counts;
use crate::driver_api::Driver;

/// As many arguments as the longest of the functions called has.
const MOST: usize = 11;

type Any = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

impl Driver {
    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: an open library and a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    /// Calls the function of a name with integers and addresses.
    pub fn call(&self, name: &'static str, args: &[u64]) -> Result<(), u32> {
        let address = self.symbol(name);
        if address.is_null() {
            return Err(500);
        }
        let mut a = [0; MOST];
        a[..args.len()].copy_from_slice(args);
        counts::add_driver(name);
        // SAFETY: a CUDA function takes its first arguments and does not see the rest; the
        // addresses are those of memory as long as the caller says.
        let code = unsafe {
            std::mem::transmute::<*mut c_void, Any>(address)(
                a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
            )
        };
        counts::result(name, code);
        if code == 0 { Ok(()) } else { Err(code) }
    }

    /// Says how long this thread's kernels last from now on, where the driver is simulated.
    pub fn kernel_ns(&self, ns: u64) {
        let address = self.symbol("gpusim_driver_kernel_ns");
        if !address.is_null() {
            // SAFETY: the simulated driver's function of this name.
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(address)(ns) };
        }
    }
}
