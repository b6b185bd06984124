//! Where each version of CPython keeps what is read of it: offsets in bytes, on x86-64.
//!
//! From 3.13 on the interpreter publishes them itself (`_Py_DebugOffsets`, at the beginning of `_PyRuntime`). Those of
//! older versions are the tables below: `offsetof` of each member in the headers of the release named, which every
//! later release of the same minor version keeps.

use super::wire::{ABSENT, ENTRY_BYTE, ENTRY_EACH, ENTRY_SHIM, Python, WINDOW};
use crate::wire::u64_at;

/// Major and minor number, as in 3.12.
pub type Version = (u8, u8);

/// What is read of a `str`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pub length: u32,
    pub state: u32,
    /// Bit of `state` at which the width of characters begins.
    pub kind_shift: u32,
    /// Head of a string that is ASCII alone, and of others.
    pub ascii_bytes: u32,
    pub compact_bytes: u32,
}

/// What is read of a `code` object, its type and its `bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    pub filename: u32,
    pub name: u32,
    /// [`ABSENT`] up to 3.10.
    pub qualname: u32,
    pub linetable: u32,
    pub firstlineno: u32,
    /// The first instruction; [`ABSENT`] up to 3.10, where frames hold an index.
    pub instructions: u32,
    /// Copies of the instructions for threads, without a global lock; else [`ABSENT`].
    pub copies: u32,
    pub object_type: u32,
    pub type_name: u32,
    pub bytes_size: u32,
    pub bytes_data: u32,
}

/// One version of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub version: Version,
    /// For the kernel programs; its address is not set.
    pub python: Python,
    pub code: Code,
    pub text: Text,
}

/// Bytes at the beginning of `_PyRuntime` that are enough for [`Layout::published`].
pub const PUBLISHED_BYTES: usize = 1024;
const COOKIE: &[u8] = b"xdebugpy";
/// No structure of the interpreter is larger; no frame or string head is larger than [`WINDOW`].
const LARGEST: u64 = 1 << 22;
/// `FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13, `FRAME_OWNED_BY_INTERPRETER` of 3.14.
const FIRST_NO_FUNCTION: u32 = 3;
/// `Py_TAG_BITS` of 3.14, and what alignment leaves free anyway.
const ADDRESS_BITS: u64 = !7;

impl Layout {
    /// The table for a version that does not publish its own.
    pub fn of(version: Version) -> Option<Layout> {
        match version {
            (3, 10) => Some(V3_10),
            (3, 11) => Some(V3_11),
            (3, 12) => Some(V3_12),
            _ => None,
        }
    }

    /// Reads what the interpreter publishes. `None`: it publishes nothing, a version that is not known, or nonsense.
    pub fn published(bytes: &[u8]) -> Option<Layout> {
        let version = published_version(bytes)?;
        let widths: &Widths = match version {
            (3, 13) => &WIDTHS_3_13,
            (3, 14) => &WIDTHS_3_14,
            _ => return None,
        };
        let table = Published { bytes, widths };
        let free_threaded = u64_at(bytes, 16) != 0;
        let layout = table.layout(version, free_threaded)?;
        layout.is_sane().then_some(layout)
    }

    /// Whether all that is read lies inside the pieces that are read at once.
    fn is_sane(&self) -> bool {
        let python = &self.python;
        let frame = [python.frame_previous, python.frame_code, python.frame_instruction];
        let code = &self.code;
        let head = [
            code.filename,
            code.name,
            code.qualname,
            code.linetable,
            code.firstlineno,
        ];
        frame.iter().all(|offset| offset + 8 <= WINDOW && offset % 8 == 0)
            && python.frame_owner < WINDOW
            && head.iter().chain([&code.object_type]).all(|offset| *offset <= 504)
            && self.text.length <= 64
            && self.text.state <= 64
            && (16..=72).contains(&self.text.ascii_bytes)
    }
}

/// The version that the interpreter publishes beside its offsets.
pub(crate) fn published_version(bytes: &[u8]) -> Option<Version> {
    bytes.starts_with(COOKIE).then(|| version_of(u64_at(bytes, 8)))
}

