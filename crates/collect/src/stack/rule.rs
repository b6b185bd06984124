//! How one function is left, by its entry of `.eh_frame` in the memory of a process.
//!
//! Owns the meaning of an entry at one address. Which functions are on a stack is [`super::unwinder`]'s business.

use super::memory::Memory;
use super::prologue::below_frame;
use crate::wire::{u32_at, u64_at};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, Encoding, EvaluationResult, Expression, LittleEndian, Location,
    Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Value, X86_64,
};

type Section<'a> = EhFrame<gimli::EndianSlice<'a, LittleEndian>>;

const MOST_BYTES: usize = 1 << 16;
const MOST_STEPS: u32 = 256;
/// Of the beginning of a function, as much is looked at.
const BEGINNING: u64 = 256;
/// Of the table that a linker has sorted: version 1, the number of its entries in four bytes, entries relative to itself.
const INDEX_HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const ENCODING: Encoding = Encoding {
    address_size: 8,
    format: gimli::Format::Dwarf32,
    version: 4,
};

/// What is known of a thread's registers within a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    pub pc: u64,
    pub sp: u64,
    /// `rbp`; `None`: it is not known.
    pub frame: Option<u64>,
}

/// How the caller's registers follow from those of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    end: Place,
    frame: Saved,
    /// How far the stack pointer lies below `rbp`, where that is known.
    below: Option<u64>,
    /// Nobody has called it.
    is_first: bool,
}

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    OfStack(i64),
    OfFrame(i64),
    Expression(Vec<u8>),
}

/// Where the caller's `rbp` is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Saved {
    Nowhere,
    /// So far from the end of the frame.
    At(i64),
    AtExpression(Vec<u8>),
    Lost,
}

impl Rule {
    /// That of the function which holds `pc`, in the module whose sorted table (`.eh_frame_hdr`) lies at `index`.
    pub(crate) fn of(memory: &impl Memory, index: u64, pc: u64) -> Option<Rule> {
        let entry = entry_for(memory, index, pc)?;
        let (bytes, common_bytes) = read_entry(memory, entry)?;
        let section = Section::new(&bytes, LittleEndian);
        // as far as addresses are relative to their place, they are so to that of the entry
        let base = entry.wrapping_sub(common_bytes as u64);
        let bases = BaseAddresses::default().set_eh_frame(base);
        let entry = section.fde_from_offset(&bases, EhFrameOffset(common_bytes), Section::cie_from_offset);
        let entry = entry.ok().filter(|entry| !entry.is_signal_trampoline())?;
        let mut context = UnwindContext::new();
        let begin = entry.initial_address();
        let row = entry.unwind_info_for_address(&section, &bases, &mut context, pc).ok()?;
        let end = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => match *register {
                X86_64::RSP => Place::OfStack(*offset),
                X86_64::RBP => Place::OfFrame(*offset),
                _ => return None,
            },
            CfaRule::Expression(expression) => Place::Expression(bytes_of(*expression, &section)?),
        };
        let frame = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Saved::Nowhere,
            Some(RegisterRule::Offset(offset)) => Saved::At(offset),
            Some(RegisterRule::Expression(expression)) => Saved::AtExpression(bytes_of(expression, &section)?),
            _ => Saved::Lost,
        };
        let of_frame = matches!(end, Place::OfFrame(_));
        let code = of_frame.then(|| memory.bytes(begin, pc.saturating_sub(begin).min(BEGINNING), BEGINNING as usize));
        Some(Rule {
            end,
            frame,
            below: code.flatten().and_then(|code| below_frame(&code)),
            is_first: matches!(row.register(X86_64::RA), Some(RegisterRule::Undefined)),
        })
    }

    /// The caller's registers; `None`: there is no caller, or it cannot be told.
    pub(crate) fn step(&self, memory: &impl Memory, at: Registers) -> Option<Registers> {
        let at = Registers {
            frame: at.frame.or_else(|| at.sp.checked_add(self.below?)),
            ..at
        };
        let end = match &self.end {
            Place::OfStack(offset) => at.sp.wrapping_add_signed(*offset),
            Place::OfFrame(offset) => at.frame?.wrapping_add_signed(*offset),
            Place::Expression(expression) => evaluate(memory, expression, at, None)?,
        };
        if self.is_first || end <= at.sp {
            return None;
        }
        let frame = match &self.frame {
            Saved::Nowhere => at.frame,
            Saved::At(offset) => memory.word(end.wrapping_add_signed(*offset)),
            Saved::AtExpression(expression) => {
                let place = evaluate(memory, expression, at, Some(end));
                place.and_then(|place| memory.word(place))
            }
            Saved::Lost => None,
        };
        let pc = memory.word(end.wrapping_sub(8)).filter(|pc| *pc != 0)?;
        Some(Registers { pc, sp: end, frame })
    }

    /// Whether nobody has called the function.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }
}

