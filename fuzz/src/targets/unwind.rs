//! `.eh_frame`, code and read-only data of a stripped file that holds a CUDA runtime.
//!
//! The first two bytes say where the input is cut into the three.

use crate::{Part, library};
use gpuscope::elf::{ElfFile, find_by_name_strings};

const MARKED: &[u8] = b"CUDA_ENABLE_MODULE_LAZY_LOADING\0cudaMalloc\0cudaFree\0cudaMemcpy\0";

pub fn run(input: &[u8]) {
    let Some((&[first, second], rest)) = input.split_first_chunk() else {
        return;
    };
    let (frames, rest) = rest.split_at(usize::from(first).min(rest.len()));
    let (code, data) = rest.split_at(usize::from(second).min(rest.len()));
    let data = [MARKED, data].concat();
    let parts = [
        Part {
            name: ".rodata",
            kind: 1,
            flags: 2,
            bytes: &data,
        },
        Part {
            name: ".text",
            kind: 1,
            flags: 6,
            bytes: code,
        },
        Part {
            name: ".eh_frame",
            kind: 1,
            flags: 2,
            bytes: frames,
        },
    ];
    let (bytes, _) = library(&parts);
    let Ok(file) = ElfFile::from_bytes(bytes) else {
        return;
    };
    if let Ok(Some(runtime)) = find_by_name_strings(&file, &|_| true) {
        assert!(
            runtime
                .functions
                .iter()
                .all(|(name, offset)| !name.is_empty() && *offset < file.len())
        );
    }
}
