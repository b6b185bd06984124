//! Whether a function leads to its own first bytes from elsewhere than the entry.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

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
        check(&instruction, code.entry, covered)?;
        if code.size.is_none() && at >= covered && ends_function(&instruction) {
            break;
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

fn check(instruction: &Instruction, entry: u64, covered: usize) -> Result<(), Refusal> {
    let is_moved = |address: u64| (1..covered as u64).contains(&address.wrapping_sub(entry));
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
