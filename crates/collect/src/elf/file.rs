//! One opened ELF file and the facts that cost nothing more to know.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;

use object::elf;

use super::ElfError;
use super::bytes::{printable, u32_at};
use super::dynamic::Dynamic;
use super::extent::Extent;
use super::layout::Layout;
use super::source::{FileIdentity, ReadAt, Source};
use crate::text::quantity::hexadecimal;

const NOTE_LIMIT: u64 = 1 << 20;
const INTERP_LIMIT: u64 = 4096;
const LARGEST_BUILD_ID: usize = 64;

/// A program or shared library for x86-64 Linux, whose headers have been checked against the size of the file.
#[derive(Debug)]
pub struct ElfFile {
    pub(super) source: Source,
    pub(super) layout: Layout,
    pub(super) dynamic: Dynamic,
    pub(super) extents: OnceLock<Vec<Extent>>,
    build_id: Option<String>,
    interpreter: Option<String>,
}

/// A file that is open, of which nothing was read yet.
#[derive(Debug)]
pub struct Unread(Source);

impl Unread {
    /// Opens a file as [`ElfFile::open`] does.
    ///
    /// # Errors
    /// The file cannot be opened, or is no regular one.
    pub fn open(path: impl AsRef<Path>) -> Result<Unread, ElfError> {
        Source::open(path.as_ref()).map(Unread)
    }

    /// Checks its headers.
    ///
    /// # Errors
    /// It is no x86-64 program or shared library, or is cut off or damaged.
    pub fn read(self) -> Result<ElfFile, ElfError> {
        ElfFile::new(self.0)
    }
}

impl ElfFile {
    /// Opens a file without ever waiting for it: a FIFO, a device or a directory is refused by its kind. Symbolic links
    /// are followed. The file stays open as long as the value lives.
    ///
    /// # Errors
    /// The file cannot be read, or is no x86-64 program or shared library, or is cut off or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ElfError> {
        Unread::open(path)?.read()
    }

    /// The same checks on a file of `len` bytes that is read by others.
    ///
    /// # Errors
    /// As [`ElfFile::open`].
    pub(crate) fn read_from(bytes: Box<dyn ReadAt>, len: u64) -> Result<Self, ElfError> {
        Self::new(Source::read_from(bytes, len))
    }

    /// The same checks on the bytes of a file.
    ///
    /// # Errors
    /// As [`ElfFile::open`], without the reasons that need a path.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, ElfError> {
        Self::new(Source::from_bytes(bytes.into()))
    }

    pub(super) fn new(source: Source) -> Result<Self, ElfError> {
        let layout = Layout::read(&source)?;
        let dynamic = Dynamic::read(&source, &layout)?;
        let build_id = build_id(&source, &layout)?;
        let interpreter = interpreter(&source, &layout)?;
        Ok(Self {
            source,
            layout,
            dynamic,
            extents: OnceLock::new(),
            build_id,
            interpreter,
        })
    }

    /// Size in bytes when it was opened.
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// Which file it is, as it is now; `None`: others read it for us.
    pub(crate) fn identity(&self) -> Option<FileIdentity> {
        self.source.identity()
    }

    /// Never true: an empty file is refused.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `DT_SONAME`, such as `libcudart.so.12`.
    pub fn soname(&self) -> Option<&str> {
        self.dynamic.soname.as_deref()
    }

    /// The first number after `.so.`: 12 for `libcudart.so.12` and for `libcudart.so.12.1`.
    pub fn soname_major(&self) -> Option<u32> {
        let (_, version) = self.soname()?.split_once(".so.")?;
        version.split('.').next()?.parse().ok()
    }

    /// The GNU build-id in lower-case hexadecimal.
    pub fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// The dynamic linker that a program asks for (`PT_INTERP`); shared libraries have none.
    pub(crate) fn interpreter(&self) -> Option<&str> {
        self.interpreter.as_deref()
    }

    /// Whether the file carries GPU code, as everything built by `nvcc` does.
    pub(crate) fn has_fat_binary(&self) -> bool {
        self.layout
            .sections
            .iter()
            .any(|section| matches!(section.name.as_str(), ".nv_fatbin" | ".nvFatBinSegment"))
    }

    /// Whether the file is a Go program, whose functions a return probe would crash.
    pub(crate) fn is_go(&self) -> bool {
        self.layout.sections.iter().any(|section| {
            matches!(section.name.as_str(), ".note.go.buildid" | ".go.buildinfo")
                || section.name.ends_with(".gopclntab")
        })
    }

    /// Whether the file contains the bytes, in a section whose name begins with `.rodata`.
    ///
    /// # Errors
    /// The section cannot be read or lies outside the file.
    pub(super) fn read_only_data_contains(&self, needle: &[u8]) -> Result<bool, ElfError> {
        let finder = memchr::memmem::Finder::new(needle);
        let mut found = false;
        for section in self.read_only_data() {
            let range = section.offset..section.offset.saturating_add(section.size);
            self.source
                .chunks("read-only data", range, needle.len(), &mut |_, bytes| {
                    found |= finder.find(bytes).is_some();
                    if found {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })?;
        }
        Ok(found)
    }

    pub(super) fn read_only_data(&self) -> impl Iterator<Item = &super::layout::Section> {
        self.layout
            .sections
            .iter()
            .filter(|s| s.kind == elf::SHT_PROGBITS && s.name.starts_with(".rodata"))
    }
}

fn build_id(source: &Source, layout: &Layout) -> Result<Option<String>, ElfError> {
    for segment in layout.segments.iter().filter(|s| s.kind == elf::PT_NOTE) {
        // A note that is too large is someone's data; it does not make the code unusable.
        if segment.size > NOTE_LIMIT {
            continue;
        }
        let notes = source.read("a note", segment.offset, segment.size, NOTE_LIMIT)?;
        if let Some(id) = build_id_in(&notes, if segment.align == 8 { 8 } else { 4 }) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

pub(super) fn build_id_in(notes: &[u8], align: usize) -> Option<String> {
    let mut at = 0_usize;
    loop {
        let (name_size, size) = (u32_at(notes, at)? as usize, u32_at(notes, at + 4)? as usize);
        let kind = u32_at(notes, at + 8)?;
        let name_at = at + 12;
        let data_at = name_at.checked_add(name_size)?.checked_next_multiple_of(align)?;
        let data_end = data_at.checked_add(size)?;
        let name = notes.get(name_at..name_at.checked_add(name_size)?)?;
        if kind == elf::NT_GNU_BUILD_ID && name == b"GNU\0" && (1..=LARGEST_BUILD_ID).contains(&size) {
            let id = notes.get(data_at..data_end)?;
            return Some(hexadecimal(id));
        }
        at = data_end.checked_next_multiple_of(align)?;
    }
}

fn interpreter(source: &Source, layout: &Layout) -> Result<Option<String>, ElfError> {
    let Some(segment) = layout.segments.iter().find(|s| s.kind == elf::PT_INTERP) else {
        return Ok(None);
    };
    let bytes = source.read("the interpreter's name", segment.offset, segment.size, INTERP_LIMIT)?;
    let name = bytes.split(|&b| b == 0).next().unwrap_or_default();
    Ok(Some(printable(name)))
}
