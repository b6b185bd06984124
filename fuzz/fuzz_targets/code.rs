//! The machine code of a function: a site that lies on an instruction of it, or a refusal.
#![no_main]

use gpuscope::elf::{ElfFile, decide, probe_site};
use gpuscope_fuzz::{Part, library};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|code: &[u8]| {
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
});