/// `PY_VERSION_HEX`: 0x030d00f0 is 3.13.0.
pub(crate) fn version_of(hex: u64) -> Version {
    ((hex >> 24) as u8, (hex >> 16) as u8)
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
            python: self.python()?,
            code: self.code(version)?,
            text: self.text(version, free_threaded)?,
        })
    }

    fn python(&self) -> Option<Python> {
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
            thread_id: self.offset(Part::Thread, 5)?,
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

/// 3.10.13: `Include/cpython/{pystate,frameobject,code,unicodeobject}.h`, `Include/internal/pycore_{interp,runtime}.h`.
const V3_10: Layout = Layout {
    version: (3, 10),
    python: Python {
        runtime: 0,
        code_mask: !0,
        interpreters_head: 32,
        interpreter_next: 0,
        threads_head: 8,
        thread_next: 8,
        thread_id: 176,
        thread_frame: 24,
        cframe_frame: ABSENT,
        frame_bytes: 104,
        frame_previous: 24,
        frame_code: 32,
        frame_instruction: 96,
        instruction_bytes: 4,
        frame_owner: ABSENT,
        frame_entry: ABSENT,
        entry: ENTRY_EACH,
        first_no_function: 0,
    },
    code: Code {
        filename: 104,
        name: 112,
        qualname: ABSENT,
        linetable: 120,
        firstlineno: 40,
        instructions: ABSENT,
        copies: ABSENT,
        object_type: 8,
        type_name: 24,
        bytes_size: 16,
        bytes_data: 32,
    },
    text: Text {
        length: 16,
        state: 32,
        kind_shift: 2,
        ascii_bytes: 48,
        compact_bytes: 72,
    },
};

/// 3.11.7: as above, and `Include/internal/pycore_frame.h`.
const V3_11: Layout = Layout {
    version: (3, 11),
    python: Python {
        runtime: 0,
        code_mask: !0,
        interpreters_head: 40,
        interpreter_next: 0,
        threads_head: 16,
        thread_next: 8,
        thread_id: 152,
        thread_frame: 56,
        cframe_frame: 8,
        frame_bytes: 72,
        frame_previous: 48,
        frame_code: 32,
        frame_instruction: 56,
        instruction_bytes: 8,
        frame_owner: ABSENT,
        frame_entry: 68,
        entry: ENTRY_BYTE,
        first_no_function: 0,
    },
    code: Code {
        filename: 112,
        name: 120,
        qualname: 128,
        linetable: 136,
        firstlineno: 72,
        instructions: 184,
        ..V3_10.code
    },
    text: V3_10.text,
};

/// 3.12.1: as above.
const V3_12: Layout = Layout {
    version: (3, 12),
    python: Python {
        runtime: 0,
        code_mask: !0,
        interpreters_head: 40,
        interpreter_next: 0,
        threads_head: 72,
        thread_next: 8,
        thread_id: 136,
        thread_frame: 56,
        cframe_frame: 0,
        frame_bytes: 72,
        frame_previous: 8,
        frame_code: 0,
        frame_instruction: 56,
        instruction_bytes: 8,
        frame_owner: 70,
        frame_entry: ABSENT,
        entry: ENTRY_SHIM,
        first_no_function: FIRST_NO_FUNCTION,
    },
    code: Code {
        filename: 112,
        name: 120,
        qualname: 128,
        linetable: 136,
        firstlineno: 68,
        instructions: 192,
        ..V3_10.code
    },
    text: Text {
        length: 16,
        state: 32,
        kind_shift: 2,
        ascii_bytes: 40,
        compact_bytes: 56,
    },
};

#[cfg(test)]
mod tests {
    use super::*;
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
        assert!(Layout::published(&published(0x030f_00f0, 80)).is_none());
        assert!(Layout::published(b"xdebugpz").is_none());
        assert!(Layout::published(&published(0x030d_00f0, 20)).is_none(), "cut off");
        assert!(Layout::of((3, 9)).is_none() && Layout::of((3, 13)).is_none());
    }

    #[test]
    fn tables_by_hand_fit_into_what_is_read_at_once() {
        for version in [(3, 10), (3, 11), (3, 12)] {
            let layout = Layout::of(version).unwrap();
            let python = layout.python;
            let end = [python.frame_previous, python.frame_code]
                .map(|offset| offset + 8)
                .into_iter()
                .max();
            assert!(python.frame_bytes <= WINDOW && end.unwrap() <= python.frame_bytes);
            assert!(python.frame_instruction + python.instruction_bytes <= python.frame_bytes);
            assert_eq!(layout.version, version);
        }
    }

    proptest! {
        #[test]
        fn any_published_bytes_are_refused_or_fit(mut bytes in proptest::collection::vec(any::<u8>(), 0..1024), minor in 12_u8..16) {
            bytes.splice(..bytes.len().min(12), [b"xdebugpy".as_slice(), &[0xf0, 0, minor, 3]].concat());
            if let Some(layout) = Layout::published(&bytes) {
                prop_assert!(layout.python.frame_bytes <= WINDOW);
            }
        }
    }
}
