//! Places within functions: static probes, above all.

use super::{ENTRY, INT3};
use crate::inside::patch::{Patch, Refusal, plan_place};

/// Behind the end of the file's code.
const SEMAPHORE: u64 = ENTRY + 0x1000;
const NOP: u8 = 0x90;
/// `mov %rdi,%rax`, `add %rsi,%rax`, `ret`.
const REST: [u8; 7] = [0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xc3];

fn planned(parts: &[&[u8]], at: usize) -> Result<Patch, Refusal> {
    let function = parts.concat();
    let padded = [function.as_slice(), &[INT3; 32]].concat();
    plan_place(&padded, function.len(), ENTRY, at, SEMAPHORE)
}

/// `cmpw $0,semaphore(%rip)`, `je` over a nop, the nop.
fn guarded(address: u64) -> Vec<u8> {
    let distance = (address.wrapping_sub(ENTRY + 8) as u32).to_le_bytes();
    [&[0x66, 0x83, 0x3d], distance.as_slice(), &[0, 0x74, 1, NOP]].concat()
}

#[test]
fn the_nop_stays_and_what_follows_moves() {
    let patch = planned(&[&[0x53, NOP], &REST], 1).expect("a patch");
    assert_eq!((patch.kept, patch.covered), (1, 7));
    assert_eq!(patch.copy[..6], REST[..6]);
    assert_eq!(patch.fixups[0].target, ENTRY + 8, "it goes on behind what has moved");
    assert!(patch.undo.is_empty());
}

#[test]
fn who_skips_a_probe_by_its_semaphore_may_lead_to_what_moves() {
    let guard = guarded(SEMAPHORE);
    assert!(planned(&[&guard, &REST], 10).is_ok());
    let other = guarded(SEMAPHORE + 2);
    assert_eq!(planned(&[&other, &REST], 10), Err(Refusal::BranchedTo));
}

#[test]
fn a_branch_from_elsewhere_refuses_the_place() {
    // jmp to the second instruction that would move
    let back = [0xeb, 0xf9];
    assert_eq!(
        planned(&[&[NOP], &REST[..6], &back, &[0xc3]], 0),
        Err(Refusal::BranchedTo)
    );
}

#[test]
fn a_switch_of_the_function_may_lead_anywhere() {
    // jmp *%rax
    assert_eq!(planned(&[&[NOP], &REST[..6], &[0xff, 0xe0]], 0), Err(Refusal::Indirect));
}

#[test]
fn a_short_instruction_that_does_something_cannot_be_overwritten() {
    assert_eq!(planned(&[&REST], 0), Err(Refusal::ShortPlace));
    // movabs $1,%rax
    let long = [0x48, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0];
    let patch = planned(&[&long, &REST], 0).expect("a patch");
    assert_eq!((patch.kept, patch.covered), (0, 10));
}

#[test]
fn a_place_near_the_end_of_its_function_has_no_room() {
    assert_eq!(planned(&[&[NOP, 0xeb, 0xfe], &REST], 0), Err(Refusal::TooShort));
    assert_eq!(planned(&[&REST, &[NOP]], 7), Err(Refusal::CutOff));
}
