//! The byte of a function at which the kernel can take a probe for the least cost.
//!
//! The kernel emulates a few instructions and single-steps all others, which costs three times more on bare metal and
//! thirteen times more in a virtual machine. Where the first instruction is of the second kind, one of the first kind
//! often follows before anything that a probe reads has changed.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use super::instruction::{self, Class, NOP5};
use super::{ElfError, ElfFile, aarch64, unwind};

/// How far a probe may move from the entry, in bytes.
const REACH: usize = 32;
const LONGEST_INSTRUCTION: usize = 15;
/// Of one byte, or of the four that all instructions of aarch64 have.
const NOP: &[u8] = if IS_AARCH64 { &aarch64::NOP } else { &[0x90] };
const IS_AARCH64: bool = cfg!(target_arch = "aarch64");
/// How much of a function is searched for jumps back to its start, in bytes.
const MOST_DECODED: u64 = 64 << 10;
const UNKNOWN_SIZE: u64 = 4 << 10;

/// How the kernel runs the probed instruction itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cost {
    Emulated,
    SingleStepped,
    /// A nop of five bytes: replaced by a call from Linux 6.18 on, emulated or single-stepped before.
    Nop5,
}

impl Cost {
    /// Of an instruction that is probed where it is; `None`: it takes no probe.
    fn of(step: &Step, code: &[u8]) -> Option<Cost> {
        match step.class {
            Class::LongNop if code.get(step.at..).is_some_and(|code| code.starts_with(&NOP5)) => Some(Cost::Nop5),
            Class::Emulated | Class::LongNop => Some(Cost::Emulated),
            Class::Other => Some(Cost::SingleStepped),
            Class::Invalid | Class::BadPrefix(_) | Class::BadKind => None,
        }
    }
}

/// Where to probe, relative to a function's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// In bytes, below 32. The argument registers, `rsp` and the memory at `rsp` are there what they were at the entry.
    pub moved_by: u8,
    pub cost: Cost,
}

/// Where to probe a function of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// File offset in bytes, `moved_by` included.
    pub offset: u64,
    pub moved_by: u8,
    pub cost: Cost,
}

