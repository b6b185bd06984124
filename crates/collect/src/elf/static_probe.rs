//! Static probes (SDT, USDT): places that a program's authors marked, and what of its state they show there.
//!
//! Each is a nop in the code and a note in `.note.stapsdt`, which stripping keeps.

use super::bytes::{printable, u32_at, u64_at, until_nul};
use super::layout::Layout;
use super::operand::{self, Operand};
use super::site::{self, SiteRefusal};
use super::{ElfError, ElfFile};

const SECTION: &str = ".note.stapsdt";
/// Marks where the linker put things when it wrote the notes; `prelink` moves it and leaves the notes as they are.
const BASE_SECTION: &str = ".stapsdt.base";
const LIMIT: u64 = 4 << 20;
const KIND: u32 = 3;
const OWNER: &[u8] = b"stapsdt\0";

/// The counter that says whether anybody looks: the program skips the probe while it is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semaphore {
    /// The probe is always passed.
    None,
    /// File offset of its two bytes.
    At(u64),
    /// It does not lie in what the file loads as writable data, so that nobody can raise it.
    Outside,
}

/// One place of a static probe. A probe that was inlined, or is written twice, has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticProbe {
    /// `PROVIDER:NAME`.
    pub name: String,
    /// File offset of its nop; `None`: not in what the file loads.
    pub offset: Option<u64>,
    pub semaphore: Semaphore,
    /// Arguments as the note writes them.
    pub args: Vec<String>,
}

impl StaticProbe {
    /// Where argument `index` lies; `None`: there is none, or it cannot be read from outside.
    pub fn operand(&self, index: usize) -> Option<Operand> {
        Operand::parse(self.args.get(index)?)
    }

    /// The file offset at which the kernel takes a probe for it.
    ///
    /// # Errors
    /// There is no nop of one byte, or its semaphore cannot be raised.
    pub fn site(&self, file: &ElfFile) -> Result<u64, SiteRefusal> {
        let offset = self.offset.ok_or(SiteRefusal::NotLoaded)?;
        if self.semaphore == Semaphore::Outside {
            return Err(SiteRefusal::Semaphore);
        }
        site::static_site(file, offset)
    }
}

impl ElfFile {
    /// The places of the static probes whose `PROVIDER:NAME` is accepted by `keep`, in the order of the file.
    ///
    /// # Errors
    /// The notes are cut off or larger than their limit.
    pub fn static_probes(&self, keep: &dyn Fn(&str) -> bool) -> Result<Vec<StaticProbe>, ElfError> {
        let mut found = Vec::new();
        for section in self.layout.sections.iter().filter(|section| section.name == SECTION) {
            let notes = self
                .source
                .read("the notes of static probes", section.offset, section.size, LIMIT)?;
            let mut at = 0;
            while let Some((note, next)) = note(&notes, at) {
                found.extend(note.and_then(|note| probe(&self.layout, note, keep)));
                at = next;
            }
        }
        Ok(found)
    }
}

/// The description of the note at `at`, if it is a static probe's, and where the next note begins.
fn note(notes: &[u8], at: usize) -> Option<(Option<&[u8]>, usize)> {
    let (owner_size, size) = (u32_at(notes, at)? as usize, u32_at(notes, at + 4)? as usize);
    let kind = u32_at(notes, at + 8)?;
    let owner_at = at + 12;
    let owner = notes.get(owner_at..owner_at.checked_add(owner_size)?)?;
    let from = owner_at + owner_size.checked_next_multiple_of(4)?;
    let description = notes.get(from..from.checked_add(size)?)?;
    let next = from.checked_add(size.checked_next_multiple_of(4)?)?;
    let ours = kind == KIND && owner == OWNER;
    Some((ours.then_some(description), next))
}

fn probe(layout: &Layout, note: &[u8], keep: &dyn Fn(&str) -> bool) -> Option<StaticProbe> {
    let (location, base, semaphore) = (u64_at(note, 0)?, u64_at(note, 8)?, u64_at(note, 16)?);
    let provider = until_nul(note, 24)?;
    let name_at = 24 + provider.len() + 1;
    let name = until_nul(note, name_at)?;
    let args = until_nul(note, name_at + name.len() + 1)?;
    let full = format!("{}:{}", printable(provider), printable(name));
    if provider.is_empty() || name.is_empty() || !keep(&full) {
        return None;
    }
    let moved = moved_by(layout, base);
    Some(StaticProbe {
        name: full,
        offset: layout.offset_of(location.wrapping_add(moved)),
        semaphore: match semaphore {
            0 => Semaphore::None,
            address => counter(layout, address.wrapping_add(moved)),
        },
        args: operand::split(&printable(args))
            .into_iter()
            .map(str::to_owned)
            .collect(),
    })
}

fn moved_by(layout: &Layout, base: u64) -> u64 {
    let section = layout.sections.iter().find(|section| section.name == BASE_SECTION);
    match section {
        Some(section) if base != 0 => section.vaddr.wrapping_sub(base),
        _ => 0,
    }
}

fn counter(layout: &Layout, address: u64) -> Semaphore {
    let Some(segment) = layout.segment_at(address).filter(|segment| segment.writable) else {
        return Semaphore::Outside;
    };
    let into = address - segment.vaddr;
    if segment.size - into < 2 {
        return Semaphore::Outside;
    }
    Semaphore::At(segment.offset + into)
}
