//! What a file says about source lines: its debug sections, copied into a small file of their own.
//!
//! Whoever reads the copy need not fear that the file changes meanwhile, nor read what else is in it.

use std::io::{Read, Write};
use std::ops::ControlFlow;

use object::elf;

use super::bytes::{printable, u32_at, u64_at, until_nul};
use super::file::build_id_in;
use super::layout::{Layout, Section};
use super::source::{ReadAt, Source};
use super::{ElfError, ElfFile};

/// What names functions and lines; where variables are is left out.
const WANTED: [&str; 10] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_aranges",
    ".debug_info",
    ".debug_line",
    ".debug_line_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_str",
    ".debug_str_offsets",
];
const LINK_LIMIT: u64 = 4096;
const NOTE_LIMIT: u64 = 4096;
/// Sizes of the on-disk records of 64-bit ELF, in bytes.
const HEADER: u64 = 64;
const COMPRESSION: u64 = 24;
const ALIGN: u64 = 8;

/// The debug sections of one file.
#[derive(Debug)]
pub struct DebugSections<'a> {
    source: &'a Source,
    /// With the size that each has when it is not compressed.
    sections: Vec<(&'a Section, u64)>,
}

/// A file that holds what was stripped from another: perhaps nothing that could run.
#[derive(Debug)]
pub struct DebugFile {
    source: Source,
    layout: Layout,
}

impl ElfFile {
    /// Its own debug sections; `None`: it has none, or none that can be read.
    pub fn debug_sections(&self) -> Option<DebugSections<'_>> {
        DebugSections::of(&self.source, &self.layout)
    }

    /// The name, without a folder, of the file that its debug sections were moved to.
    pub fn debug_link(&self) -> Option<String> {
        let section = self.layout.sections.iter().find(|s| s.name == ".gnu_debuglink")?;
        let bytes = self.source.read("a name", section.offset, section.size, LINK_LIMIT);
        let name = bytes.ok().and_then(|bytes| until_nul(&bytes, 0).map(printable))?;
        (!name.is_empty() && !name.contains('/')).then_some(name)
    }
}

impl DebugFile {
    /// A file of `len` bytes that is read by others.
    ///
    /// # Errors
    /// The file cannot be read, or is no ELF file, or is cut off or damaged.
    pub fn read_from(bytes: Box<dyn ReadAt>, len: u64) -> Result<DebugFile, ElfError> {
        let source = Source::read_from(bytes, len);
        let layout = Layout::read_sections(&source)?;
        Ok(DebugFile { source, layout })
    }

    /// The GNU build-id in lower-case hexadecimal: that of the file which was stripped.
    pub fn build_id(&self) -> Option<String> {
        let mut notes = self.layout.sections.iter().filter(|s| s.kind == elf::SHT_NOTE);
        notes.find_map(|note| {
            let bytes = self.source.read("a note", note.offset, note.size, NOTE_LIMIT).ok()?;
            build_id_in(&bytes, 4)
        })
    }

    /// Its debug sections.
    pub fn debug_sections(&self) -> Option<DebugSections<'_>> {
        DebugSections::of(&self.source, &self.layout)
    }
}