/// Why there is no safe probe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteRefusal {
    #[error("not probed: byte {0:#x} of the file is not code")]
    NotCode(u64),
    #[error("not probed: byte {0:#x} of the file is inside an instruction")]
    InsideInstruction(u64),
    #[error("not probed: the bytes there are no instruction")]
    Undecodable,
    #[error("not probed: the kernel takes no probe on an instruction with a {0} prefix")]
    Prefix(&'static str),
    #[error("not probed: the kernel takes no probe on this kind of instruction")]
    Kind,
    #[error("not probed: a five-byte nop inside a function, where some kernels overwrite live stack")]
    NopInside,
    #[error("not probed: nothing says where instructions begin around byte {0:#x} of the file")]
    NoFunction(u64),
    #[error("not probed: byte {0:#x} of the file, where a static probe should be, is not the nop of one")]
    NoNop(u64),
    #[error("not probed: the static probe does not lie in what the file loads")]
    NotLoaded,
    #[error("not probed: the static probe's semaphore does not lie in the file's writable data")]
    Semaphore,
    #[error(transparent)]
    File(#[from] ElfError),
}

/// Chooses from the first bytes of a function, of which 47 are enough. Pass no bytes of the next function.
///
/// # Errors
/// The first instruction takes no probe and no later one can stand in for it.
pub fn decide(bytes: &[u8]) -> Result<Decision, SiteRefusal> {
    if IS_AARCH64 {
        return decide_fixed(bytes);
    }
    let mut instructions = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let first = step(&mut instructions, bytes).ok_or(SiteRefusal::Undecodable)?;
    let at_entry = match first.class {
        Class::Emulated | Class::LongNop => {
            return Ok(Decision {
                moved_by: 0,
                cost: Cost::of(&first, bytes).unwrap_or(Cost::Emulated),
            });
        }
        Class::Invalid => return Err(SiteRefusal::Undecodable),
        Class::Other => Ok(Decision {
            moved_by: 0,
            cost: Cost::SingleStepped,
        }),
        Class::BadPrefix(name) => Err(SiteRefusal::Prefix(name)),
        Class::BadKind => Err(SiteRefusal::Kind),
    };
    let mut previous = first;
    while instruction::leaves_entry_state(&previous.instruction) {
        let Some(next) = step(&mut instructions, bytes) else {
            break;
        };
        if next.at >= REACH {
            break;
        }
        // A longer nop would be replaced by a call on newer kernels, whose push lands in the red zone of a function that
        // is under way.
        if next.class == Class::Emulated {
            let moved_by = u8::try_from(next.at).unwrap_or_default();
            return Ok(Decision {
                moved_by,
                cost: Cost::Emulated,
            });
        }
        previous = next;
    }
    at_entry
}

/// Of instructions that all have the same size: the first is as good as any.
fn decide_fixed(bytes: &[u8]) -> Result<Decision, SiteRefusal> {
    let cost = match aarch64::class_of(bytes).ok_or(SiteRefusal::Undecodable)? {
        aarch64::Class::Emulated => Cost::Emulated,
        aarch64::Class::SingleStepped => Cost::SingleStepped,
        aarch64::Class::Refused => return Err(SiteRefusal::Kind),
    };
    Ok(Decision { moved_by: 0, cost })
}

/// Chooses for the function whose first byte is at the file offset `offset`.
///
/// An offset inside a function that a symbol names is taken as it is, if an instruction begins there.
///
/// # Errors
/// There is no code, no instruction or none that takes a probe; or the file cannot be read.
pub fn probe_site(file: &ElfFile, offset: u64) -> Result<Site, SiteRefusal> {
    let code = file.layout.code_at(offset).ok_or(SiteRefusal::NotCode(offset))?;
    let code_end = code.offset + code.size;
    let extents = file.extents()?;
    let after = extents.partition_point(|e| e.offset <= offset);
    let until_here = extents.get(..after).unwrap_or_default();
    let size = match until_here.last() {
        Some(function) if function.offset == offset => function.size,
        Some(outer) if offset - outer.offset < outer.size => {
            return inside(file, outer.offset, offset, code_end);
        }
        _ => 0,
    };
    let known = if size == 0 {
        UNKNOWN_SIZE
    } else {
        size.min(MOST_DECODED)
    };
    let code = file.source.read_up_to(offset, clamp(known.min(code_end - offset)))?;
    let prologue = code
        .get(..code.len().min(REACH + LONGEST_INSTRUCTION))
        .unwrap_or_default();
    let decision = decide(prologue)?;
    let moved_by = decision.moved_by;
    if moved_by == 0 {
        return Ok(Site {
            offset,
            moved_by,
            cost: decision.cost,
        });
    }
    let moved = offset + u64::from(moved_by);
    let other_entry = extents.get(after).is_some_and(|next| next.offset <= moved);
    if other_entry || jumps_into(&code, u64::from(moved_by)) {
        return unmoved(&code, offset);
    }
    Ok(Site {
        offset: moved,
        moved_by,
        cost: decision.cost,
    })
}

/// Where to probe for an offset that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceSite {
    pub site: Site,
    /// Whether a function begins there: only then are arguments and the return address where a call leaves them.
    pub is_entry: bool,
}

/// Chooses for an offset which need not be a function's: in a function of the symbol tables, or else of the unwind
/// information.
///
/// # Errors
/// As [`probe_site`]; or no function holds the offset, so that an instruction may be under way there.
pub(crate) fn place_site(file: &ElfFile, offset: u64) -> Result<PlaceSite, SiteRefusal> {
    let code = file.layout.code_at(offset).ok_or(SiteRefusal::NotCode(offset))?;
    let extents = file.extents()?;
    let after = extents.partition_point(|e| e.offset <= offset);
    let last = extents.get(..after).unwrap_or_default().last();
    let by_symbol = last.filter(|known| known.offset == offset || offset - known.offset < known.size);
    let start = match by_symbol {
        Some(known) => Some(known.offset),
        None => unwound_start(file, offset)?,
    };
    let is_entry = start.ok_or(SiteRefusal::NoFunction(offset))? == offset;
    let site = match (by_symbol, start) {
        (None, Some(start)) if !is_entry => inside(file, start, offset, code.offset + code.size)?,
        _ => probe_site(file, offset)?,
    };
    Ok(PlaceSite { site, is_entry })
}

fn unwound_start(file: &ElfFile, offset: u64) -> Result<Option<u64>, ElfError> {
    let frames = unwind::frames(file)?;
    let frame = file
        .layout
        .vaddr_of(offset)
        .and_then(|vaddr| unwind::enclosing(&frames, vaddr));
    Ok(frame.and_then(|frame| file.layout.offset_of(frame.start)))
}

