//! Kernel launches and host callbacks.

use std::ffi::c_void;

use gpusim_common::clock::now_ns;

use crate::context::current_device;
use crate::error::*;
use crate::operation::{self, Shape, Work};
use crate::{call, code, stream};

/// `CUlaunchConfig`.
#[repr(C)]
pub struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    smem: u32,
    stream: usize,
    attributes: usize,
    count: u32,
}

pub fn launch(function: usize, shape: Shape, handle: usize) -> Result<(), u32> {
    let Shape { grid, block, .. } = shape;
    current_device()?;
    let function = code::look(function)?;
    require(grid.iter().chain(&block).all(|n| *n != 0))?;
    require(grid[1] < 65536 && grid[2] < 65536)?;
    require(block.iter().map(|n| u64::from(*n)).product::<u64>() <= 1024)?;
    operation::launch(function, shape, stream::find(handle)?);
    Ok(())
}

/// Runs the callback at once, in the calling thread: nesting and escaping from it are then
/// what the caller makes of them. The stream stands still for as long as it took. Nothing here may
/// be held across the call, because a callback may leave by `longjmp`.
unsafe fn host_function(
    handle: usize,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> Result<(), u32> {
    let stream = stream::find(handle)?;
    let function = function.ok_or(INVALID_VALUE)?;
    match stream.capture() {
        Some(capture) => capture.record(Work::Nothing),
        None => drop(stream.place(0)),
    }
    call::forget();
    let begun = now_ns();
    // SAFETY: a callback of the caller, with the data it is meant for.
    unsafe { function(data) };
    if stream.capture().is_none() {
        stream.hold_up(begun);
    }
    Ok(())
}

api! {
    fn cuLaunchKernel / cuLaunchKernel_ptsz (function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, _params: usize, _extra: usize) {
        launch(function, Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared }, stream)?;
    }
    fn cuLaunchCooperativeKernel / cuLaunchCooperativeKernel_ptsz (function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, _params: usize) {
        launch(function, Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared }, stream)?;
    }
    fn cuLaunchKernelEx / cuLaunchKernelEx_ptsz (config: *const Config, function: usize, _params: usize, _extra: usize) {
        require(!config.is_null())?;
        let config = &*config;
        let shape = Shape { grid: config.grid, block: config.block, shared: config.smem };
        launch(function, shape, config.stream)?;
    }
    fn cuLaunchHostFunc / cuLaunchHostFunc_ptsz (stream: usize, function: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void) {
        host_function(stream, function, data)?;
    }
    fn cuStreamAddCallback / cuStreamAddCallback_ptsz (stream: usize, function: Option<unsafe extern "C" fn(usize, u32, *mut c_void)>, data: *mut c_void, flags: u32) {
        require(flags == 0)?;
        stream::find(stream)?;
        let function = function.ok_or(INVALID_VALUE)?;
        call::forget();
        function(stream, 0, data);
    }
}
