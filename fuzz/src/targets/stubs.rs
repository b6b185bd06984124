//! Code, read-only data and relocations of a file that registers kernels.
//!
//! The first two bytes say where the input is cut into the three.

use crate::{Part, library};
use gpuscope::elf::{ElfFile, kernel_of_stub};

pub fn run(input: &[u8]) {
    let Some((&[first, second], rest)) = input.split_first_chunk() else {
        return;
    };
    let (relocations, rest) = rest.split_at(usize::from(first).min(rest.len()));
    let (data, code) = rest.split_at(usize::from(second).min(rest.len()));
    let part = |name, kind, flags, bytes| Part {
        name,
        kind,
        flags,
        bytes,
    };
    let parts = [
        part(".nv_fatbin", 1, 2, b"\0".as_slice()),
        part(".rodata", 1, 2, data),
        part(".rela.dyn", 4, 2, relocations),
        part(".dynsym", 11, 2, relocations),
        part(".text", 1, 6, code),
    ];
    let (bytes, _) = library(&parts);
    let Ok(file) = ElfFile::from_bytes(bytes) else {
        return;
    };
    let Ok(stubs) = file.kernel_stubs() else { return };
    let named = (0..file.len()).filter_map(|offset| stubs.name(&file, offset)).count();
    assert!(named <= stubs.len());
    if let Ok(symbol) = std::str::from_utf8(data) {
        assert!(kernel_of_stub(symbol).len() <= symbol.len());
    }
}
