//! What the kernel's uprobe code does with one instruction of aarch64.
//!
//! The classes follow `arch/arm64/kernel/probes/decode-insn.c`. All instructions have four bytes, and a probe is nowhere cheaper than
//! at the first one; what the kernel reads relative to the instruction it refuses in some versions, and so is refused here.

pub(super) const BYTES: usize = 4;
/// `nop`, where a static probe is.
pub(super) const NOP: [u8; BYTES] = [0x1f, 0x20, 0x03, 0xd5];

/// Of the hints, those that may be executed elsewhere: `nop`, `xpaclri`, `pacia1716`, `pacib1716`, `paciaz`, `paciasp`,
/// `pacibz`, `pacibsp`, `bti` and its kinds.
const STEPPED_HINTS: [u32; 12] = [0, 7, 8, 10, 24, 25, 26, 27, 32, 34, 36, 38];

/// What the kernel does with a probed instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Emulated,
    SingleStepped,
    Refused,
}

/// Of the first instruction of `code`; `None`: there is no whole one.
pub(super) fn class_of(code: &[u8]) -> Option<Class> {
    code.first_chunk().map(|bytes| classify(u32::from_le_bytes(*bytes)))
}

fn classify(instruction: u32) -> Class {
    let is = |mask: u32, value: u32| instruction & mask == value;
    let branches = [
        (0x7c00_0000, 0x1400_0000), // b, bl
        (0x7e00_0000, 0x3400_0000), // cbz, cbnz
        (0x7e00_0000, 0x3600_0000), // tbz, tbnz
        (0xff00_0010, 0x5400_0000), // b.cond
        (0xffff_fc1f, 0xd61f_0000), // br
        (0xffff_fc1f, 0xd63f_0000), // blr
        (0xffff_fc1f, 0xd65f_0000), // ret
        (0x1f00_0000, 0x1000_0000), // adr, adrp
    ];
    if branches.iter().any(|(mask, value)| is(*mask, *value)) {
        return Class::Emulated;
    }
    if is(0xffff_f01f, 0xd503_201f) {
        let hint = instruction >> 5 & 0x7f;
        return stepped_unless(!STEPPED_HINTS.contains(&hint));
    }
    let refused = [
        (0xfe00_0000, 0xd600_0000), // returns from exceptions, branches that check their address
        (0xff00_0000, 0xd400_0000), // svc, brk, hlt
        (0xfff0_0000, 0xd510_0000), // msr
        (0xfff8_f01f, 0xd500_401f), // msr of an immediate
        (0x3f00_0000, 0x0800_0000), // exclusive loads and stores
        (0x3b00_0000, 0x1800_0000), // loads relative to the instruction
        (0xffff_0000, 0x0000_0000), // udf
    ];
    stepped_unless(refused.iter().any(|(mask, value)| is(*mask, *value)))
}

fn stepped_unless(is_refused: bool) -> Class {
    match is_refused {
        true => Class::Refused,
        false => Class::SingleStepped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_functions_begin_is_stepped() {
        let beginnings = [
            0xa9bd_7bfd, // stp x29, x30, [sp, #-48]!
            0xd10083ff,  // sub sp, sp, #32
            0xd503_233f, // paciasp
            0xd503_245f, // bti c
            0xd503_201f, // nop
            0x52800000,  // mov w0, #0
            0xd53b_d040, // mrs x0, tpidr_el0
        ];
        for instruction in beginnings {
            assert_eq!(classify(instruction), Class::SingleStepped, "{instruction:#x}");
        }
    }

    #[test]
    fn branches_and_addresses_are_emulated() {
        let branches = [
            0x1400_0010, // b
            0x9400_0010, // bl
            0xb400_0040, // cbz x0
            0x3600_0040, // tbz w0, #0
            0x5400_0040, // b.eq
            0xd61f_0200, // br x16
            0xd65f_03c0, // ret
            0x9000_0010, // adrp x16
        ];
        for instruction in branches {
            assert_eq!(classify(instruction), Class::Emulated, "{instruction:#x}");
        }
    }

    #[test]
    fn what_the_kernel_takes_no_probe_on_is_refused() {
        let refused = [
            0xd400_0001, // svc #0
            0xd420_0000, // brk #0
            0xd503_203f, // yield
            0xd503_205f, // wfe
            0xd69f_03e0, // eret
            0xd65f_0bff, // retaa
            0xd51b_d040, // msr tpidr_el0, x0
            0x885f_7c00, // ldxr w0, [x0]
            0x5800_0040, // ldr x0, 8
            0x1c00_0040, // ldr s0, 8
            0x0000_0000, // udf #0
        ];
        for instruction in refused {
            assert_eq!(classify(instruction), Class::Refused, "{instruction:#x}");
        }
        assert_eq!(class_of(&[0x1f, 0x20]), None, "half an instruction");
    }
}
