//! System calls on the driver's devices: what is copied of each, its record, and what they take of a function's time.

use super::bytes::{u32_at, u64_at};
use super::call::HEADER_BYTES;

/// Bytes of one piece of an argument that the driver was given.
pub const PIECE: usize = 64;

pub const STEP_IOCTL: u8 = 1;
pub const STEP_OPEN: u8 = 2;
pub const STEP_CLOSE: u8 = 3;
pub const STEP_MMAP: u8 = 4;
pub const STEP_POLL: u8 = 5;

/// Whose device it is; the minor number tells which.
pub const FAMILY_FRONT: u8 = 1;
pub const FAMILY_UVM: u8 = 2;
pub const FAMILY_CAPS: u8 = 3;

pub const SEEN_BEFORE: u8 = 1;
pub const SEEN_AFTER: u8 = 2;
pub const SEEN_BEHIND: u8 = 4;
pub const LAST_CLOSE: u8 = 8;

/// In a key: the number is one of UVM's.
pub const UVM_REQUEST: u32 = 1 << 31;
/// In a key: where no other size fits.
pub const ANY_SIZE: u32 = u32::MAX;
pub const NO_OFFSET: u16 = u16::MAX;
/// Variant of the totals: the lower half is the class or method that a call is about.
pub const DRIVER_SUBJECT: u64 = 1 << 32;

/// Of the argument of a call to the driver; empty when `length` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub offset: u16,
    pub length: u16,
}

/// A number of the front end or, with [`UVM_REQUEST`], of UVM.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IoctlKey {
    pub nr: u32,
    pub size: u32,
}

/// What is copied of an argument of that number and size.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoctlPlan {
    pub before: [Piece; 2],
    pub after: [Piece; 2],
    /// Offset of the driver's answer, or [`NO_OFFSET`]; as are the others.
    pub status: u16,
    /// The class or method, which is counted apart.
    pub subject: u16,
    /// What lies there is copied by the class.
    pub pointer: u16,
    pub pad: u16,
    pub row: u32,
    pub pad2: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShareKey {
    pub tgid: u32,
    pub row: u32,
}

/// Of the time of a function's calls: what system calls on the driver's devices took.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverShare {
    pub calls: u64,
    pub ns: u64,
}

/// What follows the header of a system call on one of the driver's devices.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCall {
    pub file: u64,
    pub argument: u64,
    pub word: u32,
    pub nr: u32,
    pub bytes: u32,
    pub minor: u32,
    pub family: u8,
    pub step: u8,
    pub wrapped: u8,
    pub seen: u8,
    pub pad: u32,
    pub behind: [u8; 8],
    pub before: [[u8; PIECE]; 2],
    pub after: [[u8; PIECE]; 2],
}

impl DriverCall {
    /// Reads what follows the header; `None` when `record` is too short.
    pub fn parse(record: &[u8]) -> Option<DriverCall> {
        let bytes = record.get(HEADER_BYTES..DRIVER_BYTES)?;
        let piece = |offset: usize| bytes.get(offset..offset + PIECE)?.first_chunk().copied();
        Some(DriverCall {
            file: u64_at(bytes, 0),
            argument: u64_at(bytes, 8),
            word: u32_at(bytes, 16),
            nr: u32_at(bytes, 20),
            bytes: u32_at(bytes, 24),
            minor: u32_at(bytes, 28),
            family: bytes[32],
            step: bytes[33],
            wrapped: bytes[34],
            seen: bytes[35],
            pad: 0,
            behind: *bytes.get(40..)?.first_chunk()?,
            before: [piece(48)?, piece(48 + PIECE)?],
            after: [piece(48 + 2 * PIECE)?, piece(48 + 3 * PIECE)?],
        })
    }
}

/// Bytes of a whole record.
pub const DRIVER_BYTES: usize = HEADER_BYTES + size_of::<DriverCall>();
