//! A library whose tables lie where they should and hold anything, and whose header was patched.

use crate::memory::within;
use crate::{Part, library};
use gpuscope::elf::{
    DebugFile, ElfFile, ReadAt, by_offset, find_by_name_strings, find_runtime, is_trampoline, probe_site,
};

/// Name, type and flags of sections, of which each gets a part of the input.
const SECTIONS: [(&str, u32, u64); 14] = [
    (".text", 1, 6),
    (".symtab", 2, 0),
    (".strtab", 3, 0),
    (".dynsym", 11, 2),
    (".dynstr", 3, 2),
    (".dynamic", 6, 2),
    (".gnu.hash", 0x6fff_fff6, 2),
    (".note.stapsdt", 7, 0),
    (".note.gnu.build-id", 7, 2),
    (".gnu_debuglink", 1, 0),
    (".eh_frame", 1, 2),
    (".rodata", 1, 2),
    (".nvFatBinSegment", 1, 2),
    (".debug_info", 1, 0),
];
/// Code and notes beside what is read of a file: what an index of symbols takes.
const TIMES: usize = 64;
const BESIDE: usize = 1 << 20;

/// As a file that others read for us.
#[derive(Debug)]
struct Elsewhere(Vec<u8>);

impl ReadAt for Elsewhere {
    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(from..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fn read_all(bytes: &[u8]) {
    let _ = DebugFile::read_from(Box::new(Elsewhere(bytes.to_vec())), bytes.len() as u64).map(|file| {
        let size = file.debug_sections().map(|sections| sections.bytes());
        std::hint::black_box((file.build_id(), size));
    });
    let Ok(file) = ElfFile::from_bytes(bytes) else {
        return;
    };
    let symbols = file.symbols().unwrap_or_default();
    std::hint::black_box(by_offset(&symbols).len());
    for symbol in symbols.iter().take(50) {
        assert!(symbol.file_offset < file.len());
        let _ = (
            probe_site(&file, symbol.file_offset),
            is_trampoline(&file, symbol.file_offset),
        );
    }
    let offsets: Vec<u64> = symbols.iter().take(50).map(|symbol| symbol.file_offset).collect();
    std::hint::black_box(file.function_names(&offsets));
    for probe in file.static_probes(&|_| true).unwrap_or_default().iter().take(50) {
        let _ = (probe.site(&file), probe.operand(0));
    }
    let _ = (find_runtime(&file, &|_| true), find_by_name_strings(&file, &|_| true));
    let _ = (file.variable("a"), file.section_address(".text"), file.debug_link());
    if let Ok(stubs) = file.kernel_stubs() {
        let _ = (stubs.name(&file, 0), file.kernels_by_symbol(&offsets));
    }
}

/// The first 60 bytes patch words of the header and of the table of sections, each six: where, and what.
fn patch(file: &mut [u8], patches: &[u8]) {
    let table = file.len() - 64 * (SECTIONS.len() + 2);
    for patch in patches.chunks_exact(6) {
        let place = usize::from(u16::from_le_bytes([patch[0], patch[1]]));
        let at = if place & 1 == 0 {
            place % 0x80
        } else {
            table + place % (64 * (SECTIONS.len() + 2))
        };
        if let Some(word) = file.get_mut(at..at + 4) {
            word.copy_from_slice(&patch[2..6]);
        }
    }
}

pub fn run(bytes: &[u8]) {
    let Some((count, rest)) = bytes.split_first() else {
        return;
    };
    let (patches, rest) = rest.split_at(rest.len().min(6 * usize::from(count % 11)));
    let share = rest.len().div_ceil(SECTIONS.len()).max(1);
    let mut pieces = rest.chunks(share);
    let parts: Vec<Part<'_>> = SECTIONS
        .iter()
        .map(|(name, kind, flags)| Part {
            name,
            kind: *kind,
            flags: *flags,
            bytes: pieces.next().unwrap_or_default(),
        })
        .collect();
    let (mut file, _) = library(&parts);
    patch(&mut file, patches);
    within(TIMES * file.len() + BESIDE, || read_all(&file));
}
