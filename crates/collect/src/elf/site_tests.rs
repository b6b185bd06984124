//! One byte string for each kind of function start.

use super::{Cost, ElfFile, SiteRefusal, decide, probe_site};
use crate::elf::elf_builder::{CODE_AT, Function, library};
use proptest::prelude::*;

const PUSH: [u8; 1] = [0x55];
const CMPL: [u8; 10] = [0x81, 0x3d, 0x11, 0x22, 0x33, 0x00, 0x00, 0xba, 0x1c, 0x32];

fn site(parts: &[&[u8]]) -> (u8, Cost) {
    let decision = decide(&parts.concat()).expect("a site");
    (decision.moved_by, decision.cost)
}

fn refusal(bytes: &[u8]) -> String {
    decide(bytes).expect_err("a refusal").to_string()
}

#[test]
fn an_emulated_first_instruction_stays() {
    let emulated: [&[u8]; 11] = [
        &[0x55],
        &[0x41, 0x57],
        &[0x90],
        &[0x66, 0x90],
        &[0x0f, 0x1f, 0x40, 0x00],
        &[0x74, 0x05],
        &[0x0f, 0x84, 0, 0, 0, 0],
        &[0xeb, 0x05],
        &[0xe9, 0, 0, 0, 0],
        &[0xe8, 0, 0, 0, 0],
        &[0xf2, 0xe9, 0, 0, 0, 0],
    ];
    for bytes in emulated {
        assert_eq!(site(&[bytes, &[0xc3]]), (0, Cost::Emulated), "{bytes:x?}");
    }
}

#[test]
fn a_nop_of_five_bytes_stays_and_is_a_kind_of_its_own() {
    assert_eq!(site(&[&[0x0f, 0x1f, 0x44, 0x00, 0x00], &[0xc3]]), (0, Cost::Nop5));
    assert_eq!(
        site(&[&[0x0f, 0x1f, 0x44, 0x00, 0x00, 0x31, 0xc0], &PUSH]),
        (0, Cost::Nop5)
    );
}

#[test]
fn a_probe_moves_over_what_leaves_the_entry_state() {
    let cases: [(&[u8], u8); 9] = [
        (&[0xf3, 0x0f, 0x1e, 0xfa], 4),                       // endbr64
        (&CMPL, 10),                                          // cmpl $imm,mem(%rip)
        (&[0x85, 0xff], 2),                                   // test %edi,%edi
        (&[0x31, 0xc0], 2),                                   // xor %eax,%eax
        (&[0x48, 0x89, 0xf8], 3),                             // mov %rdi,%rax
        (&[0x4c, 0x8d, 0x54, 0x24, 0x08], 5),                 // lea 8(%rsp),%r10
        (&[0x64, 0x48, 0x8b, 0x04, 0x25, 40, 0, 0, 0], 9),    // mov %fs:40,%rax
        (&[0x31, 0xc0, 0x0f, 0x1f, 0x44, 0x00, 0x00], 7),     // nop5 later: stepped over
        (&[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], 10), // a nop that the kernel refuses
    ];
    for (bytes, moved_by) in cases {
        assert_eq!(site(&[bytes, &PUSH, &[0xc3]]), (moved_by, Cost::Emulated), "{bytes:x?}");
    }
    assert_eq!(
        site(&[&CMPL, &[0x74, 0x06], &[0xff, 0x25, 0, 0, 0, 0]]),
        (10, Cost::Emulated)
    );
}

#[test]
fn a_probe_stays_before_what_changes_the_entry_state() {
    let cases: [&[u8]; 14] = [
        &[0x48, 0x83, 0xec, 0x08],       // sub $8,%rsp
        &[0x48, 0x89, 0xc7],             // mov %rax,%rdi
        &[0x31, 0xff],                   // xor %edi,%edi
        &[0x40, 0xb6, 0x01],             // mov $1,%sil
        &[0x66, 0xba, 0x01, 0x00],       // mov $1,%dx
        &[0x41, 0xb8, 1, 0, 0, 0],       // mov $1,%r8d
        &[0x6a, 0x01],                   // push $1
        &[0x58],                         // pop %rax
        &[0xc9],                         // leave
        &[0x48, 0x89, 0x04, 0x24],       // mov %rax,(%rsp)
        &[0x48, 0x89, 0x44, 0x24, 0xf8], // mov %rax,-8(%rsp)
        &[0x89, 0x07],                   // mov %eax,(%rdi)
        &[0x0f, 0xa2],                   // cpuid
        &[0xf3, 0xa4],                   // rep movsb
    ];
    for bytes in cases {
        assert_eq!(site(&[bytes, &PUSH, &[0xc3]]), (0, Cost::SingleStepped), "{bytes:x?}");
    }
}

