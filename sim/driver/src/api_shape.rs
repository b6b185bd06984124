//! Copies of rows and planes.

use crate::api_array;
use crate::api_copy::In::{self, Stream, Sync};
use crate::context;
use crate::copy::Copy;
use crate::error::*;
use crate::operation::Work;
use crate::place::{Memory, Place};

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub struct Flat {
    from: FlatSide,
    to: FlatSide,
    extent: [usize; 2],
}

#[repr(C)]
struct FlatSide {
    x: usize,
    y: usize,
    memory: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: u64,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER` where `context` is one.
#[repr(C)]
pub struct Solid {
    from: SolidSide,
    to: SolidSide,
    extent: [usize; 3],
}

#[repr(C)]
struct SolidSide {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    memory: u32,
    host: u64,
    device: u64,
    array: u64,
    context: usize,
    pitch: u64,
    height: u64,
}

/// `CUDA_MEMCPY3D_BATCH_OP`.
#[repr(C)]
pub struct Item {
    from: Operand,
    to: Operand,
    extent: [usize; 3],
    order: u32,
    flags: u32,
}

/// A pointer with the length of its rows and the height of its planes, or an array with three
/// offsets.
#[repr(C)]
struct Operand {
    kind: u32,
    address: u64,
    rest: [usize; 3],
}

const POINTER: u32 = 1;
const ARRAY: u32 = 2;

impl SolidSide {
    fn place(&self) -> Result<Place, u32> {
        let memory = Memory::from_number(self.memory)?;
        let (address, pitch, plane) = match memory {
            Memory::Array => {
                let layout = api_array::layout(self.array)?;
                (self.array, layout.pitch, layout.plane)
            }
            Memory::Host => (self.host, self.pitch, self.pitch.wrapping_mul(self.height)),
            _ => (self.device, self.pitch, self.pitch.wrapping_mul(self.height)),
        };
        require(address != 0)?;
        let place = Place {
            memory,
            address,
            pitch,
            plane,
        };
        Ok(place.moved(self.x, self.y, self.z))
    }
}

impl FlatSide {
    fn solid(&self) -> SolidSide {
        let FlatSide { x, y, memory, .. } = *self;
        SolidSide {
            x,
            y,
            z: 0,
            level: 0,
            memory,
            host: self.host,
            device: self.device,
            array: self.array,
            context: 0,
            pitch: self.pitch,
            height: 0,
        }
    }
}

impl Operand {
    fn place(&self, extent: &[usize; 3]) -> Result<Place, u32> {
        let [first, second, third] = self.rest;
        if self.kind == ARRAY {
            let layout = api_array::layout(self.address)?;
            let place = Place {
                memory: Memory::Array,
                address: self.address,
                pitch: layout.pitch,
                plane: layout.plane,
            };
            return Ok(place.moved(first * layout.element as usize, second, third));
        }
        require(self.kind == POINTER)?;
        // Zeros mean: as wide and as high as what is copied.
        let pitch = if first == 0 { extent[0] } else { first } as u64;
        let height = if second == 0 { extent[1] } else { second } as u64;
        Ok(Place {
            memory: Memory::Unified,
            address: self.address,
            pitch,
            plane: pitch.wrapping_mul(height),
        })
    }

    /// The bytes that one of an extent's width is: those of an array's element.
    fn unit(&self) -> Result<usize, u32> {
        match self.kind {
            ARRAY => Ok(api_array::layout(self.address)?.element as usize),
            _ => Ok(1),
        }
    }
}

impl Item {
    fn copy(&self) -> Result<Option<Copy>, u32> {
        let [width, height, depth] = self.extent;
        let unit = self.to.unit()?.max(self.from.unit()?);
        let extent = [width.checked_mul(unit).ok_or(INVALID_VALUE)?, height, depth];
        Copy::new(self.to.place(&extent)?, self.from.place(&extent)?, extent)
    }
}

impl Solid {
    pub fn copy(&self) -> Result<Option<Copy>, u32> {
        Copy::new(self.to.place()?, self.from.place()?, self.extent)
    }
}

unsafe fn flat(plan: *const Flat, how: In) -> Result<(), u32> {
    context::current()?;
    require(!plan.is_null())?;
    // SAFETY: not null, so a whole structure by the contract of the exports.
    let plan = unsafe { &*plan };
    let plan = Solid {
        from: plan.from.solid(),
        to: plan.to.solid(),
        extent: [plan.extent[0], plan.extent[1], 1],
    };
    how.submit(plan.copy()?.map(Work::Copy))
}

unsafe fn solid(plan: *const Solid, how: In) -> Result<(), u32> {
    context::current()?;
    require(!plan.is_null())?;
    // SAFETY: as above.
    let copy = unsafe { &*plan }.copy()?;
    how.submit(copy.map(Work::Copy))
}

unsafe fn batch(count: usize, items: *const Item, stream: usize) -> Result<(), u32> {
    context::current()?;
    require(count > 0 && !items.is_null())?;
    // SAFETY: a table of the caller.
    for item in unsafe { std::slice::from_raw_parts(items, count) } {
        Stream(stream).submit(item.copy()?.map(Work::Copy))?;
    }
    Ok(())
}

api! {
    fn cuMemcpy2D_v2 / cuMemcpy2D_v2_ptds (plan: *const Flat) { flat(plan, Sync)?; }
    fn cuMemcpy2DUnaligned_v2 / cuMemcpy2DUnaligned_v2_ptds (plan: *const Flat) { flat(plan, Sync)?; }
    fn cuMemcpy2DAsync_v2 / cuMemcpy2DAsync_v2_ptsz (plan: *const Flat, stream: usize) { flat(plan, Stream(stream))?; }
    fn cuMemcpy3D_v2 / cuMemcpy3D_v2_ptds (plan: *const Solid) { solid(plan, Sync)?; }
    fn cuMemcpy3DAsync_v2 / cuMemcpy3DAsync_v2_ptsz (plan: *const Solid, stream: usize) { solid(plan, Stream(stream))?; }
    fn cuMemcpy3DPeer / cuMemcpy3DPeer_ptds (plan: *const Solid) { solid(plan, Sync)?; }
    fn cuMemcpy3DPeerAsync / cuMemcpy3DPeerAsync_ptsz (plan: *const Solid, stream: usize) { solid(plan, Stream(stream))?; }
    fn cuMemcpy3DBatchAsync / cuMemcpy3DBatchAsync_ptsz (count: usize, items: *const Item, failed: *mut usize, _flags: u64, stream: usize) {
        put_if(failed, usize::MAX);
        batch(count, items, stream)?;
    }
    fn cuMemcpy3DBatchAsync_v2 / cuMemcpy3DBatchAsync_v2_ptsz (count: usize, items: *const Item, _flags: u64, stream: usize) {
        batch(count, items, stream)?;
    }
}
