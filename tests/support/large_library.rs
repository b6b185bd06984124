//! A shared library as large as those of machine-learning frameworks, most of it a hole.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

/// Functions, each of them [`SPACING`] bytes long.
pub const FUNCTIONS: u64 = 500_000;
pub const SPACING: u64 = 2048;
const CODE_AT: u64 = 0x1000;
const CODE_BYTES: u64 = FUNCTIONS * SPACING;
const NAME_BYTES: usize = 200;
const SECTION_NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0";

/// The name of a function as the linker knows it.
fn symbol(number: u64) -> String {
    let inner = format!("f{number}_{}", "x".repeat(NAME_BYTES));
    let inner = &inner[..NAME_BYTES - "_ZN5large200Ev".len()];
    format!("_ZN5large{}{inner}Ev", inner.len())
}

/// The name of the function at a file offset, as it is shown.
pub fn function_at(offset: u64) -> String {
    let name = symbol((offset - CODE_AT) / SPACING);
    let inner = name.trim_start_matches("_ZN5large").trim_end_matches("Ev");
    format!("large::{}", inner.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Writes it: a gibibyte of code, of which nothing takes room, and the names of all functions.
pub fn write(path: &Path) {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    file.write_all(&[header(), segment()].concat()).expect("room");
    let symbols_at = CODE_AT + CODE_BYTES;
    file.seek(SeekFrom::Start(symbols_at)).expect("a file");
    let mut names_at = 1;
    file.write_all(&[0; 24]).expect("room");
    for number in 0..FUNCTIONS {
        file.write_all(&function(names_at, number)).expect("room");
        names_at += symbol(number).len() as u32 + 1;
    }
    let strings_at = symbols_at + 24 * (FUNCTIONS + 1);
    file.write_all(&[0]).expect("room");
    for number in 0..FUNCTIONS {
        file.write_all(symbol(number).as_bytes()).expect("room");
        file.write_all(&[0]).expect("room");
    }
    let section_names_at = strings_at + u64::from(names_at);
    file.write_all(SECTION_NAMES).expect("room");
    let sections_at = section_names_at + SECTION_NAMES.len() as u64;
    let sections = [
        section([0, 0], 0, [0, 0], 0),
        section([1, 1], 6, [CODE_AT, CODE_BYTES], 0),
        section([7, 2], 0, [symbols_at, 24 * (FUNCTIONS + 1)], 3),
        section([15, 3], 0, [strings_at, u64::from(names_at)], 0),
        section([0, 3], 0, [section_names_at, SECTION_NAMES.len() as u64], 0),
    ];
    file.write_all(&sections.concat()).expect("room");
    file.seek(SeekFrom::Start(40)).expect("a file");
    file.write_all(&sections_at.to_le_bytes()).expect("room");
    file.flush().expect("room");
}

/// A shared library for x86-64: one segment, five sections.
fn header() -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    header.extend([3_u16, 62].map(u16::to_le_bytes).concat());
    header.extend(1_u32.to_le_bytes());
    header.extend([0_u64, 64, 0].map(u64::to_le_bytes).concat());
    header.extend(0_u32.to_le_bytes());
    header.extend([64_u16, 56, 1, 64, 5, 4].map(u16::to_le_bytes).concat());
    header
}

fn segment() -> Vec<u8> {
    let mut record = [1_u32, 5].map(u32::to_le_bytes).concat();
    let places = [CODE_AT, CODE_AT, CODE_AT, CODE_BYTES, CODE_BYTES, 0x1000];
    record.extend(places.map(u64::to_le_bytes).concat());
    record
}

fn function(name_at: u32, number: u64) -> Vec<u8> {
    let mut record = name_at.to_le_bytes().to_vec();
    record.extend([0x12, 0, 1, 0]);
    record.extend([CODE_AT + number * SPACING, SPACING].map(u64::to_le_bytes).concat());
    record
}

/// `words`: name and kind; `place`: offset, which is the address too, and size.
fn section(words: [u32; 2], flags: u64, place: [u64; 2], link: u32) -> Vec<u8> {
    let address = if flags == 0 { 0 } else { place[0] };
    let mut record = words.map(u32::to_le_bytes).concat();
    record.extend([flags, address, place[0], place[1]].map(u64::to_le_bytes).concat());
    record.extend([link, 0].map(u32::to_le_bytes).concat());
    record.extend([8_u64, 24].map(u64::to_le_bytes).concat());
    record
}
