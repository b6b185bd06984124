//! Places to hook.

use crate::elf::Cost as Place;
use crate::wire;

/// One place to probe in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub offset: u64,
    pub row: u32,
    pub returns: bool,
    /// Number of the static probe at it; 0: a function's entry.
    pub site: u32,
    /// File offset of a counter that is raised while the probe is there; 0: none.
    pub semaphore: u64,
    /// How the kernel runs the instruction there.
    pub place: Place,
}

impl Point {
    /// The entry of a function.
    pub fn entry(offset: u64, row: u32, returns: bool) -> Point {
        Point {
            offset,
            row,
            returns,
            site: 0,
            semaphore: 0,
            place: Place::Emulated,
        }
    }

    /// The same where the kernel runs the instruction in the way of `place`.
    #[must_use]
    pub fn at(self, place: Place) -> Point {
        Point { place, ..self }
    }

    /// What the kernel program is told at it.
    pub(crate) fn cookie(&self) -> u64 {
        let place = match self.place {
            Place::Emulated => 0,
            Place::SingleStepped => wire::COOKIE_STEPPED,
            Place::Nop5 => wire::COOKIE_NOP5,
        };
        place | u64::from(self.site) << 32 | u64::from(self.row)
    }
}

/// One function of the kernel, or one tracepoint, to hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelPoint {
    pub row: u32,
    /// Number of where its arguments lie; 0: in the order of its prototype.
    pub site: u32,
    pub returns: bool,
}

impl KernelPoint {
    /// What the kernel program is told at it.
    pub(crate) fn cookie(&self) -> u64 {
        u64::from(self.site) << 32 | u64::from(self.row)
    }
}