#[test]
fn a_probe_stays_where_the_function_leaves_at_once() {
    let cases: [&[u8]; 5] = [
        &[0xc3],                         // ret
        &[0xb8, 0x21, 0x03, 0, 0, 0xc3], // mov $801,%eax; ret
        &[0xff, 0x25, 0, 0, 0, 0],       // jmp *mem(%rip)
        &[0xff, 0xe0],                   // jmp *%rax
        &[0x31, 0xc0, 0xff, 0xd0],       // xor %eax,%eax; call *%rax
    ];
    for bytes in cases {
        assert_eq!(site(&[bytes, &PUSH]), (0, Cost::SingleStepped), "{bytes:x?}");
    }
}

#[test]
fn a_later_nop5_is_never_chosen() {
    for first in [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0x31, 0xc0], &CMPL] {
        assert_eq!(
            site(&[first, &[0x0f, 0x1f, 0x44, 0x00, 0x00], &[0xc3]]),
            (0, Cost::SingleStepped)
        );
    }
    assert_eq!(
        site(&[&[0x31, 0xc0], &[0x66, 0x66, 0x66, 0x66, 0x90], &[0xc3]]),
        (0, Cost::SingleStepped)
    );
}

#[test]
fn a_probe_moves_less_than_32_bytes() {
    let xors = [0x31, 0xc0].repeat(15);
    assert_eq!(site(&[&xors, &PUSH]), (30, Cost::Emulated));
    let xors = [0x31, 0xc0].repeat(16);
    assert_eq!(site(&[&xors, &PUSH]), (0, Cost::SingleStepped));
}

#[test]
fn what_the_kernel_refuses_says_why() {
    assert!(refusal(&[0xf0, 0x01, 0x07, 0x55]).contains("lock prefix"));
    assert!(refusal(&[0x3e, 0xff, 0xe0]).contains("ds prefix"));
    assert!(refusal(&[0x2e, 0x89, 0x07, 0x55]).contains("cs prefix"));
    assert!(refusal(&[0xcc, 0x55]).contains("this kind"));
    assert!(refusal(&[0x0f, 0x05]).contains("this kind"));
    assert!(refusal(&[0x0f, 0x0b]).contains("this kind"));
    assert!(refusal(&[0x06, 0x55]).contains("no instruction"));
    assert!(refusal(&[0x48]).contains("no instruction"));
    assert!(refusal(&[]).contains("no instruction"));
}

fn site_in(code: &[u8], functions: &[Function]) -> Result<(u64, u8), SiteRefusal> {
    let file = ElfFile::from_bytes(library(code, functions)).expect("a library");
    probe_site(&file, CODE_AT).map(|s| (s.offset - CODE_AT, s.moved_by))
}

#[test]
fn a_jump_back_over_the_site_keeps_the_probe_at_the_entry() {
    let all = |code: &[u8]| [Function::new("cudaF", 0, code.len() as u64)];
    let plain = [&CMPL[..], &[0x74, 0x00], &[0xc3]].concat();
    assert_eq!(site_in(&plain, &all(&plain)).expect("a site"), (10, 10));
    let back = [&CMPL[..], &[0x74, 0x00], &[0xeb, (-4_i8).cast_unsigned()], &[0xc3]].concat();
    assert_eq!(site_in(&back, &all(&back)).expect("a site"), (0, 0));
    let to_entry = [&CMPL[..], &[0x74, 0x00], &[0xeb, (-14_i8).cast_unsigned()], &[0xc3]].concat();
    assert_eq!(site_in(&to_entry, &all(&to_entry)).expect("a site"), (10, 10));
    let other = [Function::new("cudaF", 0, 13), Function::new("inner", 10, 3)];
    assert_eq!(site_in(&plain, &other).expect("a site"), (0, 0));
    assert_eq!(
        site_in(&plain, &[Function::new("short", 0, 10)]).expect("a site"),
        (0, 0)
    );
}

#[test]
fn offsets_that_begin_no_instruction_are_refused() {
    let code = [&CMPL[..], &[0x0f, 0x1f, 0x44, 0x00, 0x00], &[0x55], &[0xc3]].concat();
    let file = ElfFile::from_bytes(library(&code, &[Function::new("f", 0, code.len() as u64)])).expect("a library");
    assert!(matches!(
        probe_site(&file, CODE_AT + 3),
        Err(SiteRefusal::InsideInstruction(_))
    ));
    assert!(matches!(probe_site(&file, CODE_AT + 10), Err(SiteRefusal::NopInside)));
    assert!(matches!(probe_site(&file, 8), Err(SiteRefusal::NotCode(8))));
    assert!(matches!(probe_site(&file, u64::MAX), Err(SiteRefusal::NotCode(_))));
    let push = probe_site(&file, CODE_AT + 15).expect("the push");
    assert_eq!(
        (push.offset, push.moved_by, push.cost),
        (CODE_AT + 15, 0, Cost::Emulated)
    );
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(decision) = decide(&bytes) {
            prop_assert!(usize::from(decision.moved_by) < 32);
            let moved = &bytes[usize::from(decision.moved_by)..];
            prop_assert!(decision.moved_by == 0 || !moved.starts_with(&[0x0f, 0x1f]));
        }
        let file = ElfFile::from_bytes(library(&bytes, &[Function::new("f", 0, bytes.len() as u64)])).expect("a library");
        let _ = probe_site(&file, CODE_AT);
    }
}
