//! Fills: a pattern written to rows of device memory.

use crate::data;
use crate::error::INVALID_VALUE;
use crate::machine::{Bus, machine};
use crate::memory::{self, Kind};

#[derive(Clone, Copy)]
pub struct Fill {
    address: u64,
    pitch: u64,
    row_bytes: u64,
    rows: u64,
    pattern: [u8; 4],
    element: usize,
    kind: Kind,
}

impl Fill {
    /// `rows` rows of `width` elements of 1, 2 or 4 bytes; `None` if that is nothing.
    pub fn new(
        address: u64,
        pitch: usize,
        value: u32,
        element: usize,
        width: usize,
        rows: usize,
    ) -> Result<Option<Fill>, u32> {
        if width == 0 || rows == 0 {
            return Ok(None);
        }
        if !matches!(element, 1 | 2 | 4) {
            return Err(INVALID_VALUE);
        }
        let row_bytes = (width as u64).checked_mul(element as u64).ok_or(INVALID_VALUE)?;
        let last = address.wrapping_add((pitch as u64).wrapping_mul(rows as u64 - 1));
        let kind = memory::spanning(address, row_bytes)?.kind;
        memory::spanning(last, row_bytes)?;
        Ok(Some(Fill {
            address,
            pitch: pitch as u64,
            row_bytes,
            rows: rows as u64,
            pattern: value.to_le_bytes(),
            element,
            kind,
        }))
    }

    pub fn bytes(&self) -> u64 {
        self.row_bytes.saturating_mul(self.rows)
    }

    pub fn ns(&self) -> u64 {
        machine().copy_ns(self.bytes(), Bus::Device)
    }

    /// Only a fill of pinned memory keeps the host waiting.
    pub fn is_waited_for(&self) -> bool {
        matches!(self.kind, Kind::Pinned | Kind::Registered)
    }

    /// What the log calls its memory, if it is not a device's alone.
    pub fn host(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Pinned | Kind::Registered => Some("pinned"),
            Kind::Managed => Some("managed"),
            _ => None,
        }
    }

    pub fn write(&self) {
        for row in 0..self.rows {
            let pattern = &self.pattern[..self.element];
            // SAFETY: allocated, as was checked.
            unsafe { data::fill(self.address + row * self.pitch, pattern, self.row_bytes as usize) };
        }
    }
}