/// Where the entry of the function lies that holds `pc`, or the one before it.
fn entry_for(memory: &impl Memory, index: u64, pc: u64) -> Option<u64> {
    let mut head = [0; 12];
    memory.read(index, &mut head)?;
    if head[..4] != INDEX_HEAD {
        return None;
    }
    let relative = |address: u64| -> Option<u64> {
        let distance = memory.half(address)?.cast_signed();
        Some(index.wrapping_add_signed(distance.into()))
    };
    let at = |number: u32| index.wrapping_add(12 + u64::from(number) * 8);
    let (mut low, mut high) = (0, u32_at(&head, 8));
    while low < high {
        let middle = low + (high - low) / 2;
        match relative(at(middle))? <= pc {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    relative(at(low.checked_sub(1)?) + 4)
}

/// The bytes of what all entries of a kind share, then those of an entry, which is told where that is; and how long the
/// first are.
fn read_entry(memory: &impl Memory, entry: u64) -> Option<(Vec<u8>, usize)> {
    let whole = |at: u64| -> Option<Vec<u8>> {
        let length = memory.half(at).filter(|length| *length != 0)?;
        memory.bytes(at, u64::from(length) + 4, MOST_BYTES)
    };
    let mut own = whole(entry)?;
    let back = u32_at(&own, 4);
    let common = whole((entry + 4).wrapping_sub(back.into()))?;
    let pointer = u32::try_from(common.len() + 4).ok()?;
    own.get_mut(4..8)?.copy_from_slice(&pointer.to_le_bytes());
    let length = common.len();
    Some(([common, own].concat(), length))
}

fn bytes_of(expression: UnwindExpression<usize>, section: &Section<'_>) -> Option<Vec<u8>> {
    expression.get(section).ok().map(|found| found.0.slice().to_vec())
}

/// `first`: what the expression begins with.
fn evaluate(memory: &impl Memory, expression: &[u8], at: Registers, first: Option<u64>) -> Option<u64> {
    let expression = Expression(gimli::EndianSlice::new(expression, LittleEndian));
    let mut evaluation = expression.evaluation(ENCODING);
    evaluation.set_max_iterations(MOST_STEPS);
    if let Some(first) = first {
        evaluation.set_initial_value(first);
    }
    let mut asked = evaluation.evaluate().ok()?;
    loop {
        asked = match asked {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = register_of(register, at)?;
                evaluation.resume_with_register(Value::Generic(value)).ok()?
            }
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                let value = memory.word(address)?;
                evaluation.resume_with_memory(Value::Generic(value)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.result().first()?.location {
        Location::Address { address } => Some(address),
        _ => None,
    }
}

fn register_of(register: Register, at: Registers) -> Option<u64> {
    match register {
        X86_64::RSP => Some(at.sp),
        X86_64::RBP => at.frame,
        X86_64::RA => Some(at.pc),
        _ => None,
    }
}

/// Where the sorted table of a module lies whose ELF file is mapped at `base`, and `None` where it has none.
pub(crate) fn index_of(memory: &impl Memory, base: u64) -> Option<u64> {
    let mut head = [0; 64];
    memory.read(base, &mut head)?;
    let (table, entry_bytes, count) = (u64_at(&head, 32), 56, u16::from_le_bytes([head[56], head[57]]));
    if !head.starts_with(b"\x7fELF") || u16::from_le_bytes([head[54], head[55]]) != entry_bytes {
        return None;
    }
    let size = u64::from(entry_bytes) * u64::from(count);
    let headers = memory.bytes(base.wrapping_add(table), size, MOST_BYTES)?;
    let mut segments = headers.chunks_exact(entry_bytes.into());
    let of_kind = |kind: u32| move |segment: &&[u8]| u32_at(segment, 0) == kind;
    let first = segments.clone().find(of_kind(object::elf::PT_LOAD))?;
    let index = segments.find(of_kind(object::elf::PT_GNU_EH_FRAME))?;
    let bias = base.wrapping_sub(u64_at(first, 16).wrapping_sub(u64_at(first, 8)));
    Some(bias.wrapping_add(u64_at(index, 16)))
}
