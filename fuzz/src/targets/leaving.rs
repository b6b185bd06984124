//! Unwind information of a module, as the agent reads it within the program that has loaded the module: from `.eh_frame_hdr` on.
//!
//! The first four bytes say which address is asked for, relative to it; the next one how far from the end of the memory it lies.

#[cfg(target_arch = "x86_64")]
pub fn run(input: &[u8]) {
    use crate::inside::{Island, Rule, fuzz_find_rule};

    const KINDS: u8 = 5;
    const PLACES: u8 = 3;
    let Some((&[a, b, c, d, beside], index)) = input.split_first_chunk() else {
        return;
    };
    let (at, _) = Island::shared().place(index, usize::from(beside));
    let pc = at.wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])));
    let mut rule = Rule::default();
    // SAFETY: `rule` is one; what lies at the address is what is tried
    unsafe { fuzz_find_rule(at, pc, &raw mut rule) };
    assert_eq!(rule.pc, pc);
    assert!(rule.base < KINDS && rule.saved_in < PLACES, "{rule:?}");
}

#[cfg(not(target_arch = "x86_64"))]
pub fn run(_input: &[u8]) {}
