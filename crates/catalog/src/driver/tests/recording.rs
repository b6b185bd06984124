//! The ioctls of a CUDA program on an H200 with driver 580.159.04, as recorded. Also read by tests of who held what.

use super::Argument;
use crate::driver::Device;

const TRACE: &str = include_str!("ioctl_trace_h200_580.159.04.txt");

/// One recorded ioctl: device, number, class or method or size, NV_STATUS or return value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    pub device: Device,
    pub nr: u32,
    pub detail: Option<u32>,
    pub status: u32,
}

impl Recorded {
    /// `c2b:cbc0!0`
    fn parse(word: &str) -> Option<Self> {
        let device = match word.get(..1)? {
            "c" => Device::Control,
            "g" => Device::Gpu(0),
            "u" => Device::Uvm,
            _ => return None,
        };
        let hex = |digits| u32::from_str_radix(digits, 16).ok();
        let (call, status) = word[1..].split_once('!')?;
        let (nr, detail) = call
            .split_once(':')
            .map_or((call, None), |(nr, detail)| (nr, hex(detail)));
        Some(Self {
            device,
            nr: hex(nr)?,
            detail,
            status: hex(status)?,
        })
    }

    /// The argument that the program passed, as far as it was recorded.
    pub(crate) fn argument(&self) -> Argument {
        match (self.device, self.nr, self.detail) {
            (Device::Uvm, nr, _) => Argument::uvm(nr),
            (device, 0x2b, Some(class)) => Argument::front(device, 0x2b, 48).u32(12, class).answer(40, self.status),
            (device, 0x2a, Some(cmd)) => Argument::front(device, 0x2a, 32).u32(8, cmd).answer(28, self.status),
            // not recorded of which class; it is pinned memory
            (device, 0x27, Some(size)) => Argument::front(device, 0x27, size).u32(12, 0x71),
            (device, nr, Some(size)) => Argument::front(device, nr, size),
            (device, nr, None) => panic!("{device} {nr:#x}: no size was recorded"),
        }
    }
}

/// The recorded CUDA calls, in order, each with its ioctls.
pub(crate) fn calls() -> Vec<(&'static str, Vec<Recorded>)> {
    let mut calls = Vec::new();
    for line in TRACE.lines() {
        let words = match line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            Some((call, words)) => {
                calls.push((call, Vec::new()));
                words
            }
            None => line,
        };
        if let Some((_, ioctls)) = calls.last_mut() {
            ioctls.extend(words.split_whitespace().filter_map(Recorded::parse));
        }
    }
    calls
}

/// The ioctls of the first call whose name begins so.
pub(crate) fn of(call: &str) -> Vec<Recorded> {
    let found = calls().into_iter().find(|(name, _)| name.starts_with(call));
    found.unwrap_or_else(|| panic!("{call} is not in the trace")).1
}
