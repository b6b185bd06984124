//! Functions that cannot be patched, and why.

use super::{ENTRY, FRAMED, INT3, REST, planned};
use crate::inside::patch::{Refusal, plan};

fn refusal(parts: &[&[u8]]) -> Refusal {
    planned(parts).expect_err("a refusal")
}

#[test]
fn a_short_first_instruction_that_cannot_be_undone_is_refused() {
    let cases: [&[u8]; 25] = [
        &[0x48, 0x89, 0xe5],       // mov %rsp,%rbp
        &[0x58],                   // pop %rax
        &[0x31, 0xff],             // xor %edi,%edi
        &[0x40, 0xb6, 0x01],       // mov $1,%sil
        &[0x31, 0xf8],             // xor %edi,%eax
        &[0x48, 0x8b, 0x00],       // mov (%rax),%rax
        &[0x83, 0xc0, 0x01],       // add $1,%eax
        &[0x19, 0xc0],             // sbb %eax,%eax
        &[0x48, 0x0f, 0x44, 0xc7], // cmove %rdi,%rax
        &[0x0f, 0x92, 0xc0],       // setb %al
        &[0xfd],                   // std
        &[0xf4],                   // hlt
        &[0x88, 0x07],             // mov %al,(%rdi)
        &[0xff, 0x07],             // incl (%rdi)
        &[0x48, 0x83, 0xec, 0x80], // sub $-0x80,%rsp
        &[0x48, 0x29, 0xc4],       // sub %rax,%rsp
        &[0x9c],                   // pushf
        &[0xff, 0x30],             // push (%rax)
        &[0x74, 0x02],             // je +2
        &[0xff, 0xe0],             // jmp *%rax
        &[0xff, 0xd0],             // call *%rax
        &[0x0f, 0x0b],             // ud2
        &[0x0f, 0xa2],             // cpuid
        &[0xc5, 0xf8, 0x77],       // vzeroupper
        &[0xd9, 0xe8],             // fld1
    ];
    for bytes in cases {
        assert_eq!(refusal(&[bytes, &REST]), Refusal::First, "{bytes:x?}");
    }
}

#[test]
fn a_function_that_is_over_at_once_is_refused() {
    assert_eq!(refusal(&[&[0xeb, 0x10], &REST]), Refusal::JumpsAway);
    assert_eq!(refusal(&[&[0xe9, 0, 1, 0, 0], &REST]), Refusal::JumpsAway);
    assert_eq!(refusal(&[&[0xc3], &REST]), Refusal::Returns);
    assert_eq!(refusal(&[&[0xc2, 0x08, 0x00], &REST]), Refusal::Returns);
}

#[test]
fn a_function_that_is_too_short_is_refused() {
    let function = [0x31, 0xc0, 0xc3];
    let next = [function.as_slice(), &REST].concat();
    assert_eq!(plan(&next, 3, ENTRY), Err(Refusal::TooShort));
    assert_eq!(plan(&next, 0, ENTRY), Err(Refusal::TooShort), "no size, and no padding");
    assert_eq!(plan(&function, 3, ENTRY), Err(Refusal::TooShort), "nothing follows");
    let little = [function.as_slice(), &[INT3; 3], &REST].concat();
    assert_eq!(
        plan(&little, 3, ENTRY),
        Err(Refusal::TooShort),
        "three bytes of padding"
    );
    // push %rbp; mov $1,%eax, of which the file says that it ends within
    let across = [[0x55, 0xb8, 1, 0, 0, 0].as_slice(), &REST].concat();
    assert_eq!(plan(&across, 3, ENTRY), Err(Refusal::TooShort));
    assert!(plan(&across, across.len(), ENTRY).is_ok());
    assert_eq!(plan(&[], 0, ENTRY), Err(Refusal::TooShort));
}

#[test]
fn bytes_that_are_missing_or_no_instructions_are_refused() {
    assert_eq!(plan(&REST, REST.len() + 1, ENTRY), Err(Refusal::CutOff));
    assert_eq!(refusal(&[&[0x06], &REST]), Refusal::Undecodable);
    assert_eq!(refusal(&[&[0x55, 0x06], &REST]), Refusal::Undecodable);
    assert_eq!(
        plan(&[0x55, 0x48, 0x89], 0, ENTRY),
        Err(Refusal::Undecodable),
        "cut within"
    );
}

#[test]
fn what_calls_at_once_is_refused() {
    // a call, of a function and through memory; at the first instruction, too
    let cases: [&[u8]; 2] = [&[0xe8, 0, 1, 0, 0], &[0xff, 0x15, 0, 1, 0, 0]];
    for bytes in cases {
        assert_eq!(refusal(&[&[0x55], bytes, &REST]), Refusal::Calls, "{bytes:x?}");
        assert_eq!(refusal(&[bytes, &REST]), Refusal::Calls, "{bytes:x?}");
    }
}

#[test]
fn what_works_only_where_it_is_is_refused() {
    let cases: [&[u8]; 6] = [
        &[0xe2, 0x20],                   // loop
        &[0xe3, 0x20],                   // jrcxz
        &[0xc7, 0xf8, 0, 1, 0, 0],       // xbegin
        &[0x66, 0xe9, 0, 1, 0, 0],       // jmp with a prefix
        &[0x66, 0x74, 0x20],             // je with a prefix
        &[0x67, 0x8b, 0x05, 0, 1, 0, 0], // mov 0x100(%eip),%eax
    ];
    for bytes in cases {
        assert_eq!(refusal(&[&[0x55], bytes, &REST]), Refusal::Unmovable, "{bytes:x?}");
    }
}

#[test]
fn a_branch_into_what_moves_is_refused() {
    // the loop's head is the second instruction; from near, from far and by a call
    let branches: [&[u8]; 5] = [
        &[0xeb, 0xf7],
        &[0x75, 0xf7],
        &[0xe2, 0xf7],
        &[0x0f, 0x85, 0xf3, 0xff, 0xff, 0xff],
        &[0xe8, 0xf4, 0xff, 0xff, 0xff],
    ];
    for branch in branches {
        assert_eq!(refusal(&[&FRAMED, branch, &REST]), Refusal::BranchedTo, "{branch:x?}");
    }
    // by an instruction that moves itself: push %rbp; je to the byte behind it; nop; nop; nop
    assert_eq!(
        refusal(&[&[0x55, 0x74, 0x01, 0x90, 0x90, 0x90, 0x90], &REST]),
        Refusal::BranchedTo
    );
    // into padding that is overwritten: xor %eax,%eax; ret; then nops that a branch behind them leads to
    let bytes = [0x31, 0xc0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xfc, 0xcc];
    assert_eq!(plan(&bytes, 10, ENTRY), Err(Refusal::BranchedTo));
    // lea of the second instruction's address
    let lea = [0x48, 0x8d, 0x05, 0xf2, 0xff, 0xff, 0xff];
    assert_eq!(refusal(&[&FRAMED, &lea, &REST]), Refusal::AddressTaken);
}

#[test]
fn a_branch_behind_data_is_found() {
    // ret; a byte that begins no instruction; jmp to the second instruction
    let bytes = [FRAMED.as_slice(), &[0xc3, 0x06, 0xeb, 0xf5], &REST].concat();
    assert_eq!(planned(&[&bytes]), Err(Refusal::BranchedTo));
    // without a size the function is over at the ret
    assert!(plan(&bytes, 0, ENTRY).is_ok());
}

#[test]
fn a_refusal_is_a_sentence() {
    let text = Refusal::BranchedTo.to_string();
    assert_eq!(text, "a branch of the function leads into the bytes that have to move");
}