impl<'a> DebugSections<'a> {
    fn of(source: &'a Source, layout: &'a Layout) -> Option<DebugSections<'a>> {
        let mut sections = Vec::new();
        for name in WANTED {
            let named = |section: &&Section| section.name == name && section.kind != elf::SHT_NOBITS;
            if let Some(section) = layout.sections.iter().find(named) {
                sections.push((section, full_size(source, section)?));
            }
        }
        let has = |name| sections.iter().any(|(section, _)| section.name == name);
        (has(".debug_info") && has(".debug_abbrev")).then_some(DebugSections { source, sections })
    }

    /// How many there are when none is compressed.
    pub fn bytes(&self) -> u64 {
        self.sections.iter().fold(0, |sum, (_, size)| {
            size.checked_next_multiple_of(ALIGN)
                .unwrap_or(u64::MAX)
                .saturating_add(sum)
        })
    }

    /// Writes an ELF file that holds nothing else.
    ///
    /// # Errors
    /// A section cannot be read, is not as long as it claims, or `into` is full.
    pub fn write(&self, into: &mut impl Write) -> Result<(), ElfError> {
        let (names, name_at) = self.names();
        let too_large = ElfError::Damaged("debug sections larger than any file");
        let names_at = self
            .bytes()
            .checked_add(HEADER)
            .filter(|at| *at < 1 << 60)
            .ok_or(too_large)?;
        let sections_at = (names_at + names.len() as u64).next_multiple_of(ALIGN);
        into.write_all(&header(sections_at, self.sections.len() as u16 + 2))?;
        let mut records = record([0; 2], [0; 2]);
        let mut at = HEADER;
        for ((section, size), name) in self.sections.iter().zip(name_at) {
            self.copy(section, *size, into)?;
            pad(*size, into)?;
            records.extend(record([name, elf::SHT_PROGBITS], [at, *size]));
            at += size.next_multiple_of(ALIGN);
        }
        into.write_all(&names)?;
        pad(names.len() as u64, into)?;
        records.extend(record([0, elf::SHT_STRTAB], [names_at, names.len() as u64]));
        Ok(into.write_all(&records)?)
    }

    /// The names of the sections as ELF keeps them, and where each begins.
    fn names(&self) -> (Vec<u8>, Vec<u32>) {
        let (mut names, mut starts) = (vec![0], Vec::new());
        for (section, _) in &self.sections {
            starts.push(names.len() as u32);
            names.extend(section.name.bytes().chain([0]));
        }
        (names, starts)
    }

    fn copy(&self, section: &Section, size: u64, into: &mut impl Write) -> Result<(), ElfError> {
        let short = ElfError::Damaged("a compressed section is shorter than it claims");
        if section.compressed {
            let reader = SourceReader {
                source: self.source,
                at: section.offset + COMPRESSION,
                left: section.size.saturating_sub(COMPRESSION),
            };
            // not more than it claims: the rest could be endless
            let mut bytes = flate2::bufread::ZlibDecoder::new(std::io::BufReader::new(reader)).take(size);
            let copied = std::io::copy(&mut bytes, into)?;
            return if copied == size { Ok(()) } else { Err(short) };
        }
        let range = section.offset..section.offset.saturating_add(section.size);
        let mut written = Ok(());
        self.source.chunks("a debug section", range, 0, &mut |_, bytes| {
            written = into.write_all(bytes);
            if written.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(written?)
    }
}

/// The size of a section when it is not compressed; `None`: it cannot be told, or not be decompressed.
fn full_size(source: &Source, section: &Section) -> Option<u64> {
    if !section.compressed {
        return Some(section.size);
    }
    let head = source
        .read("a section's head", section.offset, COMPRESSION, COMPRESSION)
        .ok()?;
    (u32_at(&head, 0)? == elf::ELFCOMPRESS_ZLIB).then(|| u64_at(&head, 8))?
}

struct SourceReader<'a> {
    source: &'a Source,
    at: u64,
    left: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let size = usize::try_from(self.left).unwrap_or(into.len()).min(into.len());
        let bytes = self.source.read_up_to(self.at, size).map_err(std::io::Error::other)?;
        into.get_mut(..bytes.len()).unwrap_or_default().copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        self.left -= bytes.len() as u64;
        Ok(bytes.len())
    }
}

fn pad(size: u64, into: &mut impl Write) -> std::io::Result<()> {
    let missing = size.next_multiple_of(ALIGN) - size;
    into.write_all(&[0; ALIGN as usize][..missing as usize])
}

/// Of a shared library for x86-64 without segments, whose last section holds the names.
fn header(sections_at: u64, sections: u16) -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header.extend([elf::ET_DYN, elf::EM_X86_64].map(u16::to_le_bytes).concat());
    header.extend(1_u32.to_le_bytes());
    header.extend([0, 0, sections_at].map(u64::to_le_bytes).concat());
    header.extend(0_u32.to_le_bytes());
    header.extend(
        [HEADER as u16, 56, 0, 64, sections, sections - 1]
            .map(u16::to_le_bytes)
            .concat(),
    );
    header
}

/// Of a section: name and kind, offset and size.
fn record(words: [u32; 2], place: [u64; 2]) -> Vec<u8> {
    let mut record = words.map(u32::to_le_bytes).concat();
    record.extend([0, 0, place[0], place[1], 0, ALIGN, 0].map(u64::to_le_bytes).concat());
    record
}
