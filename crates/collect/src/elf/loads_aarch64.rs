//! Which addresses code of aarch64 puts into registers: `adrp` and `add`, `adr`, and `adrp` and `ldr` of a slot that the dynamic
//! linker fills. Compilers reach the data of a file from one place in it, its anchor: by another `add`, or `sub`, to that address.

use super::bytes::u32_at;

/// How far apart the two halves of an address lie, and how long a register is taken to hold one, in bytes.
pub(super) const REACH: usize = 128;
const BYTES: u64 = 4;
/// Registers that a call may change.
const SCRATCH: usize = 19;

/// What was put into a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loaded {
    Address(u64),
    /// What lies at that address.
    Slot(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Page(u64),
    Whole(Loaded),
}

/// One pass over code, in its order.
#[derive(Debug, Default)]
pub(super) struct Loads {
    held: [Option<(Held, u64)>; 32],
}

/// What one instruction has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Loaded(Loaded),
    /// Another address, from one that was loaded to reach it by.
    Reached {
        from: u64,
        to: u64,
    },
    /// Calls that address; what registers hold is asked for before the next step.
    Call(u64),
    Other,
}

impl Loads {
    /// Each instruction of `code`, which lies at `base`, with its place in `code`.
    pub(super) fn walk(base: u64, code: &[u8], each: &mut dyn FnMut(&Loads, usize, Step) -> bool) {
        let mut loads = Loads::default();
        let skipped = usize::try_from(base.wrapping_neg() % BYTES).unwrap_or_default();
        let mut at = skipped;
        while let Some(instruction) = u32_at(code, at) {
            let step = loads.step(base + at as u64, instruction);
            if !each(&loads, at, step) {
                return;
            }
            if matches!(step, Step::Call(_)) {
                loads.held[..SCRATCH].fill(None);
            }
            at += BYTES as usize;
        }
    }

    /// What register `number` holds at `pc`, where that is known.
    pub(super) fn held(&self, number: usize, pc: u64) -> Option<Loaded> {
        match self.recent(number, pc)? {
            Held::Whole(loaded) => Some(loaded),
            Held::Page(_) => None,
        }
    }

    fn recent(&self, number: usize, pc: u64) -> Option<Held> {
        let (held, at) = (*self.held.get(number)?)?;
        (pc.wrapping_sub(at) <= REACH as u64).then_some(held)
    }

    fn step(&mut self, pc: u64, instruction: u32) -> Step {
        let to = (instruction & 31) as usize;
        let from = (instruction >> 5 & 31) as usize;
        let offset = u64::from(instruction >> 10 & 0xfff);
        let is = |mask: u32, value: u32| instruction & mask == value;
        if let Some((from, by)) = self.anchor(from, pc, instruction) {
            let reached = from.wrapping_add(by);
            self.held[to] = Some((Held::Whole(Loaded::Address(reached)), pc));
            return Step::Reached { from, to: reached };
        }
        let held = if is(0x9f00_0000, 0x9000_0000) {
            Some(Held::Page((pc & !0xfff).wrapping_add(distance(instruction) << 12)))
        } else if is(0x9f00_0000, 0x1000_0000) {
            Some(Held::Whole(Loaded::Address(pc.wrapping_add(distance(instruction)))))
        } else if is(0xffc0_0000, 0x9100_0000) {
            self.page(from, pc)
                .map(|page| Held::Whole(Loaded::Address(page.wrapping_add(offset))))
        } else if is(0xffc0_0000, 0xf940_0000) {
            self.page(from, pc)
                .map(|page| Held::Whole(Loaded::Slot(page.wrapping_add(offset * 8))))
        } else if is(0xffe0_ffe0, 0xaa00_03e0) {
            self.recent((instruction >> 16 & 31) as usize, pc)
        } else if is(0xfc00_0000, 0x9400_0000) {
            let words = i64::from((instruction << 6).cast_signed() >> 6);
            return Step::Call(pc.wrapping_add_signed(words * 4));
        } else {
            return Step::Other;
        };
        self.held[to] = held.map(|held| (held, pc));
        match held {
            Some(Held::Whole(loaded)) => Step::Loaded(loaded),
            _ => Step::Other,
        }
    }

    /// The address that is added to, and what: of `add` and `sub` of a number of 12 bits, or of those above.
    fn anchor(&self, register: usize, pc: u64, instruction: u32) -> Option<(u64, u64)> {
        let offset = u64::from(instruction >> 10 & 0xfff);
        let by = match instruction & 0xffc0_0000 {
            0x9100_0000 => offset,
            0x9140_0000 => offset << 12,
            0xd100_0000 => offset.wrapping_neg(),
            0xd140_0000 => (offset << 12).wrapping_neg(),
            _ => return None,
        };
        match self.held(register, pc)? {
            Loaded::Address(address) => Some((address, by)),
            Loaded::Slot(_) => None,
        }
    }

