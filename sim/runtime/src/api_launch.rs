//! Registration, launches and host callbacks.

use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::driver::check;
use crate::entry::{api, export, own_name};
use crate::ids::id;
use crate::last_error::{INVALID_CONFIGURATION, INVALID_VALUE, MISSING_CONFIGURATION};
use crate::register;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
pub struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    smem: usize,
    stream: usize,
    attributes: usize,
    count: u32,
}

/// `CUlaunchConfig`.
#[repr(C)]
struct DriverConfig {
    grid: Dim3,
    block: Dim3,
    smem: u32,
    stream: usize,
    attributes: usize,
    count: u32,
}

type Pending = (Dim3, Dim3, usize, usize);

const NO_DIM: Dim3 = Dim3 { x: 0, y: 0, z: 0 };

thread_local! {
    static PENDING: Cell<Option<Pending>> = const { Cell::new(None) };
}

/// The runtime has an error of its own for dimensions that no device can do.
fn possible(grid: Dim3, block: Dim3) -> Result<(), u32> {
    let threads = u64::from(block.x) * u64::from(block.y) * u64::from(block.z);
    let some = grid.x != 0 && grid.y != 0 && grid.z != 0;
    if some && (1..=1024).contains(&threads) {
        Ok(())
    } else {
        Err(INVALID_CONFIGURATION)
    }
}

api! {
    call d fn cudaLaunchKernel / cudaLaunchKernel_ptsz (function: usize, grid: Dim3, block: Dim3, args: usize, smem: usize, stream: usize) {
        let kernel = register::kernel(d, function)?;
        possible(grid, block)?;
        check((d.cuLaunchKernel)(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, smem as u32, stream, args, 0))?;
    }
    call d fn cudaLaunchCooperativeKernel / cudaLaunchCooperativeKernel_ptsz (function: usize, grid: Dim3, block: Dim3, args: usize, smem: usize, stream: usize) {
        let kernel = register::kernel(d, function)?;
        possible(grid, block)?;
        check((d.cuLaunchCooperativeKernel)(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, smem as u32, stream, args))?;
    }
    call d fn cudaLaunchKernelExC / cudaLaunchKernelExC_ptsz (config: *const LaunchConfig, function: usize, args: usize) {
        if config.is_null() { return Err(INVALID_VALUE); }
        let kernel = register::kernel(d, function)?;
        let c = &*config;
        possible(c.grid, c.block)?;
        let config = DriverConfig { grid: c.grid, block: c.block, smem: c.smem as u32, stream: c.stream, attributes: c.attributes, count: c.count };
        check((d.cuLaunchKernelEx)((&raw const config).cast(), kernel, args, 0))?;
    }
    call d fn cudaLaunchHostFunc / cudaLaunchHostFunc_ptsz (stream: usize, function: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void) {
        check((d.cuLaunchHostFunc)(stream, function, data))?;
    }
    call d fn cudaStreamAddCallback / cudaStreamAddCallback_ptsz (stream: usize, function: Option<unsafe extern "C" fn(usize, u32, *mut c_void)>, data: *mut c_void, flags: u32) {
        check((d.cuStreamAddCallback)(stream, function, data, flags))?;
    }
    call d fn cudaFuncGetName(place: *mut *const c_char, function: usize) {
        if place.is_null() { return Err(INVALID_VALUE); }
        place.write(register::name(function)?);
    }
    call d fn cudaFuncSetAttribute(function: usize, which: i32, value: i32) {
        check((d.cuFuncSetAttribute)(register::kernel(d, function)?, which, value))?;
    }
    call d fn cudaFuncSetCacheConfig(function: usize, config: i32) {
        check((d.cuFuncSetCacheConfig)(register::kernel(d, function)?, config))?;
    }
    call d fn cudaFuncGetAttributes(attributes: *mut [u8; 144], function: usize) {
        if attributes.is_null() { return Err(INVALID_VALUE); }
        register::kernel(d, function)?;
        attributes.write([0; 144]);
        attributes.cast::<i32>().add(6).write(1024);
        attributes.cast::<i32>().add(7).write(32);
    }
    call d fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut i32, function: usize, size: i32, smem: usize) {
        check((d.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(blocks, register::kernel(d, function)?, size, smem, 0))?;
    }
    call d fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks: *mut i32, function: usize, size: i32, smem: usize, flags: u32) {
        check((d.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(blocks, register::kernel(d, function)?, size, smem, flags))?;
    }
    call d fn cudaGetSymbolAddress(place: *mut u64, symbol: usize) {
        if place.is_null() { return Err(INVALID_VALUE); }
        place.write(register::address(d, symbol)?.0);
    }
    call d fn cudaGetSymbolSize(place: *mut usize, symbol: usize) {
        if place.is_null() { return Err(INVALID_VALUE); }
        place.write(register::address(d, symbol)?.1);
    }
    call d fn cudaGetKernel(place: *mut usize, stub: usize) {
        if place.is_null() { return Err(INVALID_VALUE); }
        place.write(stub);
    }
    call d fn cudaGetFuncBySymbol(place: *mut usize, stub: usize) {
        if place.is_null() { return Err(INVALID_VALUE); }
        check((d.cuKernelGetFunction)(place, register::kernel(d, stub)?))?;
    }
}

