//! One byte string for each kind of beginning.

use super::{ENTRY, REST, assert_same, planned};
use crate::inside::patch::{Fixup, plan};

const NOTHING: &[u8] = &[];
/// `lea 8(%rsp),%rsp`.
const RAISE_8: &[u8] = &[0x48, 0x8d, 0x64, 0x24, 0x08];
const RAISE_2: &[u8] = &[0x48, 0x8d, 0x64, 0x24, 0x02];
const RAISE_24: &[u8] = &[0x48, 0x8d, 0x64, 0x24, 0x18];
const RAISE_256: &[u8] = &[0x48, 0x8d, 0xa4, 0x24, 0x00, 0x01, 0x00, 0x00];
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// `cmpl $0x321cba00,0x332211(%rip)`.
const CMPL: [u8; 10] = [0x81, 0x3d, 0x11, 0x22, 0x33, 0x00, 0x00, 0xba, 0x1c, 0x32];

#[test]
fn the_first_instruction_stays_where_it_can_be_undone() {
    let cases: [(&[u8], u8, u8, &[u8]); 12] = [
        (&[0x55, 0x48, 0x89, 0xe5], 1, 7, RAISE_8),   // push %rbp; mov %rsp,%rbp
        (&[0x41, 0x57], 2, 8, RAISE_8),               // push %r15
        (&[0x54], 1, 7, RAISE_8),                     // push %rsp
        (&[0x66, 0x50], 2, 8, RAISE_2),               // push %ax
        (&[0x6a, 0x01], 2, 8, RAISE_8),               // push $1
        (&[0x68, 0x01, 0, 0, 0], 5, 11, RAISE_8),     // push $1
        (&[0x48, 0x83, 0xec, 0x18], 4, 10, RAISE_24), // sub $0x18,%rsp
        (&[0x48, 0x81, 0xec, 0, 1, 0, 0], 7, 13, RAISE_256), // sub $0x100,%rsp
        (&[0x48, 0x8d, 0x64, 0x24, 0xe8], 5, 11, RAISE_24), // lea -0x18(%rsp),%rsp
        (&[0x48, 0x8d, 0xa4, 0x24, 0, 0xff, 0xff, 0xff], 8, 14, RAISE_256), // lea -0x100(%rsp),%rsp
        (&[0x48, 0x81, 0xec, 0x18, 0, 0, 0], 7, 13, RAISE_24), // sub $0x18,%rsp, long
        (&[0x55, 0x53, 0x41, 0x54, 0x41, 0x55], 1, 6, RAISE_8), // push %rbp; push %rbx; push %r12; push %r13
    ];
    for (bytes, kept, covered, undo) in cases {
        expect(bytes, kept, covered, undo);
    }
}

#[test]
fn the_first_instruction_stays_where_it_may_be_executed_twice() {
    let cases: [(&[u8], u8, u8); 22] = [
        (&[0xf3, 0x0f, 0x1e, 0xfa, 0x55], 4, 11),                   // endbr64; push %rbp
        (&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x18], 4, 11), // endbr64; sub $0x18,%rsp
        (&[0x0f, 0x1f, 0x44, 0x00, 0x00], 5, 11),                   // nop
        (&[0x66, 0x90], 2, 8),                                      // nop
        (&[0x31, 0xc0], 2, 8),                                      // xor %eax,%eax
        (&[0x48, 0x29, 0xc0], 3, 9),                                // sub %rax,%rax
        (&[0x45, 0x31, 0xd2], 3, 9),                                // xor %r10d,%r10d
        (&[0xb8, 1, 0, 0, 0], 5, 11),                               // mov $1,%eax
        (&[0xb0, 0x01], 2, 8),                                      // mov $1,%al
        (&[0x89, 0xf8], 2, 8),                                      // mov %edi,%eax
        (&[0x83, 0x3f, 0x00], 3, 9),                                // cmpl $0,(%rdi)
        (&[0x85, 0xff], 2, 8),                                      // test %edi,%edi
        (&[0x4c, 0x8d, 0x54, 0x24, 0x08], 5, 11),                   // lea 8(%rsp),%r10
        (&[0x48, 0x8b, 0x07], 3, 9),                                // mov (%rdi),%rax
        (&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], 9, 15),    // mov %fs:0x28,%rax
        (&[0x0f, 0xb6, 0x07], 3, 9),                                // movzbl (%rdi),%eax
        (&[0x48, 0x89, 0x5c, 0x24, 0xd8], 5, 11),                   // mov %rbx,-0x28(%rsp)
        (&[0x89, 0x7c, 0x24, 0xfc], 4, 10),                         // mov %edi,-4(%rsp)
        (&[0x48, 0xc7, 0x44, 0x24, 0xf8, 0, 0, 0, 0], 9, 15),       // movq $0,-8(%rsp)
        (&[0x0f, 0x29, 0x44, 0x24, 0xe8], 5, 11),                   // movaps %xmm0,-0x18(%rsp)
        (&[0xf2, 0x0f, 0x11, 0x44, 0x24, 0xf8], 6, 12),             // movsd %xmm0,-8(%rsp)
        (&[0xc5, 0xfb, 0x11, 0x44, 0x24, 0xf8], 6, 12),             // vmovsd %xmm0,-8(%rsp)
    ];
    for (bytes, kept, covered) in cases {
        expect(bytes, kept, covered, NOTHING);
    }
}

