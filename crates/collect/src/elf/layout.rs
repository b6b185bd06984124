//! The ELF header, the segments and the sections, checked against the size of the file.

use object::elf;

use super::ElfError;
use super::bytes::{printable, u16_at, u32_at, u64_at, until_nul};
use super::source::Source;
use crate::processor::HERE;

/// Sizes of the on-disk records of 64-bit ELF, in bytes.
const HEADER: u64 = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
/// Far above any linker's output, and still only 8 MiB.
const MOST_SECTIONS: u64 = 1 << 17;
const NAMES_LIMIT: u64 = 4 << 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub kind: u32,
    pub executable: bool,
    pub writable: bool,
    pub offset: u64,
    pub vaddr: u64,
    pub size: u64,
    pub align: u64,
}

/// Bytes of the file which the processor may run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code {
    pub offset: u64,
    pub vaddr: u64,
    pub size: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Section {
    pub name: String,
    pub kind: u32,
    pub executable: bool,
    pub compressed: bool,
    pub vaddr: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
}

#[derive(Debug)]
pub(super) struct Layout {
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
    pub code: Vec<Code>,
}

/// Whether segments are good enough.
type Usable<'a> = &'a dyn Fn(&Source, &[Segment]) -> Result<(), ElfError>;

impl Layout {
    pub(super) fn read(source: &Source) -> Result<Self, ElfError> {
        Self::read_if(source, &require_code)
    }

    /// Of a file whose segments may hold nothing, as what was stripped of it still holds debug sections.
    pub(super) fn read_sections(source: &Source) -> Result<Self, ElfError> {
        Self::read_if(source, &|_, _| Ok(()))
    }

    fn read_if(source: &Source, usable: Usable<'_>) -> Result<Self, ElfError> {
        if source.len() == 0 {
            return Err(ElfError::Empty);
        }
        let start = source.read_up_to(0, HEADER as usize)?;
        if !start.starts_with(&elf::ELFMAG) {
            return Err(ElfError::NotElf);
        }
        match start.get(4) {
            Some(&elf::ELFCLASS64) => {}
            Some(&elf::ELFCLASS32) => return Err(ElfError::Not64Bit),
            _ => return Err(ElfError::Damaged("the ELF class is neither 32 nor 64 bits")),
        }
        if start.get(5) == Some(&elf::ELFDATA2MSB) {
            return Err(ElfError::ForeignMachine("big-endian".to_owned()));
        }
        source.check("the ELF header", 0, HEADER)?;
        let short = ElfError::Damaged("the ELF header");
        Self::parse(source, &start, usable).ok_or(short)?
    }

    /// `None` where the header is shorter than its own fields, which the caller has ruled out.
    fn parse(source: &Source, header: &[u8], usable: Usable<'_>) -> Option<Result<Self, ElfError>> {
        let machine = u16_at(header, 18)?;
        if machine != HERE.machine {
            return Some(Err(ElfError::ForeignMachine(machine_name(machine))));
        }
        let kind = u16_at(header, 16)?;
        if kind != elf::ET_DYN && kind != elf::ET_EXEC {
            return Some(Err(ElfError::NotLoadable(kind_name(kind))));
        }
        let (segment_at, section_at) = (u64_at(header, 32)?, u64_at(header, 40)?);
        let (segment_size, segment_count) = (u16_at(header, 54)?, u16_at(header, 56)?);
        let (section_size, section_count, names) = (u16_at(header, 58)?, u16_at(header, 60)?, u16_at(header, 62)?);
        Some((|| {
            if segment_count == 0 || segment_count == elf::PN_XNUM || usize::from(segment_size) != SEGMENT {
                return Err(ElfError::Damaged("the segment table has no usable size"));
            }
            let segments = segments(source, segment_at, u64::from(segment_count))?;
            usable(source, &segments)?;
            if section_at == 0 {
                return Ok(Self::new(segments, Vec::new()));
            }
            if usize::from(section_size) != SECTION {
                return Err(ElfError::Damaged("the section table has entries of an unknown size"));
            }
            let sections = sections(source, section_at, section_count, names)?;
            Ok(Self::new(segments, sections))
        })())
    }

    fn new(segments: Vec<Segment>, sections: Vec<Section>) -> Self {
        let mut layout = Self {
            segments,
            sections,
            code: Vec::new(),
        };
        // NVIDIA's libraries keep their data, hundreds of megabytes of it, in the executable segment too.
        let precise: Vec<Code> = layout.sections.iter().filter_map(|s| layout.code_of(s)).collect();
        let segments = layout
            .segments
            .iter()
            .filter(|s| s.kind == elf::PT_LOAD && s.executable);
        let coarse = segments.map(|s| Code {
            offset: s.offset,
            vaddr: s.vaddr,
            size: s.size,
        });
        layout.code = if precise.is_empty() { coarse.collect() } else { precise };
        layout
    }

    fn code_of(&self, section: &Section) -> Option<Code> {
        let &Section {
            offset, vaddr, size, ..
        } = section;
        let beyond = size.checked_sub(1)?;
        let loaded = self.offset_of(vaddr) == Some(offset)
            && self.offset_of(vaddr.checked_add(beyond)?) == Some(offset.checked_add(beyond)?);
        let runs = section.executable && section.kind == elf::SHT_PROGBITS && loaded;
        let segment = self.segment_at(vaddr)?;
        (runs && segment.executable).then_some(Code { offset, vaddr, size })
    }

