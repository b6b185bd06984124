//! Copies: which way they go, how long they take, and how long the host waits for them.
//!
//! Who waits follows CUDA's "API synchronization behavior".

use gpusim_common::ledger::Bytes;

use crate::data;
use crate::machine::machine;
use crate::memory;
use crate::place::{Host, Place, Side};

/// What a copy from pageable memory is staged in, piece by piece; one that is no larger is
/// staged whole before the call returns.
const STAGE_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    HtoD,
    DtoH,
    DtoD,
    HtoH,
    /// Between two devices.
    PtoP,
}

/// How far a copy is when the call returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    No,
    /// All but this long, which the rest still takes.
    AllBut(u64),
}

/// A copy whose sides have been found.
#[derive(Clone, Copy)]
pub struct Copy {
    to: Place,
    from: Place,
    width: usize,
    height: usize,
    depth: usize,
    pub way: Way,
    /// The kind of its host side; the worse of two.
    pub host: Option<Host>,
    on_device: (bool, bool),
}

impl Way {
    fn between(to: &Side, from: &Side) -> Way {
        match (from.on_device, to.on_device) {
            (false, false) => Way::HtoH,
            (false, true) => Way::HtoD,
            (true, false) => Way::DtoH,
            (true, true) if from.device() != to.device() => Way::PtoP,
            (true, true) => Way::DtoD,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Way::HtoD => "HtoD",
            Way::DtoH => "DtoH",
            Way::DtoD => "DtoD",
            Way::HtoH => "HtoH",
            Way::PtoP => "PtoP",
        }
    }

    /// What the ledger counts it as.
    pub fn counter(self) -> Bytes {
        match self {
            Way::HtoD => Bytes::HtoD,
            Way::DtoH => Bytes::DtoH,
            Way::DtoD | Way::PtoP => Bytes::DtoD,
            Way::HtoH => Bytes::HtoH,
        }
    }
}

impl Copy {
    /// `None` if there is nothing to copy.
    pub fn new(to: Place, from: Place, extent: [usize; 3]) -> Result<Option<Copy>, u32> {
        let [width, height, depth] = extent;
        if extent.contains(&0) {
            return Ok(None);
        }
        let (target, source) = (to.find()?, from.find()?);
        let way = Way::between(&target, &source);
        let copy = Copy {
            to,
            from,
            width,
            height,
            depth,
            way,
            host: match way {
                Way::HtoD => Some(source.host()),
                Way::DtoH => Some(target.host()),
                Way::HtoH if source.host() == Host::Pageable => Some(Host::Pageable),
                Way::HtoH => Some(target.host()),
                Way::DtoD | Way::PtoP => None,
            },
            on_device: (target.on_device, source.on_device),
        };
        copy.check(&to, target.on_device)?;
        copy.check(&from, source.on_device)?;
        Ok(Some(copy))
    }

    /// Device memory has to be there from the first row to the last.
    fn check(&self, place: &Place, on_device: bool) -> Result<(), u32> {
        if !on_device {
            return Ok(());
        }
        memory::spanning(place.address, self.width as u64)?;
        let last = place.row(self.height - 1, self.depth - 1);
        memory::spanning(last, self.width as u64).map(drop)
    }

    pub fn bytes(&self) -> u64 {
        let rows = (self.height as u64).saturating_mul(self.depth as u64);
        rows.saturating_mul(self.width as u64)
    }

    pub fn ns(&self) -> u64 {
        machine().copy_ns(self.bytes(), self.way != Way::DtoD)
    }

    /// How long the host waits; `synchronous` is the kind of function it calls.
    pub fn wait(&self, synchronous: bool) -> Wait {
        let is_pageable = self.host == Some(Host::Pageable);
        match self.way {
            Way::DtoD | Way::PtoP => Wait::No,
            Way::HtoH => Wait::AllBut(0),
            Way::DtoH if synchronous || is_pageable => Wait::AllBut(0),
            Way::DtoH => Wait::No,
            Way::HtoD if is_pageable => self.wait_for_staging(synchronous),
            Way::HtoD if synchronous => Wait::AllBut(0),
            Way::HtoD => Wait::No,
        }
    }

    fn wait_for_staging(&self, synchronous: bool) -> Wait {
        if !synchronous && self.bytes() <= STAGE_BYTES {
            return Wait::No;
        }
        Wait::AllBut(machine().copy_ns(self.bytes().min(STAGE_BYTES), true))
    }

    /// Moves the data.
    pub fn carry(&self) {
        for z in 0..self.depth {
            for y in 0..self.height {
                let to = (self.to.row(y, z), self.on_device.0);
                let from = (self.from.row(y, z), self.on_device.1);
                // SAFETY: host memory is the caller's by the contract of the exports; that of
                // devices was checked.
                unsafe { data::carry(to, from, self.width) };
            }
        }
    }
}
