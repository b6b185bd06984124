//! Launches as they were before CUDA 4, which keep the block's shape with the function, and the
//! launch of one kernel on several devices at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::api_launch::launch;
use crate::code;
use crate::context;
use crate::error::*;
use crate::operation::Shape;

/// Shapes that were set, by function.
static BLOCKS: Mutex<Option<HashMap<usize, [u32; 3]>>> = Mutex::new(None);

fn grid(function: usize, width: i32, height: i32, stream: usize) -> Result<(), u32> {
    context::current()?;
    let blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let block = blocks.as_ref().and_then(|blocks| blocks.get(&function).copied());
    drop(blocks);
    let grid = [width.max(0) as u32, height.max(0) as u32, 1];
    let shape = Shape {
        grid,
        block: block.unwrap_or([1; 3]),
        shared: 0,
    };
    launch(function, shape, stream)
}

/// `CUDA_LAUNCH_PARAMS`.
#[repr(C)]
pub struct Launch {
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    smem: u32,
    stream: usize,
    params: usize,
}

api! {
    fn cuFuncSetBlockShape(function: usize, x: i32, y: i32, z: i32) {
        code::look(function)?;
        require(x > 0 && y > 0 && z > 0)?;
        let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.get_or_insert_default().insert(function, [x as u32, y as u32, z as u32]);
    }
    fn cuFuncSetSharedSize(function: usize, _bytes: u32) { code::look(function)?; }
    fn cuParamSetSize(function: usize, _bytes: u32) { code::look(function)?; }
    fn cuLaunch(function: usize) { grid(function, 1, 1, 0)?; }
    fn cuLaunchGrid(function: usize, width: i32, height: i32) { grid(function, width, height, 0)?; }
    fn cuLaunchGridAsync(function: usize, width: i32, height: i32, stream: usize) { grid(function, width, height, stream)?; }
    fn cuLaunchCooperativeKernelMultiDevice(list: *const Launch, count: u32, _flags: u32) {
        context::current()?;
        require(!list.is_null() && count > 0)?;
        for one in std::slice::from_raw_parts(list, count as usize) {
            // Not in default streams, and each on a device of its own, as in CUDA.
            require(one.stream > 2)?;
            let shape = Shape { grid: one.grid, block: one.block, shared: one.smem };
            launch(one.function, shape, one.stream)?;
        }
    }
}