    /// The file offset of a virtual address which a loaded segment takes from the file.
    pub(super) fn offset_of(&self, vaddr: u64) -> Option<u64> {
        let segment = self.segment_at(vaddr)?;
        segment.offset.checked_add(vaddr - segment.vaddr)
    }

    /// The virtual address at which the byte at a file offset is loaded; as code, where a byte is loaded twice.
    pub(super) fn vaddr_of(&self, offset: u64) -> Option<u64> {
        let holds = |s: &&Segment| offset.checked_sub(s.offset).is_some_and(|d| d < s.size);
        let code = self.loaded().filter(|s| s.executable).find(holds);
        let segment = code.or_else(|| self.loaded().find(holds))?;
        segment.vaddr.checked_add(offset - segment.offset)
    }

    /// The loaded segment that takes a virtual address from the file.
    pub(super) fn segment_at(&self, vaddr: u64) -> Option<&Segment> {
        self.loaded()
            .find(|s| vaddr.checked_sub(s.vaddr).is_some_and(|d| d < s.size))
    }

    /// The code that holds a file offset.
    pub(super) fn code_at(&self, offset: u64) -> Option<&Code> {
        self.code
            .iter()
            .find(|c| offset.checked_sub(c.offset).is_some_and(|d| d < c.size))
    }

    pub(super) fn section(&self, kind: u32) -> Option<&Section> {
        self.sections.iter().find(|s| s.kind == kind)
    }

    fn loaded(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|s| s.kind == elf::PT_LOAD)
    }
}

fn segments(source: &Source, at: u64, count: u64) -> Result<Vec<Segment>, ElfError> {
    let size = count * SEGMENT as u64;
    let table = source.read("the segment table", at, size, size)?;
    Ok(table.chunks_exact(SEGMENT).filter_map(segment).collect())
}

fn require_code(source: &Source, segments: &[Segment]) -> Result<(), ElfError> {
    for segment in segments.iter().filter(|s| s.kind == elf::PT_LOAD) {
        source.check("a segment", segment.offset, segment.size)?;
        if segment.vaddr.checked_add(segment.size).is_none() {
            return Err(ElfError::Damaged("a segment lies past the end of the address space"));
        }
    }
    if !segments
        .iter()
        .any(|s| s.kind == elf::PT_LOAD && s.executable && s.size > 0)
    {
        return Err(ElfError::Damaged("it holds no code; perhaps only debug information"));
    }
    Ok(())
}

fn segment(record: &[u8]) -> Option<Segment> {
    Some(Segment {
        kind: u32_at(record, 0)?,
        executable: u32_at(record, 4)? & elf::PF_X != 0,
        writable: u32_at(record, 4)? & elf::PF_W != 0,
        offset: u64_at(record, 8)?,
        vaddr: u64_at(record, 16)?,
        size: u64_at(record, 32)?,
        align: u64_at(record, 48)?,
    })
}

fn sections(source: &Source, at: u64, count: u16, names: u16) -> Result<Vec<Section>, ElfError> {
    let first = source.read("the section table", at, SECTION as u64, SECTION as u64)?;
    // Counts which do not fit in the header are kept in the first, otherwise unused, section.
    let count = if count == 0 {
        u64_at(&first, 32).unwrap_or(0)
    } else {
        u64::from(count)
    };
    let names = if names == elf::SHN_XINDEX {
        u32_at(&first, 40).unwrap_or(0)
    } else {
        u32::from(names)
    };
    if count > MOST_SECTIONS {
        return Err(ElfError::TooLarge {
            what: "the number of sections",
            size: count,
            limit: MOST_SECTIONS,
        });
    }
    let size = count * SECTION as u64;
    let table = source.read("the section table", at, size, size)?;
    let mut sections: Vec<(u32, Section)> = table.chunks_exact(SECTION).filter_map(section).collect();
    let strings = match sections.get(names as usize) {
        Some((_, s)) if s.kind == elf::SHT_STRTAB => source.read("the section names", s.offset, s.size, NAMES_LIMIT)?,
        _ => Vec::new(),
    };
    for (name, section) in &mut sections {
        section.name = until_nul(&strings, *name as usize).map(printable).unwrap_or_default();
    }
    Ok(sections.into_iter().map(|(_, section)| section).collect())
}

fn section(record: &[u8]) -> Option<(u32, Section)> {
    let section = Section {
        name: String::new(),
        kind: u32_at(record, 4)?,
        executable: u64_at(record, 8)? & u64::from(elf::SHF_EXECINSTR) != 0,
        compressed: u64_at(record, 8)? & u64::from(elf::SHF_COMPRESSED) != 0,
        vaddr: u64_at(record, 16)?,
        offset: u64_at(record, 24)?,
        size: u64_at(record, 32)?,
        link: u32_at(record, 40)?,
    };
    Some((u32_at(record, 0)?, section))
}

fn machine_name(machine: u16) -> String {
    match machine {
        elf::EM_AARCH64 => "aarch64".to_owned(),
        elf::EM_PPC64 => "ppc64".to_owned(),
        elf::EM_RISCV => "riscv".to_owned(),
        elf::EM_386 => "i386".to_owned(),
        190 => "an NVIDIA GPU".to_owned(),
        other => format!("ELF machine {other}"),
    }
}

fn kind_name(kind: u16) -> String {
    match kind {
        elf::ET_REL => "an object file that is not linked".to_owned(),
        elf::ET_CORE => "a core dump".to_owned(),
        other => format!("ELF type {other}"),
    }
}
