//! Where each version of CPython keeps what is read of it: offsets in bytes, on x86-64.
//!
//! From 3.13 on the interpreter publishes them itself (`_Py_DebugOffsets`, at the beginning of `_PyRuntime`). Those of
//! older versions are the tables below: `offsetof` of each member in the headers of the release named, which every
//! later release of the same minor version keeps.

mod published;

pub use published::PUBLISHED_BYTES;
pub(crate) use published::published_version;

use super::wire::{ABSENT, ENTRY_BYTE, ENTRY_EACH, ENTRY_SHIM, Python, WINDOW};

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
    pub(crate) qualname: u32,
    pub(crate) linetable: u32,
    pub(crate) firstlineno: u32,
    /// The first instruction; [`ABSENT`] up to 3.10, where frames hold an index.
    pub(crate) instructions: u32,
    /// Copies of the instructions for threads, without a global lock; else [`ABSENT`].
    pub copies: u32,
    pub(crate) object_type: u32,
    pub(crate) type_name: u32,
    pub(crate) bytes_size: u32,
    pub(crate) bytes_data: u32,
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

/// `PY_VERSION_HEX`: 0x030d00f0 is 3.13.0.
pub(crate) fn version_of(hex: u64) -> Version {
    ((hex >> 24) as u8, (hex >> 16) as u8)
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
}
