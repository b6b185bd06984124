//! Kernel launches and host callbacks.

use std::ffi::c_void;

use crate::context::current_device;
use crate::error::*;
use crate::machine::machine;
use crate::{LEDGER, code, stream};

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

fn launch(function: usize, grid: [u32; 3], block: [u32; 3], handle: usize) -> Result<(), u32> {
    let device = current_device()?;
    let function = code::look(function)?;
    require(grid.iter().chain(&block).all(|n| *n != 0))?;
    require(grid[1] < 65536 && grid[2] < 65536)?;
    require(block.iter().map(|n| u64::from(*n)).product::<u64>() <= 1024)?;
    let stream = stream::find(handle, device)?;
    stream.enqueue(machine().kernel_ns, 1);
    function.count_launch();
    LEDGER.add_launches(u64::from(!stream.is_capturing()));
    Ok(())
}

/// Runs the callback at once, in the calling thread: nesting and escaping from it are then
/// what the caller makes of them. Nothing here may be held across the call, because a callback
/// may leave by `longjmp`.
unsafe fn host_function(
    handle: usize,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> Result<(), u32> {
    let device = current_device()?;
    let stream = stream::find(handle, device)?;
    let function = function.ok_or(INVALID_VALUE)?;
    stream.enqueue(0, 0);
    // SAFETY: a callback of the caller, with the data it is meant for.
    unsafe { function(data) };
    Ok(())
}

api! {
    fn cuLaunchKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, _smem: u32, stream: usize, _params: usize, _extra: usize) {
        launch(function, [gx, gy, gz], [bx, by, bz], stream)?;
    }
    fn cuLaunchCooperativeKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, _smem: u32, stream: usize, _params: usize) {
        launch(function, [gx, gy, gz], [bx, by, bz], stream)?;
    }
    fn cuLaunchKernelEx(config: *const Config, function: usize, _params: usize, _extra: usize) {
        require(!config.is_null())?;
        let config = &*config;
        launch(function, config.grid, config.block, config.stream)?;
    }
    fn cuLaunchHostFunc(stream: usize, function: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void) {
        host_function(stream, function, data)?;
    }
    fn cuStreamAddCallback(stream: usize, function: Option<unsafe extern "C" fn(usize, u32, *mut c_void)>, data: *mut c_void, flags: u32) {
        let device = current_device()?;
        require(flags == 0)?;
        stream::find(stream, device)?;
        function.ok_or(INVALID_VALUE)?(stream, 0, data);
    }
}
