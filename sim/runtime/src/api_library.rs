//! Libraries of kernels.

use std::ffi::c_char;

use crate::driver::check;
use crate::entry::{api, export, own_name};

api! {
    call d fn cudaLibraryLoadData(library: *mut usize, code: *const u8, options: usize, values: usize, count: u32, library_options: usize, library_values: usize, library_count: u32) {
        check((d.cuLibraryLoadData)(library, code, options, values, count, library_options, library_values, library_count))?;
    }
    call d fn cudaLibraryUnload(library: usize) { check((d.cuLibraryUnload)(library))?; }
    call d fn cudaLibraryGetKernel(kernel: *mut usize, library: usize, name: *const c_char) { check((d.cuLibraryGetKernel)(kernel, library, name))?; }
    call d fn cudaLibraryGetGlobal(place: *mut u64, size: *mut usize, library: usize, name: *const c_char) { check((d.cuLibraryGetGlobal)(place, size, library, name))?; }
}
