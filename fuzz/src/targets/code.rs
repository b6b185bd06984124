//! The machine code of a function: a site that lies on an instruction of it, or a refusal.

use crate::{Part, library};
use gpuscope::elf::{ElfFile, decide, probe_site};

pub fn run(code: &[u8]) {
    if let Ok(decision) = decide(code) {
        assert!(usize::from(decision.moved_by) < 32.min(code.len().max(1)));
    }
    let text = Part {
        name: ".text",
        kind: 1,
        flags: 6,
        bytes: code,
    };
    let (bytes, offsets) = library(&[text]);
    let file = ElfFile::from_bytes(bytes).expect("a library");
    if let Ok(site) = probe_site(&file, offsets[0]) {
        assert_eq!(site.offset, offsets[0] + u64::from(site.moved_by));
    }
}