#[test]
fn a_long_first_instruction_that_cannot_stay_is_overwritten() {
    let cases: [(&[u8], u8); 10] = [
        (&[0xbf, 7, 0, 0, 0], 5),             // mov $7,%edi
        (&[0x48, 0xc7, 0xc7, 7, 0, 0, 0], 7), // mov $7,%rdi
        (&[0x48, 0x89, 0x7c, 0x24, 0x08], 5), // mov %rdi,8(%rsp)
        (&[0x48, 0x89, 0x44, 0x24, 0xfc], 5), // mov %rax,-4(%rsp): over the return address
        (&[0x48, 0x89, 0x44, 0x04, 0xf0], 5), // mov %rax,-0x10(%rsp,%rax)
        (&[0x64, 0x89, 0x44, 0x24, 0xf0], 5), // mov %eax,%fs:-0x10(%rsp)
        (&[0x0f, 0xae, 0x54, 0x24, 0xf8], 5), // ldmxcsr -8(%rsp)
        (&[0x0f, 0xae, 0x5c, 0x24, 0xf8], 5), // stmxcsr -8(%rsp)
        (&[0xf3, 0x48, 0x0f, 0x1e, 0xc8], 5), // rdsspq %rax
        (&[0x48, 0x81, 0xc4, 8, 0, 0, 0], 7), // add $8,%rsp
    ];
    for (bytes, covered) in cases {
        expect(bytes, 0, covered, NOTHING);
    }
}

#[test]
fn a_long_first_instruction_is_overwritten_where_those_behind_it_cannot_move() {
    // cmpl; jne back to behind it
    let patch = planned(&[&CMPL, &[0x75, 0xfe], &REST]).expect("a patch");
    assert_eq!((patch.kept, patch.covered), (0, 10));
    // cmpl; ret; another function
    let bytes = [CMPL.as_slice(), &[0xc3], &REST].concat();
    let patch = plan(&bytes, CMPL.len() + 1, ENTRY).expect("a patch");
    assert_eq!((patch.kept, patch.covered), (0, 10));
    // three nops, of 15, 4 and 15 bytes
    let long = [
        0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0,
    ];
    let patch = planned(&[&long, &[0x0f, 0x1f, 0x40, 0], &long, &REST]).expect("a patch");
    assert_eq!((patch.kept, patch.covered), (0, 15));
}

#[test]
fn an_operand_relative_to_the_instruction_is_fixed_up() {
    let patch = planned(&[&CMPL, &REST]).expect("a patch");
    assert_eq!((patch.kept, patch.covered), (10, 16));
    assert_eq!(&patch.copy[..6], &[0x81, 0x3d, 0, 0, 0, 0]);
    assert_eq!(
        &patch.copy[6..16],
        &[0x00, 0xba, 0x1c, 0x32, 0x48, 0x01, 0xf0, 0x48, 0x01, 0xf0]
    );
    let back = fixup(17, 21, ENTRY + 16);
    assert_eq!(patch.fixups, [fixup(2, 10, ENTRY + 10 + 0x33_2211), back]);
    // endbr64; lea -0x10(%rip),%rdi; mov 0x100(%rip),%rsi
    let patch = planned(&[
        &ENDBR64,
        &[0x48, 0x8d, 0x3d, 0xf0, 0xff, 0xff, 0xff],
        &[0x48, 0x8b, 0x35, 0x00, 0x01, 0x00, 0x00],
    ]);
    let patch = patch.expect("a patch");
    assert_eq!((patch.kept, patch.covered), (4, 11));
    assert_eq!(patch.fixups, [fixup(7, 11, ENTRY - 5), fixup(12, 16, ENTRY + 11)]);
}

