//! A Python code object, read from the interpreter's memory: which function it is, and its lines.

use super::layout::{Code as Offsets, Layout};
use super::lines::{line_310, line_311};
use super::memory::Memory;
use super::text;
use super::wire::{ABSENT, PythonFrame};
use crate::wire::{u32_at, u64_at};

/// Bytes of a code object that are read at once.
const HEAD: usize = 512;
/// The largest line table that is read.
const LARGEST_TABLE: usize = 4 << 20;
/// Threads whose copies of the instructions are looked through, and bytes of a copy.
const MOST_COPIES: u64 = 1024;
const LARGEST_COPY: u64 = 64 << 20;
/// Bytes of an instruction with its argument.
const UNIT: u64 = 2;

/// A Python function, as it was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    pub file: String,
    /// With the names of what it is defined in, from 3.11 on.
    pub function: String,
    first_line: i32,
    table: Vec<u8>,
    at: u64,
    identity: Identity,
}

/// Tells a code object from one that took its place: where its names and its lines are.
type Identity = [u64; 3];

impl Code {
    /// Reads the code object at `address`. `None`: there is none, or not all of it can be read.
    pub fn read(memory: &impl Memory, layout: &Layout, address: u64) -> Option<Code> {
        let offsets = &layout.code;
        let head = head(memory, address)?;
        is_code(memory, offsets, u64_at(&head, offsets.object_type as usize)).then_some(())?;
        let text = |offset: u32| text::read(memory, &layout.text, u64_at(&head, offset as usize));
        let function = if offsets.qualname == ABSENT {
            None
        } else {
            text(offsets.qualname)
        };
        Some(Code {
            file: text(offsets.filename)?,
            function: function.or_else(|| text(offsets.name))?,
            first_line: u32_at(&head, offsets.firstlineno as usize) as i32,
            table: table(memory, offsets, u64_at(&head, offsets.linetable as usize)).unwrap_or_default(),
            at: address,
            identity: identity(&head, offsets),
        })
    }

    /// Whether another object has taken its place. Of a process that has ended: no.
    pub fn is_replaced(&self, memory: &impl Memory, layout: &Layout) -> bool {
        head(memory, self.at).is_some_and(|head| identity(&head, &layout.code) != self.identity)
    }

    /// The line that `frame` is at.
    pub fn line(&self, memory: &impl Memory, layout: &Layout, frame: PythonFrame) -> Option<u32> {
        let line = if layout.code.instructions == ABSENT {
            line_310(&self.table, self.first_line, frame.instruction.checked_mul(UNIT)?)
        } else {
            let at = self.unit(memory, &layout.code, frame.instruction)?;
            line_311(&self.table, self.first_line, at)
        };
        line.and_then(|line| u32::try_from(line).ok())
    }

    /// Which instruction, counted in units, lies at an address.
    fn unit(&self, memory: &impl Memory, offsets: &Offsets, address: u64) -> Option<u64> {
        let first = self.at.wrapping_add(u64::from(offsets.instructions));
        if offsets.copies == ABSENT {
            return Some(address.wrapping_sub(first) / UNIT);
        }
        let copies = memory.word(self.at.wrapping_add(u64::from(offsets.copies)))?;
        let count = memory.word(copies)?.min(MOST_COPIES);
        let starts = (0..count).filter_map(|n| memory.word(copies.checked_add(8 + n * 8)?));
        // the copy that begins last before the address
        let start = starts
            .chain([first])
            .filter(|start| *start != 0 && *start <= address)
            .max()?;
        Some(address - start)
            .filter(|bytes| *bytes < LARGEST_COPY)
            .map(|bytes| bytes / UNIT)
    }
}

/// The beginning of an object; what lies in the next page may be unreadable, and is then 0.
fn head(memory: &impl Memory, address: u64) -> Option<[u8; HEAD]> {
    let mut head = [0; HEAD];
    if memory.read(address, &mut head).is_some() {
        return Some(head);
    }
    let in_page = (4096 - address % 4096) as usize;
    head = [0; HEAD];
    memory.read(address, head.get_mut(..in_page)?)?;
    Some(head)
}

fn identity(head: &[u8], offsets: &Offsets) -> Identity {
    [offsets.filename, offsets.name, offsets.linetable].map(|offset| u64_at(head, offset as usize))
}

/// Whether the type at `address` is that of code objects.
fn is_code(memory: &impl Memory, offsets: &Offsets, address: u64) -> bool {
    let name = address.checked_add(u64::from(offsets.type_name));
    let name = name
        .and_then(|at| memory.word(at))
        .and_then(|at| memory.bytes(at, 5, 5));
    name.as_deref() == Some(b"code\0")
}

/// The line table at `address`, which is a `bytes` object.
fn table(memory: &impl Memory, offsets: &Offsets, address: u64) -> Option<Vec<u8>> {
    let size = memory.word(address.checked_add(u64::from(offsets.bytes_size))?)?;
    memory.bytes(address.checked_add(u64::from(offsets.bytes_data))?, size, LARGEST_TABLE)
}