    fn page(&self, number: usize, pc: u64) -> Option<u64> {
        match self.recent(number, pc)? {
            Held::Page(page) => Some(page),
            Held::Whole(_) => None,
        }
    }
}

/// Of `adr` in bytes, of `adrp` in pages.
fn distance(instruction: u32) -> u64 {
    let value = (instruction >> 5 & 0x7_ffff) << 2 | instruction >> 29 & 3;
    let signed = (value << 11).cast_signed() >> 11;
    i64::from(signed).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `nvcc` has a kernel registered, at 0x46d8c.
    const REGISTRATION: [u32; 12] = [
        0xb000_0362, // adrp x2, b3000
        0x9102_4042, // add x2, x2, #0x90
        0xf900_07ff, // str xzr, [sp, #8]
        0xf900_03ff, // str xzr, [sp]
        0xd280_0007, // mov x7, #0
        0xd280_0006, // mov x6, #0
        0xd280_0005, // mov x5, #0
        0x1280_0004, // mov w4, #-1
        0xaa02_03e3, // mov x3, x2
        0x9000_0001, // adrp x1, 46000
        0x9127_f021, // add x1, x1, #0x9fc
        0x9400_3de7, // bl 56554
    ];

    fn bytes(code: &[u32]) -> Vec<u8> {
        code.iter().copied().flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn what_a_call_is_given_is_followed_through_its_registers() {
        let mut calls = Vec::new();
        Loads::walk(0x46d8c, &bytes(&REGISTRATION), &mut |loads, at, step| {
            if let Step::Call(target) = step {
                let held = |number| loads.held(number, 0x46d8c + at as u64);
                calls.push((target, held(1), held(2), held(3), held(4)));
            }
            true
        });
        let at = |address| Some(Loaded::Address(address));
        assert_eq!(calls, [(0x56554, at(0x469fc), at(0xb3090), at(0xb3090), None)]);
    }

    #[test]
    fn a_slot_of_the_dynamic_linker_is_told_from_an_address() {
        // adrp x1, 4000; ldr x1, [x1, #4088]; adr x0, .-4; add x0, x1, #8
        let code = bytes(&[0xf000_0001, 0xf947_fc21, 0x10ff_ffe0, 0x9100_2020]);
        let mut loaded = Vec::new();
        Loads::walk(0x1000, &code, &mut |_, _, step| {
            loaded.push(step);
            true
        });
        let expected = [
            Step::Other,
            Step::Loaded(Loaded::Slot(0x4ff8)),
            Step::Loaded(Loaded::Address(0x1004)),
            Step::Other,
        ];
        assert_eq!(loaded, expected);
    }

    #[test]
    fn what_is_reached_from_another_address_is_told_with_it() {
        // adrp x10, 85000; add x12, x10, #0x390; add x13, x12, #0x28; sub x14, x12, #8; add x1, x12, #1, lsl #12
        let code = bytes(&[0xf000_01ea, 0x910e_414c, 0x9100_a18d, 0xd100_218e, 0x9140_0581]);
        let mut steps = Vec::new();
        Loads::walk(0x46c3c, &code, &mut |_, _, step| {
            steps.push(step);
            true
        });
        let from = 0x85390;
        let expected = [
            Step::Loaded(Loaded::Address(from)),
            Step::Reached { from, to: 0x853b8 },
            Step::Reached { from, to: 0x85388 },
            Step::Reached { from, to: 0x86390 },
        ];
        assert_eq!(steps[1..], expected);
    }

    #[test]
    fn what_a_register_held_long_ago_or_before_a_call_is_not_known() {
        let nop = 0xd503_201f;
        let late = [&REGISTRATION[..2], &[nop; 40], &REGISTRATION[11..]].concat();
        let called = [&REGISTRATION[..2], &[0x9400_0001], &REGISTRATION[11..]].concat();
        for code in [late, called] {
            let mut last = Some(Loaded::Address(0));
            Loads::walk(0, &bytes(&code), &mut |loads, at, _| {
                last = loads.held(2, at as u64);
                true
            });
            assert_eq!(last, None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_code_is_walked_to_its_end(base: u64, code in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
            let mut steps = 0;
            Loads::walk(base >> 1, &code, &mut |_, _, _| { steps += 1; true });
            proptest::prop_assert!(steps <= code.len() / 4);
        }
    }
}