/// The place of a static probe, which is a nop of one byte, or of the four that instructions of aarch64 have.
pub(super) fn static_site(file: &ElfFile, offset: u64) -> Result<u64, SiteRefusal> {
    let code = file.layout.code_at(offset).ok_or(SiteRefusal::NotCode(offset))?;
    let there = file.source.read_up_to(offset, NOP5.len())?;
    if !IS_AARCH64 && there.starts_with(&NOP5) {
        return Err(SiteRefusal::NopInside);
    }
    if !there.starts_with(NOP) {
        return Err(SiteRefusal::NoNop(offset));
    }
    let extents = file.extents()?;
    let after = extents.partition_point(|e| e.offset <= offset);
    let outer = extents.get(..after).unwrap_or_default().last();
    match outer.filter(|outer| offset - outer.offset < outer.size) {
        Some(outer) => inside(file, outer.offset, offset, code.offset + code.size).map(|site| site.offset),
        // nothing says where the function begins
        None => Ok(offset),
    }
}

/// A call which arrives by such a jump would be counted at the moved site but not at the entry.
fn jumps_into(code: &[u8], moved_by: u64) -> bool {
    Decoder::with_ip(64, code, 0, DecoderOptions::NONE)
        .iter()
        .any(|instruction| {
            let direct = matches!(
                instruction.flow_control(),
                FlowControl::ConditionalBranch
                    | FlowControl::UnconditionalBranch
                    | FlowControl::Call
                    | FlowControl::XbeginXabortXend
            );
            direct && instruction.op_count() > 0 && (1..=moved_by).contains(&instruction.near_branch_target())
        })
}

/// The offset that was asked for lies within the function that begins at `start`.
fn inside(file: &ElfFile, start: u64, offset: u64, code_end: u64) -> Result<Site, SiteRefusal> {
    if IS_AARCH64 {
        return fixed(file, start, offset);
    }
    if offset - start > MOST_DECODED {
        return Err(SiteRefusal::InsideInstruction(offset));
    }
    let end = code_end.min(offset + LONGEST_INSTRUCTION as u64);
    let code = file.source.read_up_to(start, clamp(end - start))?;
    let mut instructions = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
    while instructions.can_decode() && instructions.ip() < offset {
        let _ = instructions.decode();
    }
    if instructions.ip() != offset {
        return Err(SiteRefusal::InsideInstruction(offset));
    }
    let code = code.get(clamp(offset - start)..).unwrap_or_default();
    if code.starts_with(&NOP5) {
        return Err(SiteRefusal::NopInside);
    }
    unmoved(code, offset)
}

/// The same where all instructions have the same size.
fn fixed(file: &ElfFile, start: u64, offset: u64) -> Result<Site, SiteRefusal> {
    if !(offset - start).is_multiple_of(aarch64::BYTES as u64) {
        return Err(SiteRefusal::InsideInstruction(offset));
    }
    let decision = decide_fixed(&file.source.read_up_to(offset, aarch64::BYTES)?)?;
    Ok(Site {
        offset,
        moved_by: 0,
        cost: decision.cost,
    })
}

fn unmoved(code: &[u8], offset: u64) -> Result<Site, SiteRefusal> {
    let mut instructions = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let first = step(&mut instructions, code).ok_or(SiteRefusal::Undecodable)?;
    let refusal = match first.class {
        Class::BadPrefix(name) => SiteRefusal::Prefix(name),
        Class::BadKind => SiteRefusal::Kind,
        _ => SiteRefusal::Undecodable,
    };
    let cost = Cost::of(&first, code).ok_or(refusal)?;
    Ok(Site {
        offset,
        moved_by: 0,
        cost,
    })
}

struct Step {
    at: usize,
    class: Class,
    instruction: Instruction,
}

fn step(instructions: &mut Decoder<'_>, bytes: &[u8]) -> Option<Step> {
    if !instructions.can_decode() {
        return None;
    }
    let at = instructions.position();
    let instruction = instructions.decode();
    let encoded = bytes.get(at..instructions.position())?;
    Some(Step {
        at,
        class: instruction::classify(&instruction, encoded),
        instruction,
    })
}

fn clamp(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
