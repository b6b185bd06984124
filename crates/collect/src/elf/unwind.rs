//! Where functions begin and end according to `.eh_frame`, which stripping leaves.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};

use super::{ElfError, ElfFile};

const FRAME_LIMIT: u64 = 256 << 20;

/// Virtual addresses of a function's first byte and of the byte after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frame {
    pub start: u64,
    pub end: u64,
}

/// All functions, sorted. Empty without `.eh_frame`; what follows a damaged entry is left out.
pub(super) fn frames(file: &ElfFile) -> Result<Vec<Frame>, ElfError> {
    let Some(section) = file.layout.sections.iter().find(|s| s.name == ".eh_frame") else {
        return Ok(Vec::new());
    };
    let bytes = file
        .source
        .read("unwind information", section.offset, section.size, FRAME_LIMIT)?;
    let frame = EhFrame::new(&bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.vaddr);
    let mut entries = frame.entries(&bases);
    let mut found = Vec::new();
    // Most entries share the one before's header, and reading that again would be most of the time.
    let mut known = None;
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let parsed = partial.parse(|section, bases, at| match &known {
            Some((place, cie)) if *place == at => Ok(gimli::CommonInformationEntry::clone(cie)),
            _ => {
                let cie = section.cie_from_offset(bases, at)?;
                known = Some((at, cie.clone()));
                Ok(cie)
            }
        });
        let Ok(entry) = parsed else { continue };
        let start = entry.initial_address();
        found.push(Frame {
            start,
            end: start.saturating_add(entry.len()),
        });
    }
    found.sort_unstable();
    Ok(found)
}

/// The function that holds a virtual address.
pub(super) fn enclosing(frames: &[Frame], vaddr: u64) -> Option<Frame> {
    let after = frames.partition_point(|f| f.start <= vaddr);
    frames.get(..after)?.last().copied().filter(|f| vaddr < f.end)
}
