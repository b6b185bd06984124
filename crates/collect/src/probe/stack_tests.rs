//! What the kernel would put on a stack that threads share: see `keep_own_stack` in `crates/collect/src/bpf/calls.bpf.c`.

use object::{Object, ObjectSection, ObjectSymbol};

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/calls.bpf.o"));
/// From here on Linux 6.13 and newer take a function's stack from memory of the CPU.
const SHARED_BYTES: i64 = 64;
const FRAME_POINTER: u8 = 10;
const ADD_IMMEDIATE: u8 = 0x07;

/// The deepest stack slot that the instructions in `code` name.
fn stack_bytes(code: &[u8]) -> i64 {
    let slots = code.chunks_exact(8).map(|instruction| {
        let registers = [instruction[1] & 15, instruction[1] >> 4];
        let offset = i64::from(i16::from_le_bytes([instruction[2], instruction[3]]));
        let immediate = i64::from(i32::from_le_bytes([
            instruction[4],
            instruction[5],
            instruction[6],
            instruction[7],
        ]));
        let stored = if registers.contains(&FRAME_POINTER) { -offset } else { 0 };
        // an address on the stack is made by adding to a copy of the frame pointer
        let pointed = if instruction[0] == ADD_IMMEDIATE { -immediate } else { 0 };
        stored.max(pointed)
    });
    slots.filter(|bytes| *bytes <= 512).max().unwrap_or(0)
}

#[test]
fn programs_that_give_way_to_others_fit_into_a_stack_of_their_own() {
    let file = object::File::parse(PROGRAMS).unwrap();
    let sleepable: Vec<_> = file
        .sections()
        .filter(|section| {
            section
                .name()
                .is_ok_and(|name| name.starts_with("uprobe") && name.ends_with(".s"))
        })
        .collect();
    assert_eq!(sleepable.len(), 2);
    for section in sleepable {
        let bytes = stack_bytes(section.data().unwrap());
        assert!(
            bytes > 0 && bytes < SHARED_BYTES,
            "{}: {bytes}",
            section.name().unwrap()
        );
    }
}

#[test]
fn programs_at_functions_refuse_a_shared_stack() {
    const TAIL_CALL: [u8; 8] = [0x85, 0, 0, 0, 12, 0, 0, 0];
    let file = object::File::parse(PROGRAMS).unwrap();
    let programs = file
        .symbols()
        .filter(|symbol| symbol.name().is_ok_and(|name| name.starts_with("call_")));
    let mut seen = 0;
    for program in programs.filter(|symbol| symbol.size() > 0 && symbol.kind() == object::SymbolKind::Text) {
        let section = file.section_by_index(program.section_index().unwrap()).unwrap();
        let start = program.address() as usize;
        let code = &section.data().unwrap()[start..start + program.size() as usize];
        assert!(
            code.chunks_exact(8).any(|instruction| instruction == TAIL_CALL),
            "{}",
            program.name().unwrap()
        );
        seen += 1;
    }
    assert_eq!(seen, 5);
}
