//! Modules, libraries, functions.

use std::ffi::{CStr, CString, c_char};

use gpusim_common::clock::{now_ns, sleep_until};

use crate::code::{self, FUNCTION, KERNEL};
use crate::context::{self, current_device};
use crate::error::*;
use crate::machine;
use crate::memory::{self, Block, Kind};

const GLOBAL_SIZE: u64 = 4096;

unsafe fn load(place: *mut usize, image: *const u8) -> Result<(), u32> {
    current_device()?;
    require(!place.is_null() && !image.is_null())?;
    let ns = machine::machine().load_ns;
    if ns > 0 {
        sleep_until(now_ns() + ns);
    }
    // SAFETY: an image and an out-pointer of the caller.
    unsafe { put(place, code::load(image)) }
}

unsafe fn load_file(place: *mut usize, file: *const c_char) -> Result<(), u32> {
    current_device()?;
    require(!place.is_null() && !file.is_null())?;
    // SAFETY: a C string, by the contract of the exports.
    let path = unsafe { CStr::from_ptr(file) }.to_string_lossy().into_owned();
    let mut image = std::fs::read(path).map_err(|_| 301u32)?;
    image.extend([0; 8]);
    let image = CString::from_vec_with_nul(image.split_inclusive(|b| *b == 0).next().unwrap_or(&[0]).to_vec());
    let image = image.map_err(|_| INVALID_IMAGE)?;
    // SAFETY: the image is terminated; images shorter than eight bytes are read from a buffer
    // that eight zeros were added to.
    unsafe {
        let mut padded = image.into_bytes_with_nul();
        padded.extend([0; 8]);
        put(place, code::load(padded.as_ptr()))
    }
}

unsafe fn function(place: *mut usize, owner: usize, name: *const c_char, tag: u32) -> Result<(), u32> {
    require(!place.is_null() && !name.is_null())?;
    // SAFETY: a C string and an out-pointer of the caller.
    unsafe { put(place, code::function(owner, CStr::from_ptr(name), tag)?) }
}

unsafe fn global(place: *mut u64, size: *mut usize, owner: usize, name: *const c_char) -> Result<(), u32> {
    let context = context::current()?;
    require(!name.is_null())?;
    let block = Block::of(context, GLOBAL_SIZE, Kind::Global);
    let make = || Ok((memory::allocate(block)?, GLOBAL_SIZE));
    // SAFETY: a C string and out-pointers of the caller.
    unsafe {
        let (address, bytes) = code::global(owner, CStr::from_ptr(name), make)?;
        put_if(place, address);
        put_if(size, bytes as usize);
    }
    Ok(())
}

fn attribute(which: i32) -> i32 {
    match which {
        0 => 1024,
        4 => 32,
        5 | 6 => 90,
        8 => 49152,
        _ => 0,
    }
}

api! {
    fn cuModuleLoad(place: *mut usize, file: *const c_char) { load_file(place, file)?; }
    fn cuModuleLoadData(place: *mut usize, image: *const u8) { load(place, image)?; }
    fn cuModuleLoadDataEx(place: *mut usize, image: *const u8, _count: u32, _options: usize, _values: usize) { load(place, image)?; }
    fn cuModuleLoadFatBinary(place: *mut usize, image: *const u8) { load(place, image)?; }
    fn cuModuleUnload(module: usize) { current_device()?; code::unload(module)?; }
    fn cuModuleGetFunction(place: *mut usize, module: usize, name: *const c_char) { function(place, module, name, FUNCTION)?; }
    fn cuModuleGetGlobal_v2(place: *mut u64, size: *mut usize, module: usize, name: *const c_char) { global(place, size, module, name)?; }
    fn cuModuleGetLoadingMode(mode: *mut i32) { put(mode, 2)?; }

    fn cuLibraryLoadData(place: *mut usize, image: *const u8, _o: usize, _v: usize, _n: u32, _lo: usize, _lv: usize, _ln: u32) { load(place, image)?; }
    fn cuLibraryLoadFromFile(place: *mut usize, file: *const c_char, _o: usize, _v: usize, _n: u32, _lo: usize, _lv: usize, _ln: u32) { load_file(place, file)?; }
    fn cuLibraryUnload(library: usize) { code::unload(library)?; }
    fn cuLibraryGetKernel(place: *mut usize, library: usize, name: *const c_char) { function(place, library, name, KERNEL)?; }
    fn cuLibraryGetModule(place: *mut usize, library: usize) {
        if !code::is_loaded(library) { return Err(INVALID_HANDLE); }
        put(place, library)?;
    }
    fn cuLibraryGetGlobal(place: *mut u64, size: *mut usize, library: usize, name: *const c_char) { global(place, size, library, name)?; }

    fn cuKernelGetFunction(place: *mut usize, kernel: usize) {
        let kernel = code::look(kernel)?;
        function(place, kernel.library(), kernel.name(), FUNCTION)?;
    }
    fn cuKernelGetLibrary(place: *mut usize, kernel: usize) { put(place, code::look(kernel)?.library())?; }
    fn cuKernelGetName(place: *mut *const c_char, kernel: usize) { put(place, code::look(kernel)?.name())?; }
    fn cuKernelGetAttribute(value: *mut i32, which: i32, kernel: usize, _device: i32) { code::look(kernel)?; put(value, attribute(which))?; }
    fn cuKernelSetAttribute(_which: i32, _value: i32, kernel: usize, _device: i32) { code::look(kernel)?; }
    fn cuFuncGetName(place: *mut *const c_char, function: usize) { put(place, code::look(function)?.name())?; }
    fn cuFuncGetModule(place: *mut usize, function: usize) { put(place, code::look(function)?.module())?; }
    fn cuFuncGetAttribute(value: *mut i32, which: i32, function: usize) { code::look(function)?; put(value, attribute(which))?; }
    fn cuFuncSetAttribute(function: usize, _which: i32, _value: i32) { code::look(function)?; }
    fn cuFuncSetCacheConfig(function: usize, _config: i32) { code::look(function)?; }
    fn cuFuncIsLoaded(state: *mut i32, function: usize) { code::look(function)?; put(state, 1)?; }
    fn cuFuncLoad(function: usize) { code::look(function)?; }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut i32, function: usize, size: i32, _smem: usize) {
        code::look(function)?;
        put(blocks, (2048 / size.max(1)).clamp(1, 32))?;
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks: *mut i32, function: usize, size: i32, _smem: usize, _flags: u32) {
        code::look(function)?;
        put(blocks, (2048 / size.max(1)).clamp(1, 32))?;
    }
}
