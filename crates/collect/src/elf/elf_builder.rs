//! A small valid shared library for tests.

/// File offset of the code, in bytes. It is also the code's virtual address less [`CODE_SHIFT`].
pub(super) const CODE_AT: u64 = 0x1000;
pub(super) const CODE_SHIFT: u64 = 0x40_0000;

pub(super) struct Function {
    name: Vec<u8>,
    at: u64,
    size: u64,
    info: u8,
}

impl Function {
    pub(super) fn new(name: &str, at: u64, size: u64) -> Self {
        Self {
            name: name.as_bytes().to_vec(),
            at,
            size,
            info: 0x12,
        }
    }

    pub(super) fn with_info(name: &[u8], at: u64, info: u8) -> Self {
        Self {
            name: name.to_vec(),
            at,
            size: 1,
            info,
        }
    }
}

/// One executable segment, `.dynsym` and `.dynstr`.
pub(super) fn library(code: &[u8], functions: &[Function]) -> Vec<u8> {
    library_with_notes(code, functions, &[], None)
}

/// As [`library`], with a section `.note.stapsdt` and, at that virtual address, `.stapsdt.base`.
pub(super) fn library_with_notes(code: &[u8], functions: &[Function], notes: &[u8], base: Option<u64>) -> Vec<u8> {
    let mut names = vec![0_u8];
    let mut symbols = vec![0_u8; 24];
    for function in functions {
        symbols.extend((names.len() as u32).to_le_bytes());
        symbols.extend([function.info, 0, 1, 0]);
        symbols.extend((CODE_AT + CODE_SHIFT + function.at).to_le_bytes());
        symbols.extend(function.size.to_le_bytes());
        names.extend(&function.name);
        names.push(0);
    }
    let mut file = header();
    file.extend(segment(code.len() as u64));
    file.resize(CODE_AT as usize, 0);
    file.extend(code);
    let symbols_at = file.len() as u64;
    file.extend(&symbols);
    let names_at = file.len() as u64;
    file.extend(&names);
    let notes_at = file.len() as u64;
    file.extend(notes);
    let section_names_at = file.len() as u64;
    file.extend(SECTION_NAMES);
    let sections_at = file.len() as u64;
    file.extend(section([0, 0, 0], 0, [0, 0]));
    file.extend(section([0, 11, 2], 0, [symbols_at, symbols.len() as u64]));
    file.extend(section([0, 3, 0], 0, [names_at, names.len() as u64]));
    file.extend(section([1, 7, 0], 0, [notes_at, notes.len() as u64]));
    file.extend(section([0, 3, 0], 0, [section_names_at, SECTION_NAMES.len() as u64]));
    file.extend(
        base.map(|base| section([15, 1, 0], base, [section_names_at, 1]))
            .into_iter()
            .flatten(),
    );
    file[40..48].copy_from_slice(&sections_at.to_le_bytes());
    file[60] += u8::from(base.is_some());
    file
}

const SECTION_NAMES: &[u8] = b"\0.note.stapsdt\0.stapsdt.base\0";

/// A note of a static probe: its place, base and semaphore as virtual addresses, and its three texts.
pub(super) fn static_probe(places: [u64; 3], texts: [&str; 3]) -> Vec<u8> {
    let mut description: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
    description.extend(texts.iter().flat_map(|text| text.bytes().chain([0])));
    let mut note: Vec<u8> = [8_u32, description.len() as u32, 3]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    note.extend(b"stapsdt\0");
    note.extend(&description);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

fn header() -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for half in [3_u16, 62] {
        header.extend(half.to_le_bytes());
    }
    header.extend(1_u32.to_le_bytes());
    for long in [0_u64, 64, 0] {
        header.extend(long.to_le_bytes());
    }
    header.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 64, 5, 4] {
        header.extend(half.to_le_bytes());
    }
    header
}

fn segment(size: u64) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend(1_u32.to_le_bytes());
    record.extend(7_u32.to_le_bytes());
    // One byte more than the code, so that a library without code is still one.
    for long in [
        CODE_AT,
        CODE_AT + CODE_SHIFT,
        CODE_AT + CODE_SHIFT,
        size.max(1),
        size.max(1),
        0x1000,
    ] {
        record.extend(long.to_le_bytes());
    }
    record
}

/// `words`: name, kind, link; `place`: offset and size.
fn section(words: [u32; 3], vaddr: u64, place: [u64; 2]) -> Vec<u8> {
    let mut record = Vec::new();
    for word in &words[..2] {
        record.extend(word.to_le_bytes());
    }
    for long in [0, vaddr, place[0], place[1]] {
        record.extend(long.to_le_bytes());
    }
    for word in [words[2], 0] {
        record.extend(word.to_le_bytes());
    }
    for long in [8_u64, 24] {
        record.extend(long.to_le_bytes());
    }
    record
}