#[test]
fn a_short_branch_becomes_a_long_one() {
    // xor %eax,%eax; test %rdi,%rdi; je +4
    let patch = planned(&[&[0x31, 0xc0, 0x48, 0x85, 0xff, 0x74, 0x04], &REST]).expect("a patch");
    let expected = [0x31, 0xc0, 0x48, 0x85, 0xff, 0x0f, 0x84, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
    assert_eq!(patch.copy, expected);
    assert_eq!(patch.fixups, [fixup(7, 11, ENTRY + 11), fixup(12, 16, ENTRY + 7)]);
    // push %rbp; mov %rdi,%rax; jmp back to the entry: nothing follows it
    let patch = planned(&[&[0x55, 0x48, 0x89, 0xf8, 0xeb, 0xfa], &REST]).expect("a patch");
    assert_eq!(patch.covered, 6);
    assert_eq!(patch.copy, [0x55, 0x48, 0x89, 0xf8, 0xe9, 0, 0, 0, 0]);
    assert_eq!(patch.fixups, [fixup(5, 9, ENTRY)]);
}

#[test]
fn a_long_branch_keeps_its_target() {
    // test %edi,%edi; jne -0x100
    let patch = planned(&[&[0x85, 0xff, 0x0f, 0x85, 0, 0xff, 0xff, 0xff], &REST]).expect("a patch");
    assert_eq!(patch.fixups, [fixup(4, 8, ENTRY - 0xf8), fixup(9, 13, ENTRY + 8)]);
    // endbr64; bnd jmp *0x10(%rip): nothing follows it
    let patch = planned(&[&ENDBR64, &[0xf2, 0xff, 0x25, 0x10, 0, 0, 0]]).expect("a patch");
    assert_eq!((patch.covered, patch.copy.len()), (11, 11));
    assert_eq!(patch.fixups, [fixup(7, 11, ENTRY + 27)]);
    // a branch and a jump through memory may come first where they are overwritten
    for (bytes, covered, fixups) in [([0x0f, 0x84, 0, 1, 0, 0], 6, 2), ([0xff, 0x25, 0, 1, 0, 0], 6, 1)] {
        let patch = planned(&[&bytes, &REST]).expect("a patch");
        assert_eq!((patch.kept, patch.covered, patch.fixups.len()), (0, covered, fixups));
    }
}

#[test]
fn padding_is_overwritten() {
    let ret: [&[u8]; 3] = [
        &[0x31, 0xc0, 0xc3],             // xor %eax,%eax; ret
        &[0x31, 0xc0, 0xc2, 0x08, 0x00], // xor %eax,%eax; ret $8
        &[0x31, 0xc0, 0x0f, 0x0b],       // xor %eax,%eax; ud2
    ];
    for function in ret {
        let patch = planned(&[function]).expect("a patch");
        assert_eq!((patch.kept, patch.covered), (2, 7));
        assert_eq!((patch.copy.as_slice(), patch.fixups.len()), (function, 0));
    }
    // a nop of eight bytes is overwritten as a whole, with the size known or not
    let bytes = [0x31, 0xc0, 0xc3, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x55, 0xc3];
    for size in [0, 3] {
        let patch = plan(&bytes, size, ENTRY).expect("a patch");
        assert_eq!((patch.covered, patch.copy.len()), (11, 3));
    }
}

#[test]
fn a_branch_to_the_entry_or_behind_what_moves_is_no_hindrance() {
    for distance in [0xf1, 0xf8] {
        let function = [
            0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0x90, 0x90, 0x90, 0xeb, distance,
        ];
        let patch = planned(&[&function, &REST]).expect("a patch");
        assert_eq!(patch.covered, 7, "{distance:x}");
    }
}

/// Expects a plan for these bytes with more of the function behind them.
fn expect(bytes: &[u8], kept: u8, covered: u8, undo: &[u8]) {
    let function = [bytes, &REST].concat();
    let patch = planned(&[&function]).unwrap_or_else(|why| panic!("{bytes:x?}: {why}"));
    assert_eq!((patch.kept, patch.covered), (kept, covered), "{bytes:x?}");
    assert_eq!(patch.undo, undo, "{bytes:x?}");
    assert_same(&function, ENTRY, &patch);
}

fn fixup(at: u16, next: u16, target: u64) -> Fixup {
    Fixup { at, next, target }
}
