//! From the record of a system call on one of the driver's devices to what was asked and answered. Total: any bytes.

use super::branch::Dialect;
use super::decode::{Ioctl, Seen, decode};
use super::reads::{self, Pieces};
use super::request::{Device, Request};
use super::value::Value;
use super::{Act, value};
use crate::wire::{self, CallHeader, DriverCall};

/// Major number of the front end's devices, and one that stands for UVM's.
const FRONT_MAJOR: u32 = 195;

/// What a program has done to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Ioctl,
    Open,
    /// `last`: the file ends with it, and what was made through it.
    Close {
        last: bool,
    },
    Map,
    Poll,
}

/// A system call that has returned.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    pub header: CallHeader,
    pub step: Step,
    /// `None`: one that could not be opened.
    pub device: Option<Device>,
    call: DriverCall,
}

impl Record {
    /// Reads a record; `None` when it is too short, or of no step and device that are known.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = CallHeader::parse(bytes)?;
        let call = DriverCall::parse(bytes)?;
        let step = match call.step {
            wire::STEP_IOCTL => Step::Ioctl,
            wire::STEP_OPEN => Step::Open,
            wire::STEP_CLOSE => Step::Close {
                last: call.seen & wire::LAST_CLOSE != 0,
            },
            wire::STEP_MMAP => Step::Map,
            wire::STEP_POLL => Step::Poll,
            _ => return None,
        };
        let device = device(&call, step, header.result);
        (device.is_some() || step == Step::Open).then_some(Self {
            header,
            step,
            device,
            call,
        })
    }

    /// Tells the open file from any other.
    #[must_use]
    pub fn file(&self) -> u64 {
        self.call.file
    }

    /// What was asked, with names.
    #[must_use]
    pub fn decode(&self, dialect: Dialect) -> Ioctl {
        match self.step {
            Step::Ioctl => self.ioctl(dialect),
            _ => self.other(),
        }
    }

    fn ioctl(&self, dialect: Dialect) -> Ioctl {
        let request = self.request();
        let reads = reads::reads(&request, dialect);
        let before = self.pieces(reads.enter, &self.call.before, wire::SEEN_BEFORE);
        let after = self.pieces(reads.exit, &self.call.after, wire::SEEN_AFTER);
        let behind = if self.call.seen & wire::SEEN_BEHIND != 0 {
            &self.call.behind[..]
        } else {
            &[]
        };
        let seen = Seen {
            request,
            enter: &before,
            exit: &after,
            behind,
            result: self.header.result.cast_signed(),
        };
        decode(&seen, dialect)
    }

    fn request(&self) -> Request {
        let device = self.device.unwrap_or(Device::Control);
        let outer = Request::new(device, self.call.word);
        if self.call.wrapped == 0 {
            return outer;
        }
        Request {
            word: self.call.nr,
            nr: self.call.nr,
            size: Some(self.call.bytes),
            wrapped: true,
            ..outer
        }
    }

    fn pieces(&self, pieces: Pieces, copied: &[[u8; wire::PIECE]; 2], seen: u8) -> Vec<u8> {
        if self.call.seen & seen == 0 {
            return Vec::new();
        }
        let lengths = pieces.0.map(|piece| usize::from(piece.length).min(wire::PIECE));
        let parts = copied.iter().zip(lengths).map(|(piece, length)| &piece[..length]);
        parts.flatten().copied().collect()
    }

    fn other(&self) -> Ioctl {
        let result = self.header.result.cast_signed();
        let (name, args, size) = match self.step {
            Step::Open => (
                "open",
                vec![("path", Value::Text(value::text(&self.call.before[0])))],
                None,
            ),
            Step::Map => ("mmap", Vec::new(), Some(self.call.argument)),
            Step::Poll => ("poll", Vec::new(), None),
            _ => ("close", Vec::new(), None),
        };
        Ioctl {
            request: self.request(),
            name: name.to_owned(),
            args,
            size,
            status: None,
            result,
            act: Act::Nothing,
            notes: Vec::new(),
        }
    }
}

fn device(call: &DriverCall, step: Step, result: u64) -> Option<Device> {
    let minor = call.minor;
    match call.family {
        _ if step == Step::Open && result.cast_signed() < 0 => None,
        wire::FAMILY_FRONT => Device::of(FRONT_MAJOR, minor, super::request::Majors::default()),
        wire::FAMILY_UVM if minor == 1 => Some(Device::UvmTools),
        wire::FAMILY_UVM => Some(Device::Uvm),
        wire::FAMILY_CAPS => Some(Device::Caps),
        _ => None,
    }
}
