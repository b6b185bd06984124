mod any_bytes;
mod beginnings;
mod execution;
mod library;
mod places;
mod refused;

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};

use super::{JUMP, Patch, Refusal, plan};

const ENTRY: u64 = 0x40_0000;
/// Between functions.
const INT3: u8 = 0xcc;

/// `add %rsi,%rax` four times, `ret`.
const REST: [u8; 13] = [
    0x48, 0x01, 0xf0, 0x48, 0x01, 0xf0, 0x48, 0x01, 0xf0, 0x48, 0x01, 0xf0, 0xc3,
];
/// `push %rbp`, `mov %rsp,%rbp`, and four bytes more than a jump overwrites.
const FRAMED: [u8; 8] = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x90];

/// Plans for a function of known size, with padding behind it.
fn planned(parts: &[&[u8]]) -> Result<Patch, Refusal> {
    let function = parts.concat();
    let padded = [function.as_slice(), &[INT3; 32]].concat();
    plan(&padded, function.len(), ENTRY)
}

/// The copy as it is at an address, which is less than 2 GiB from the function.
fn put_to(patch: &Patch, place: u64) -> Vec<u8> {
    let mut copy = patch.copy.clone();
    for fixup in &patch.fixups {
        let distance = fixup.target.wrapping_sub(place.wrapping_add(u64::from(fixup.next)));
        let distance = i32::try_from(distance.cast_signed()).expect("less than 2 GiB");
        let at = usize::from(fixup.at);
        copy[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
    copy
}

/// Whether two instructions do the same, each where it is.
fn is_same(one: &Instruction, other: &Instruction) -> bool {
    let branches = one.op0_kind() == OpKind::NearBranch64 && other.op0_kind() == OpKind::NearBranch64;
    // equality leaves the places out and has absolute addresses
    one == other
        || (branches && one.mnemonic() == other.mnemonic() && one.near_branch_target() == other.near_branch_target())
}

/// Asserts that a copy far away does what the beginning does, instruction by instruction.
fn assert_same(function: &[u8], entry: u64, patch: &Patch) {
    let place = entry.wrapping_add(0x3000_0000);
    let copy = put_to(patch, place);
    let mut copied = Decoder::with_ip(64, &copy, place, DecoderOptions::NONE);
    let covered = usize::from(patch.covered);
    let mut original = Decoder::with_ip(64, &function[..covered], entry, DecoderOptions::NONE);
    while original.can_decode() {
        let instruction = original.decode();
        let moved = copied.decode();
        assert!(is_same(&instruction, &moved), "{function:x?} {patch:x?}");
        if !copied.can_decode() {
            // what lies behind is never reached
            assert!(super::code::never_goes_on(&moved), "{function:x?} {patch:x?}");
            return;
        }
    }
    let back = copied.decode();
    assert_eq!(
        back.near_branch_target(),
        entry.wrapping_add(covered as u64),
        "{patch:x?}"
    );
    assert!(back.is_jmp_near() && !copied.can_decode(), "{patch:x?}");
}
