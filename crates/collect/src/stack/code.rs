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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pieces of memory; nothing else can be read.
    #[derive(Default)]
    struct Pieces(Vec<(u64, Vec<u8>)>);

    impl Memory for Pieces {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            let piece = |(start, bytes): &(u64, Vec<u8>)| {
                let at = usize::try_from(address.checked_sub(*start)?).ok()?;
                bytes.get(at..at.checked_add(into.len())?).map(<[u8]>::to_vec)
            };
            into.copy_from_slice(&self.0.iter().find_map(piece)?);
            Some(())
        }
    }

    const AT: u64 = 0x10_0000;

    fn put(piece: &mut [u8], offset: u32, word: u64) {
        piece[offset as usize..][..8].copy_from_slice(&word.to_le_bytes());
    }

    /// A function `f` of file `f` at line 7, with one entry of 8 units.
    fn function(layout: &Layout) -> Pieces {
        let (offsets, text) = (&layout.code, &layout.text);
        let (mut code, mut kind, mut name, mut lines) = (vec![0; 512], vec![0; 64], vec![0; 128], vec![0; 64]);
        put(&mut code, offsets.object_type, 0x1000);
        for member in [offsets.filename, offsets.name] {
            put(&mut code, member, 0x3000);
        }
        if offsets.qualname != ABSENT {
            put(&mut code, offsets.qualname, 0x3000);
        }
        put(&mut code, offsets.linetable, 0x4000);
        put(&mut code, offsets.firstlineno & !7, 7 << (offsets.firstlineno % 8 * 8));
        put(&mut kind, offsets.type_name, 0x2000);
        put(&mut name, text.length, 1);
        name[text.state as usize] = 1 << 2 | 1 << 5 | 1 << 6;
        name[text.ascii_bytes as usize] = b'f';
        put(&mut lines, offsets.bytes_size, 2);
        let table: [u8; 2] = if layout.version == (3, 10) { [16, 0] } else { [0x87, 0] };
        lines[offsets.bytes_data as usize..][..2].copy_from_slice(&table);
        Pieces(vec![
            (AT, code),
            (0x1000, kind),
            (0x2000, b"code\0".to_vec()),
            (0x3000, name),
            (0x4000, lines),
        ])
    }

    fn read(layout: &Layout, memory: &Pieces, unit: u64) -> Option<(String, Option<u32>)> {
        let code = Code::read(memory, layout, AT)?;
        let first = if layout.version == (3, 10) {
            0
        } else {
            AT + u64::from(layout.code.instructions)
        };
        let scale = if layout.version == (3, 10) { 1 } else { 2 };
        let frame = PythonFrame {
            code: AT,
            instruction: first + unit * scale,
        };
        let line = code.line(memory, layout, frame);
        Some((format!("{} {}", code.file, code.function), line))
    }

    #[test]
    fn a_function_is_read_with_its_line() {
        for version in [(3, 10), (3, 11), (3, 12)] {
            let layout = Layout::of(version).unwrap();
            let memory = function(&layout);
            assert_eq!(
                read(&layout, &memory, 7),
                Some(("f f".to_owned(), Some(7))),
                "{version:?}"
            );
            assert_eq!(
                read(&layout, &memory, 8),
                Some(("f f".to_owned(), None)),
                "past its end"
            );
        }
    }

    #[test]
    fn what_is_no_code_object_is_refused() {
        let layout = Layout::of((3, 12)).unwrap();
        let mut memory = function(&layout);
        memory.0[2].1 = b"list\0".to_vec();
        assert_eq!(read(&layout, &memory, 0), None);
        assert_eq!(read(&layout, &Pieces::default(), 0), None);
    }

    #[test]
    fn an_object_that_took_its_place_is_noticed() {
        let layout = Layout::of((3, 12)).unwrap();
        let mut memory = function(&layout);
        let code = Code::read(&memory, &layout, AT).unwrap();
        assert!(!code.is_replaced(&memory, &layout));
        put(&mut memory.0[0].1, layout.code.linetable, 0x5000);
        assert!(code.is_replaced(&memory, &layout));
        assert!(!code.is_replaced(&Pieces::default(), &layout), "its process has ended");
    }

    proptest! {
        #[test]
        fn any_change_gives_a_function_or_none(piece in 0_usize..5, at in 0_usize..512, byte in any::<u8>(), unit in any::<u64>()) {
            let layout = Layout::of((3, 12)).unwrap();
            let mut memory = function(&layout);
            let length = memory.0[piece].1.len();
            memory.0[piece].1[at % length] = byte;
            if let Some(code) = Code::read(&memory, &layout, AT) {
                let _ = code.line(&memory, &layout, PythonFrame { code: AT, instruction: unit });
            }
        }
    }
}
