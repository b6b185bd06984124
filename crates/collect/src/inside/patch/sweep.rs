//! Whether a function leads to its own first bytes from elsewhere than the entry.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use std::ops::Range;

use super::Refusal;
use super::code::{self, Code};

/// How much is looked at where the file does not say how long the function is, in bytes.
const UNKNOWN_SIZE: usize = 512;

/// Refuses a function in which anything refers to the bytes that are moved, the first one aside.
///
/// One instruction after the other; where data lies between, from the next byte on that begins one.
pub(super) fn find_branch_into(code: &Code<'_>, covered: usize) -> Result<(), Refusal> {
    let bytes = code.bytes.get(..code.size.unwrap_or(UNKNOWN_SIZE));
    let bytes = bytes.unwrap_or(code.bytes);
    let mut decoder = Decoder::with_ip(64, bytes, code.entry, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        let at = decoder.position();
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            resume(&mut decoder, code.entry, at + 1);
            continue;
        }
        refers(&instruction, code.entry, &(1..covered))?;
        if code.size.is_none() && at >= covered && ends_function(&instruction) {
            break;
        }
    }
    Ok(())
}

/// Instructions before a branch among which one looks at the semaphore that it depends on.
const GUARD: usize = 8;

/// A place within a function, which is patched.
pub(super) struct Place {
    /// Offsets from the entry: of the instruction that stays, of the first one that moves, and behind the last one.
    pub at: usize,
    pub moves: usize,
    pub end: usize,
    /// What the program looks at to skip the place; 0: it never does.
    pub semaphore: u64,
}

/// The same of a place within a function of known size: a jump to where a register says may lead there, too. Who skips it is
/// harmless: while its semaphore is raised, nobody does.
pub(super) fn find_way_into(code: &Code<'_>, place: &Place) -> Result<(), Refusal> {
    let bytes = code.size.and_then(|size| code.bytes.get(..size));
    let mut decoder = Decoder::with_ip(64, bytes.ok_or(Refusal::CutOff)?, code.entry, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut looked = GUARD;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() || instruction.flow_control() == FlowControl::IndirectBranch {
            return Err(Refusal::Indirect);
        }
        let looks = instruction.is_ip_rel_memory_operand() && instruction.ip_rel_memory_address() == place.semaphore;
        looked = if looks { 0 } else { looked.saturating_add(1) };
        let is_guard = looked < GUARD && instruction.flow_control() == FlowControl::ConditionalBranch;
        let skips = instruction.near_branch_target() == code.entry.wrapping_add(place.moves as u64);
        if !(is_guard && skips) {
            refers(&instruction, code.entry, &(place.at + 1..place.end))?;
        }
    }
    Ok(())
}

fn resume(decoder: &mut Decoder<'_>, entry: u64, at: usize) {
    // never beyond the end, which is one byte behind the last that was decoded
    if decoder.set_position(at).is_ok() {
        decoder.set_ip(entry.wrapping_add(at as u64));
    }
}

fn refers(instruction: &Instruction, entry: u64, places: &Range<usize>) -> Result<(), Refusal> {
    let is_moved = |address: u64| {
        let at = usize::try_from(address.wrapping_sub(entry));
        at.is_ok_and(|at| places.contains(&at))
    };
    let branches = matches!(
        instruction.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    if branches && is_moved(instruction.near_branch_target()) {
        return Err(Refusal::BranchedTo);
    }
    if instruction.is_ip_rel_memory_operand() && is_moved(instruction.ip_rel_memory_address()) {
        return Err(Refusal::AddressTaken);
    }
    Ok(())
}

/// Whether the function may be over, as far as one instruction tells.
fn ends_function(instruction: &Instruction) -> bool {
    code::never_goes_on(instruction) || instruction.mnemonic() == Mnemonic::Int3
}
