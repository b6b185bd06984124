//! A call's argument, made up field by field, and what the kernel side would copy of it.

use crate::driver::reads::{Pieces, reads};
use crate::driver::{Device, Dialect, Ioctl, Request, Seen, decode};

/// The memory of an argument at enter, what the driver writes into it, and what lies behind `pAllocParms`.
pub struct Argument {
    request: Request,
    bytes: Vec<u8>,
    answers: Vec<(usize, Vec<u8>)>,
    behind: Vec<u8>,
    result: i64,
}

impl Argument {
    /// An argument of zeros for a request of the front end.
    pub fn front(device: Device, nr: u32, size: u32) -> Self {
        Self::new(Request::new(device, 0xc000_4600 | size << 16 | nr))
    }

    /// One of UVM, with room for any struct.
    pub fn uvm(nr: u32) -> Self {
        Self::new(Request::new(Device::Uvm, nr))
    }

    pub(crate) fn new(request: Request) -> Self {
        let room = request.size.unwrap_or(16 << 10).max(16) as usize;
        Self {
            request,
            bytes: vec![0; room],
            answers: Vec::new(),
            behind: Vec::new(),
            result: 0,
        }
    }

    pub fn u32(self, offset: usize, value: u32) -> Self {
        self.bytes(offset, &value.to_le_bytes())
    }

    pub(crate) fn u64(self, offset: usize, value: u64) -> Self {
        self.bytes(offset, &value.to_le_bytes())
    }

    pub fn bytes(mut self, offset: usize, bytes: &[u8]) -> Self {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// What the driver writes there.
    pub fn answer(mut self, offset: usize, value: u32) -> Self {
        self.answers.push((offset, value.to_le_bytes().to_vec()));
        self
    }

    pub fn behind(mut self, bytes: &[u8]) -> Self {
        self.behind = bytes.to_vec();
        self
    }

    pub fn result(mut self, result: i64) -> Self {
        self.result = result;
        self
    }

    pub fn decode(&self, dialect: Dialect) -> Ioctl {
        self.decode_with(dialect, true, true)
    }

    /// Decodes with the program's memory readable at enter, at exit, or not.
    pub(crate) fn decode_with(&self, dialect: Dialect, enter: bool, exit: bool) -> Ioctl {
        let plan = reads(&self.request, dialect);
        let mut after = self.bytes.clone();
        for (offset, bytes) in self.answers.iter().filter(|_| self.result >= 0) {
            after[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        let enter = if enter {
            copied(&self.bytes, plan.enter)
        } else {
            Vec::new()
        };
        let exit = if exit { copied(&after, plan.exit) } else { Vec::new() };
        let seen = Seen {
            request: self.request,
            enter: &enter,
            exit: &exit,
            behind: &self.behind,
            result: self.result,
        };
        decode(&seen, dialect)
    }
}

/// The pieces of an argument, one after the other.
pub(crate) fn copied(argument: &[u8], pieces: Pieces) -> Vec<u8> {
    let piece = |at: usize| {
        let offset = usize::from(pieces.0[at].offset);
        &argument[offset..offset + usize::from(pieces.0[at].length)]
    };
    [piece(0), piece(1)].concat()
}
