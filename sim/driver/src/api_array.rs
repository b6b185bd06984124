//! Arrays, which have handles instead of addresses.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::context;
use crate::error::*;
use crate::memory::{self, Block, Kind};

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
pub struct Plane {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Volume {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

const LAYERED: u32 = 1;

impl Volume {
    fn element(&self) -> Result<u64, u32> {
        let bytes = match self.format {
            1 | 8 => 1,
            2 | 9 | 16 => 2,
            3 | 10 | 32 => 4,
            _ => return Err(INVALID_VALUE),
        };
        require(matches!(self.channels, 1 | 2 | 4))?;
        Ok(bytes * u64::from(self.channels))
    }

    fn bytes(&self) -> Result<u64, u32> {
        require(self.width > 0)?;
        let factors = [self.height.max(1) as u64, self.depth.max(1) as u64, self.element()?];
        let mut bytes = self.width as u64;
        for factor in factors {
            bytes = bytes.checked_mul(factor).ok_or(OUT_OF_MEMORY)?;
        }
        Ok(bytes)
    }

    /// Half as much each way; the layers of a layered array stay.
    fn next_level(&self) -> Volume {
        let half = |n: usize| if n == 0 { 0 } else { (n / 2).max(1) };
        let depth = if self.flags & LAYERED != 0 {
            self.depth
        } else {
            half(self.depth)
        };
        Volume {
            width: half(self.width),
            height: half(self.height),
            depth,
            ..*self
        }
    }
}

/// What arrays were made as, by handle.
static ARRAYS: Mutex<BTreeMap<u64, Volume>> = Mutex::new(BTreeMap::new());

fn arrays() -> MutexGuard<'static, BTreeMap<u64, Volume>> {
    ARRAYS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an array is laid out like, in bytes.
pub struct Layout {
    pub element: u64,
    pub pitch: u64,
    pub plane: u64,
}

pub fn layout(handle: u64) -> Result<Layout, u32> {
    let volume = *arrays().get(&handle).ok_or(INVALID_HANDLE)?;
    let element = volume.element()?;
    let pitch = volume.width as u64 * element;
    let plane = pitch * volume.height.max(1) as u64;
    Ok(Layout { element, pitch, plane })
}

unsafe fn create(place: *mut u64, volume: Volume) -> Result<(), u32> {
    let block = Block::of(context::current()?, volume.bytes()?, Kind::Array);
    require(!place.is_null())?;
    let handle = memory::allocate(block)?;
    arrays().insert(handle, volume);
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, handle) }
}

unsafe fn create_levels(place: *mut u64, volume: Volume, levels: u32) -> Result<(), u32> {
    let context = context::current()?;
    require(!place.is_null() && (1..=17).contains(&levels))?;
    let (mut bytes, mut level) = (0u64, volume);
    for _ in 0..levels {
        bytes = bytes.checked_add(level.bytes()?).ok_or(OUT_OF_MEMORY)?;
        level = level.next_level();
    }
    let block = Block::of(context, bytes, Kind::Mipmapped);
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, memory::allocate(block)?) }
}

fn destroy(handle: u64, kind: Kind) -> Result<(), u32> {
    context::current()?;
    memory::release(handle, &[kind]).map_err(|_| INVALID_HANDLE)
}

api! {
    fn cuArrayCreate_v2(place: *mut u64, plane: *const Plane) {
        require(!plane.is_null())?;
        let Plane { width, height, format, channels } = plane.read();
        create(place, Volume { width, height, depth: 0, format, channels, flags: 0 })?;
    }
    fn cuArray3DCreate_v2(place: *mut u64, volume: *const Volume) {
        require(!volume.is_null())?;
        create(place, volume.read())?;
    }
    fn cuArray3DGetDescriptor_v2(place: *mut Volume, handle: u64) {
        context::current()?;
        put(place, *arrays().get(&handle).ok_or(INVALID_HANDLE)?)?;
    }
    fn cuArrayDestroy(handle: u64) { destroy(handle, Kind::Array)?; }
    fn cuMipmappedArrayCreate(place: *mut u64, volume: *const Volume, levels: u32) {
        require(!volume.is_null())?;
        create_levels(place, volume.read(), levels)?;
    }
    fn cuMipmappedArrayDestroy(handle: u64) { destroy(handle, Kind::Mipmapped)?; }
}
