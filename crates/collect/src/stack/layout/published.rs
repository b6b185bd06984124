//! The offsets that an interpreter publishes: in which order each version has them.

use super::{ADDRESS_BITS, Code, FIRST_NO_FUNCTION, Layout, Text, Version, version_of};
use crate::stack::wire::{ABSENT, ENTRY_SHIM, Python};
use crate::wire::u64_at;

/// Bytes at the beginning of `_PyRuntime` that are enough for [`Layout::published`].
pub const PUBLISHED_BYTES: usize = 1024;
const COOKIE: &[u8] = b"xdebugpy";
/// No structure of the interpreter is larger; no frame or string head is larger than [`WINDOW`](crate::stack::wire::WINDOW).
const LARGEST: u64 = 1 << 22;

impl Layout {
    /// Reads what the interpreter publishes. `None`: it publishes nothing, a version that is not known, or nonsense.
    pub fn published(bytes: &[u8]) -> Option<Layout> {
        let version = published_version(bytes)?;
        let widths: &Widths = match version {
            (3, 13) => &WIDTHS_3_13,
            (3, 14) => &WIDTHS_3_14,
            (3, 15) => &WIDTHS_3_15,
            _ => return None,
        };
        let table = Published { bytes, widths };
        let free_threaded = u64_at(bytes, 16) != 0;
        let layout = table.layout(version, free_threaded)?;
        layout.is_sane().then_some(layout)
    }
}

/// The version that the interpreter publishes beside its offsets.
pub(crate) fn published_version(bytes: &[u8]) -> Option<Version> {
    bytes.starts_with(COOKIE).then(|| version_of(u64_at(bytes, 8)))
}

/// The structures of `_Py_DebugOffsets` in their order, with the number of words that each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Runtime,
    Interpreter,
    Thread,
    Frame,
    Code,
    Object,
    Type,
    Other,
    Bytes,
    Unicode,
}

type Widths = [(Part, usize)];

/// `pycore_runtime.h` of 3.13.0.
const WIDTHS_3_13: [(Part, usize); 14] = [
    (Part::Runtime, 3),
    (Part::Interpreter, 13),
    (Part::Thread, 9),
    (Part::Frame, 6),
    (Part::Code, 10),
    (Part::Object, 2),
    (Part::Type, 4),
    (Part::Other, 3), // tuple
    (Part::Other, 3), // list
    (Part::Other, 3), // dict
    (Part::Other, 2), // float
    (Part::Other, 3), // int
    (Part::Bytes, 3),
    (Part::Unicode, 4),
];

/// `pycore_debug_offsets.h` of 3.14.
const WIDTHS_3_14: [(Part, usize); 15] = [
    (Part::Runtime, 3),
    (Part::Interpreter, 16),
    (Part::Thread, 9),
    (Part::Frame, 8),
    (Part::Code, 11),
    (Part::Object, 2),
    (Part::Type, 4),
    (Part::Other, 3), // tuple
    (Part::Other, 3), // list
    (Part::Other, 4), // set
    (Part::Other, 3), // dict
    (Part::Other, 2), // float
    (Part::Other, 3), // int
    (Part::Bytes, 3),
    (Part::Unicode, 4),
];

/// `pycore_debug_offsets.h` of 3.15.0.
const WIDTHS_3_15: [(Part, usize); 17] = [
    (Part::Runtime, 3),
    (Part::Interpreter, 16),
    (Part::Thread, 16),
    (Part::Other, 1), // item of the stack of exceptions
    (Part::Frame, 8),
    (Part::Code, 11),
    (Part::Object, 2),
    (Part::Type, 6),
    (Part::Other, 2), // type on the heap
    (Part::Other, 3), // tuple
    (Part::Other, 3), // list
    (Part::Other, 4), // set
    (Part::Other, 3), // dict
    (Part::Other, 2), // float
    (Part::Other, 3), // int
    (Part::Bytes, 3),
    (Part::Unicode, 5),
];

struct Published<'a> {
    bytes: &'a [u8],
    widths: &'a Widths,
}

