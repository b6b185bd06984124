//! Copies of rows and planes: the runtime's structures become the driver's.

use std::ffi::c_void;

use crate::api_memory::PitchedPointer;
use crate::driver::{Driver, check, primary};
use crate::last_error::{INVALID_MEMCPY_DIRECTION, INVALID_PITCH, INVALID_VALUE};

pub const HOST_TO_HOST: u32 = 0;
pub const HOST_TO_DEVICE: u32 = 1;
pub const DEVICE_TO_HOST: u32 = 2;
pub const DEVICE_TO_DEVICE: u32 = 3;
pub const DEFAULT: u32 = 4;

/// `CUmemorytype`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const ARRAY: u32 = 3;
const UNIFIED: u32 = 4;

/// `cudaMemcpy3DParms`.
#[repr(C)]
pub struct Parms {
    from: End,
    to: End,
    extent: [usize; 3],
    kind: u32,
}

/// `cudaMemcpy3DPeerParms`.
#[repr(C)]
pub struct PeerParms {
    from: End,
    from_device: i32,
    to: End,
    to_device: i32,
    extent: [usize; 3],
}

/// An array or a pointer, and where in it.
#[repr(C)]
struct End {
    array: u64,
    position: [usize; 3],
    pointer: PitchedPointer,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub struct Flat {
    from: FlatSide,
    to: FlatSide,
    extent: [usize; 2],
}

#[repr(C)]
#[derive(Default)]
struct FlatSide {
    x: usize,
    y: usize,
    memory: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER` with contexts.
#[repr(C)]
pub struct Solid {
    from: SolidSide,
    to: SolidSide,
    extent: [usize; 3],
}

#[repr(C)]
#[derive(Default)]
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
    pitch: usize,
    height: usize,
}

/// What a copy's kind says of its source and its destination.
fn memory(kind: u32) -> Result<(u32, u32), u32> {
    match kind {
        HOST_TO_HOST => Ok((HOST, HOST)),
        HOST_TO_DEVICE => Ok((HOST, DEVICE)),
        DEVICE_TO_HOST => Ok((DEVICE, HOST)),
        DEVICE_TO_DEVICE => Ok((DEVICE, DEVICE)),
        DEFAULT => Ok((UNIFIED, UNIFIED)),
        _ => Err(INVALID_MEMCPY_DIRECTION),
    }
}

/// Rows between two pointers, each with its pitch.
pub fn flat(to: (u64, usize), from: (u64, usize), width: usize, height: usize, kind: u32) -> Result<Flat, u32> {
    let (source, target) = memory(kind)?;
    if width > to.1 || width > from.1 {
        return Err(INVALID_PITCH);
    }
    let side = |(address, pitch): (u64, usize), memory| FlatSide {
        memory,
        host: address,
        device: address,
        pitch,
        ..FlatSide::default()
    };
    Ok(Flat {
        from: side(from, source),
        to: side(to, target),
        extent: [width, height],
    })
}

/// Rows of an array, from (x in bytes, y) on, or of a pointer with its pitch.
#[derive(Clone, Copy)]
pub enum Rows {
    Array(u64, usize, usize),
    Pointer(u64, usize),
}

impl Rows {
    fn side(self, memory: u32) -> SolidSide {
        match self {
            Rows::Array(array, x, y) => SolidSide {
                x,
                y,
                memory: ARRAY,
                array,
                ..SolidSide::default()
            },
            Rows::Pointer(address, pitch) => SolidSide {
                memory,
                host: address,
                device: address,
                pitch,
                ..SolidSide::default()
            },
        }
    }
}

/// Rows of which an array has some.
pub fn rows(to: Rows, from: Rows, width: usize, height: usize, kind: u32) -> Result<Solid, u32> {
    let (source, target) = memory(kind)?;
    Ok(Solid {
        from: from.side(source),
        to: to.side(target),
        extent: [width, height, 1],
    })
}

/// The bytes of an array's element.
fn element(d: &Driver, array: u64) -> Result<usize, u32> {
    // CUDA_ARRAY3D_DESCRIPTOR: format at 24, channels at 28.
    let mut volume = [0u64; 5];
    // SAFETY: room for the whole structure.
    check(unsafe { (d.cuArray3DGetDescriptor_v2)(volume.as_mut_ptr().cast(), array) })?;
    let (format, channels) = (volume[3] as u32, (volume[3] >> 32) as usize);
    let bytes = match format {
        1 | 8 => 1,
        2 | 9 | 16 => 2,
        _ => 4,
    };
    Ok(bytes * channels)
}

impl End {
    fn side(&self, memory: u32, unit: usize) -> SolidSide {
        let [x, y, z] = self.position;
        let (memory, x) = match self.array {
            0 => (memory, x),
            _ => (ARRAY, x * unit),
        };
        SolidSide {
            x,
            y,
            z,
            memory,
            host: self.pointer.address,
            device: self.pointer.address,
            array: self.array,
            pitch: self.pointer.pitch,
            height: self.pointer.height,
            ..SolidSide::default()
        }
    }
}

/// Extents are in elements when an array takes part.
fn solid(d: &Driver, to: (&End, u32), from: (&End, u32), extent: [usize; 3]) -> Result<Solid, u32> {
    let unit = match (to.0.array, from.0.array) {
        (0, 0) => 1,
        (0, array) | (array, _) => element(d, array)?,
    };
    let [width, height, depth] = extent;
    Ok(Solid {
        from: from.0.side(from.1, unit),
        to: to.0.side(to.1, unit),
        extent: [width.checked_mul(unit).ok_or(INVALID_VALUE)?, height, depth],
    })
}

impl Parms {
    pub fn solid(&self, d: &Driver) -> Result<Solid, u32> {
        let (source, target) = memory(self.kind)?;
        solid(d, (&self.to, target), (&self.from, source), self.extent)
    }
}

impl PeerParms {
    pub fn solid(&self, d: &Driver) -> Result<Solid, u32> {
        let mut copy = solid(d, (&self.to, DEVICE), (&self.from, DEVICE), self.extent)?;
        copy.from.context = primary(d, self.from_device)?;
        copy.to.context = primary(d, self.to_device)?;
        Ok(copy)
    }
}

/// As the driver takes it.
pub fn plan<T>(copy: &T) -> *const c_void {
    std::ptr::from_ref(copy).cast()
}

/// A structure of the caller.
///
/// # Safety
/// `structure` is null or valid.
pub unsafe fn given<'a, T>(structure: *const T) -> Result<&'a T, u32> {
    // SAFETY: by this function's contract.
    unsafe { structure.as_ref() }.ok_or(INVALID_VALUE)
}
