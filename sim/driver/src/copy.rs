//! Copies: which way they go, how long they take, and how long the host waits for them.
//!
//! Who waits follows CUDA's "API synchronization behavior".

use gpusim_common::ledger::Bytes;

use crate::data;
use crate::machine::{Bus, machine};
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
    /// What memory it goes to and comes from.
    pub ends: (&'static str, &'static str),
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
            ends: (target.name(), source.name()),
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
        machine().copy_ns(self.bytes(), self.bus())
    }

    fn bus(&self) -> Bus {
        match self.host {
            _ if self.way == Way::DtoD => Bus::Device,
            Some(Host::Pageable) => Bus::Pageable,
            _ => Bus::Host,
        }
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
        Wait::AllBut(machine().copy_ns(self.bytes().min(STAGE_BYTES), self.bus()))
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

#[cfg(test)]
mod tests {
    use super::{Copy, Host, STAGE_BYTES, Wait, Way};
    use crate::place::{Memory, Place};

    const DONE: Wait = Wait::AllBut(0);
    const SMALL: u64 = 4;
    const LARGE: u64 = 8 * STAGE_BYTES;

    fn copy(way: Way, host: Option<Host>, bytes: u64) -> Copy {
        let place = Place::linear(Memory::Unified, 1 << 20);
        Copy {
            to: place,
            from: place,
            width: bytes as usize,
            height: 1,
            depth: 1,
            way,
            host,
            on_device: (false, false),
            ends: ("", ""),
        }
    }

    #[test]
    fn copies_inside_and_between_devices_keep_nobody_waiting() {
        for way in [Way::DtoD, Way::PtoP] {
            assert_eq!(copy(way, None, LARGE).wait(true), Wait::No);
            assert_eq!(copy(way, None, LARGE).wait(false), Wait::No);
        }
    }

    #[test]
    fn the_host_waits_for_what_it_is_sent() {
        for host in [Host::Pageable, Host::Pinned, Host::Managed] {
            assert_eq!(copy(Way::DtoH, Some(host), SMALL).wait(true), DONE);
        }
        assert_eq!(copy(Way::DtoH, Some(Host::Pageable), SMALL).wait(false), DONE);
        assert_eq!(copy(Way::DtoH, Some(Host::Pinned), LARGE).wait(false), Wait::No);
        assert_eq!(copy(Way::HtoH, Some(Host::Pinned), LARGE).wait(false), DONE);
    }

    #[test]
    fn what_the_host_sends_from_pageable_memory_is_staged() {
        let small = copy(Way::HtoD, Some(Host::Pageable), SMALL);
        assert_eq!(small.wait(false), Wait::No);
        assert_eq!(small.wait(true), Wait::AllBut(small.ns()));
        let large = copy(Way::HtoD, Some(Host::Pageable), LARGE);
        let staged = copy(Way::HtoD, Some(Host::Pageable), STAGE_BYTES);
        assert_eq!(large.wait(true), Wait::AllBut(staged.ns()));
        assert_eq!(large.wait(false), large.wait(true));
    }

    #[test]
    fn what_the_host_sends_from_pinned_memory_is_waited_for_only_if_asked() {
        assert_eq!(copy(Way::HtoD, Some(Host::Pinned), LARGE).wait(true), DONE);
        assert_eq!(copy(Way::HtoD, Some(Host::Pinned), LARGE).wait(false), Wait::No);
    }
}