impl Published<'_> {
    /// Word `index` of a structure; the first is its size.
    fn offset(&self, part: Part, index: usize) -> Option<u32> {
        let at = self.widths.iter().position(|(this, _)| *this == part)?;
        let before: usize = self.widths.iter().take(at).map(|(_, words)| words).sum();
        // the cookie, the version and whether there is a global lock come first
        let at = (3 + before + index) * 8;
        let offset = u64_at(self.bytes.get(..at + 8)?, at);
        u32::try_from(offset).ok().filter(|_| offset < LARGEST)
    }

    fn layout(&self, version: Version, free_threaded: bool) -> Option<Layout> {
        Some(Layout {
            version,
            python: self.python(version)?,
            code: self.code(version)?,
            text: self.text(version, free_threaded)?,
        })
    }

    fn python(&self, version: Version) -> Option<Python> {
        // since 3.15 three words about profiling lie before it
        let thread_id = if version >= (3, 15) { 8 } else { 5 };
        let frame = |index| self.offset(Part::Frame, index);
        let (previous, code, instruction, owner) = (frame(1)?, frame(2)?, frame(3)?, frame(5)?);
        let end = (previous + 8).max(code + 8).max(instruction + 8).max(owner + 1);
        Some(Python {
            runtime: 0,
            code_mask: ADDRESS_BITS,
            interpreters_head: self.offset(Part::Runtime, 2)?,
            interpreter_next: self.offset(Part::Interpreter, 2)?,
            threads_head: self.offset(Part::Interpreter, 3)?,
            thread_next: self.offset(Part::Thread, 2)?,
            thread_frame: self.offset(Part::Thread, 4)?,
            thread_id: self.offset(Part::Thread, thread_id)?,
            cframe_frame: ABSENT,
            frame_bytes: end.next_multiple_of(8),
            frame_previous: previous,
            frame_code: code,
            frame_instruction: instruction,
            instruction_bytes: 8,
            frame_owner: owner,
            frame_entry: ABSENT,
            entry: ENTRY_SHIM,
            first_no_function: FIRST_NO_FUNCTION,
        })
    }

    fn code(&self, version: Version) -> Option<Code> {
        let code = |index| self.offset(Part::Code, index);
        // without copies the offset is that of no member: 0
        let copies = if version >= (3, 14) { code(10)? } else { 0 };
        Some(Code {
            filename: code(1)?,
            name: code(2)?,
            qualname: code(3)?,
            linetable: code(4)?,
            firstlineno: code(5)?,
            instructions: code(9)?,
            copies: if copies == 0 { ABSENT } else { copies },
            object_type: self.offset(Part::Object, 1)?,
            type_name: self.offset(Part::Type, 1)?,
            bytes_size: self.offset(Part::Bytes, 1)?,
            bytes_data: self.offset(Part::Bytes, 2)?,
        })
    }

    fn text(&self, version: Version, free_threaded: bool) -> Option<Text> {
        let ascii_bytes = self.offset(Part::Unicode, 3)?;
        Some(Text {
            state: self.offset(Part::Unicode, 1)?,
            length: self.offset(Part::Unicode, 2)?,
            // without a global lock 3.14 keeps in a byte of its own what are two bits otherwise
            kind_shift: if free_threaded && version >= (3, 14) { 8 } else { 2 },
            ascii_bytes,
            // the length and the address of its UTF-8 follow
            compact_bytes: ascii_bytes + 16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::wire::WINDOW;
    use proptest::prelude::*;

    /// What a CPython of this version publishes, all words counted up from 8.
    fn published(hex: u64, words: u64) -> Vec<u8> {
        let mut bytes = COOKIE.to_vec();
        bytes.extend([hex, 0].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend((0..words).flat_map(|word| (word * 8 % 120).to_le_bytes()));
        bytes
    }

    #[test]
    fn only_versions_whose_offsets_are_known_are_read() {
        assert_eq!(published_version(&published(0x030d_00f0, 80)), Some((3, 13)));
        assert!(Layout::published(&published(0x0310_00f0, 80)).is_none());
        assert!(Layout::published(b"xdebugpz").is_none());
        assert!(Layout::published(&published(0x030d_00f0, 20)).is_none(), "cut off");
        assert!(Layout::of((3, 9)).is_none() && Layout::of((3, 13)).is_none());
    }

    #[test]
    fn each_version_has_its_own_order() {
        let numbered = |hex: u64| {
            let words = (0..110_u64).flat_map(u64::to_le_bytes);
            let head = [hex, 0].into_iter().flat_map(u64::to_le_bytes);
            [COOKIE.to_vec(), head.chain(words).collect()].concat()
        };
        let python = |hex, widths: &'static Widths, version| {
            let bytes = numbered(hex);
            Published { bytes: &bytes, widths }.python(version).unwrap()
        };
        let of = |python: Python| {
            [
                python.thread_next,
                python.thread_frame,
                python.thread_id,
                python.frame_previous,
            ]
        };
        assert_eq!(of(python(0x030d_00f0, &WIDTHS_3_13, (3, 13))), [18, 20, 21, 26]);
        assert_eq!(of(python(0x030e_00f0, &WIDTHS_3_14, (3, 14))), [21, 23, 24, 29]);
        assert_eq!(of(python(0x030f_00f0, &WIDTHS_3_15, (3, 15))), [21, 23, 27, 37]);
    }

    proptest! {
        #[test]
        fn any_published_bytes_are_refused_or_fit(mut bytes in proptest::collection::vec(any::<u8>(), 0..1024), minor in 12_u8..17) {
            bytes.splice(..bytes.len().min(12), [b"xdebugpy".as_slice(), &[0xf0, 0, minor, 3]].concat());
            if let Some(layout) = Layout::published(&bytes) {
                prop_assert!(layout.python.frame_bytes <= WINDOW);
            }
        }
    }
}