api! {
    plain fn __cudaRegisterFatBinary(image: *const c_void) -> usize { register::image(image) }
    plain fn __cudaRegisterFatBinaryEnd(_image: usize) -> () {}
    plain fn __cudaUnregisterFatBinary(image: usize) -> () { register::forget(image) }
    plain fn __cudaRegisterFunction(image: usize, stub: usize, _device: usize, name: *const c_char, _limit: i32) -> () {
        register::function(image, stub, name);
    }
    plain fn __cudaRegisterVar(image: usize, host: usize, _device: usize, name: *const c_char, _ext: i32, size: usize) -> () {
        register::variable(image, host, name, size);
    }
    plain fn __cudaInitModule(_image: usize) -> i8 { 1 }
    plain fn __cudaGetKernel(place: *mut usize, stub: usize) -> u32 {
        // The handle is the stub itself, in the real runtime too.
        place.write(stub);
        0
    }
    plain fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, smem: usize, stream: usize) -> u32 {
        PENDING.set(Some((grid, block, smem, stream)));
        0
    }
    plain fn __cudaPopCallConfiguration(grid: *mut Dim3, block: *mut Dim3, smem: *mut usize, stream: *mut usize) -> u32 {
        let pending = PENDING.take();
        let (g, b, m, s) = pending.unwrap_or((NO_DIM, NO_DIM, 0, 0));
        grid.write(g);
        block.write(b);
        smem.write(m);
        stream.write(s);
        if pending.is_some() { 0 } else { MISSING_CONFIGURATION }
    }
}

/// Counts a call in `count` and goes on at `target`, with everything where it was.
#[cfg(not(target_arch = "aarch64"))]
macro_rules! count_and_go {
    () => {
        "push rbp
        mov rbp, rsp
        mov rax, qword ptr [rip + {count}@GOTPCREL]
        lock inc qword ptr [rax]
        pop rbp
        jmp {target}@PLT"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! count_and_go {
    () => {
        "adrp x16, :got:{count}
        ldr x16, [x16, #:got_lo12:{count}]
        2: ldxr x17, [x16]
        add x17, x17, #1
        stxr w15, x17, [x16]
        cbnz w15, 2b
        b {target}"
    };
}

macro_rules! tail_launch {
    ($name:ident, $count:ident, $target:ident) => {
        /// What compilers emit launches to since CUDA 13: the real one continues in the launch
        /// function with everything where it was, so a probe on both counts a launch twice.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() -> u32 {
            naked_asm!(
                count_and_go!(),
                count = sym $count,
                target = sym $target,
            )
        }

        /// Calls of it, which cannot count like the others.
        static $count: AtomicU64 = AtomicU64::new(0);
    };
}

tail_launch!(__cudaLaunchKernel, TAIL_LAUNCHES, cudaLaunchKernel);
tail_launch!(__cudaLaunchKernel_ptsz, TAIL_LAUNCHES_PTSZ, cudaLaunchKernel_ptsz);

/// The calls since the last time, with the functions called.
pub fn take_tail_launches() -> [(usize, u64); 2] {
    [
        (id::__cudaLaunchKernel, TAIL_LAUNCHES.swap(0, Relaxed)),
        (id::__cudaLaunchKernel_ptsz, TAIL_LAUNCHES_PTSZ.swap(0, Relaxed)),
    ]
}
