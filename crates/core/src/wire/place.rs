//! Where arguments lie that no calling convention tells of: those of static probes and of places in the kernel.

use super::process::COMM;
use super::word::WORD_NONE;

/// Arguments of a static probe.
pub const PLACES: usize = 12;
/// Static probes whose arguments lie in different places.
pub const PROBE_SITES: usize = 1024;

pub const PLACE_VALUE: u8 = 0;
pub const PLACE_MEMORY: u8 = 1;

/// Pointers that are followed to an argument in the kernel.
pub const KERNEL_STEPS: usize = 6;
/// Rows of the kernel whose arguments lie in different places.
pub const KERNEL_SITES: usize = 1024;

pub const KERNEL_SIGNED: u8 = 1;
pub const KERNEL_ADDRESS: u8 = 2;
pub const KERNEL_IN_RECORD: u8 = 4;

/// Where an argument of a static probe lies: `offset` plus registers is its value, or the value's address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    pub kind: u8,
    pub base: u8,
    pub index: u8,
    pub scale: u8,
    pub bytes: u8,
    pub is_signed: u8,
    pub pad: u16,
}

/// One static probe.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeSite {
    pub places: u32,
    pub pad: u32,
    pub place: [Place; PLACES],
}

/// Where an argument in the kernel lies; see `enum kernel_place_flag` for `flags`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPlace {
    pub base: u8,
    pub bytes: u8,
    pub steps: u8,
    pub flags: u8,
    pub shift: u32,
    pub mask: u64,
    pub offset: [u32; KERNEL_STEPS],
}

/// Where the arguments of a row in the kernel lie, and which of its calls are meant.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSite {
    pub places: u32,
    pub only: u32,
    pub only_bytes: u32,
    pub pad: u32,
    pub only_value: u64,
    pub only_text: [u8; COMM],
    pub place: [KernelPlace; PLACES],
}

impl KernelSite {
    /// Any call, without arguments.
    pub const EMPTY: KernelSite = KernelSite {
        places: 0,
        only: WORD_NONE as u32,
        only_bytes: 0,
        pad: 0,
        only_value: 0,
        only_text: [0; COMM],
        place: [KernelPlace {
            base: 0,
            bytes: 0,
            steps: 0,
            flags: 0,
            shift: 0,
            mask: 0,
            offset: [0; KERNEL_STEPS],
        }; PLACES],
    };
}
