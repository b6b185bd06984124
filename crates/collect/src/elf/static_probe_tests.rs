//! Static probes that a file's notes name.

use proptest::prelude::*;

use super::elf_builder::{CODE_AT, CODE_SHIFT, Function, library_with_notes, static_probe};
use super::{ElfFile, Location, Operand, Semaphore, StaticProbe};

/// push, nop, a load of eight bytes that ends in 0x90, a five-byte nop, ret; then two words of data.
const CODE: [u8; 19] = [
    0x55, 0x90, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3, 0,
];
const START: u64 = CODE_AT + CODE_SHIFT;
const NOP: u64 = 1;

fn probes_of(notes: &[u8], base: Option<u64>) -> (ElfFile, Vec<StaticProbe>) {
    let bytes = library_with_notes(&CODE, &[Function::new("outer", 0, 18)], notes, base);
    let file = ElfFile::from_bytes(bytes).unwrap();
    let probes = file.static_probes(&|_| true).unwrap();
    (file, probes)
}

fn one(places: [u64; 3], base: Option<u64>) -> (ElfFile, StaticProbe) {
    let (file, mut probes) = probes_of(&static_probe(places, ["mine", "handed_out", "-8@%rax 1@%dl"]), base);
    (file, probes.remove(0))
}

fn refusal(at: u64) -> String {
    let (file, probe) = one([START + at, 0, 0], None);
    probe.site(&file).unwrap_err().to_string()
}

#[test]
fn a_note_names_a_place_its_semaphore_and_its_arguments() {
    let (file, probe) = one([START + NOP, 0, START + 16], None);
    assert_eq!(probe.name, "mine:handed_out");
    assert_eq!(probe.semaphore, Semaphore::At(CODE_AT + 16));
    assert_eq!(probe.site(&file).unwrap(), CODE_AT + NOP);
    let rax = Operand {
        location: Location::Register(0),
        bytes: 8,
        signed: true,
    };
    assert_eq!(
        (probe.operand(0), probe.args.len(), probe.operand(2)),
        (Some(rax), 2, None)
    );
}

#[test]
fn a_probe_may_have_several_places_and_other_notes_are_passed_over() {
    let mut notes = static_probe([START + NOP, 0, 0], ["mine", "freed", ""]);
    notes.extend(static_probe([START + NOP, 0, 0], ["mine", "handed_out", "8@$5"]));
    notes.extend(static_probe([START + NOP, 0, 0], ["mine", "freed", "8@%rdi"]));
    let mut foreign = static_probe([START, 0, 0], ["mine", "freed", ""]);
    foreign[12] = b'S';
    let (file, _) = probes_of(&[foreign, notes].concat(), None);
    let freed = file.static_probes(&|name| name == "mine:freed").unwrap();
    assert_eq!(freed.iter().map(|probe| probe.args.len()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn what_prelink_moved_is_found_where_it_is_now() {
    let moved = 0x7000;
    let (file, probe) = one([START + NOP - moved, 0x100, START + 16 - moved], Some(0x100 + moved));
    assert_eq!(probe.site(&file).unwrap(), CODE_AT + NOP);
    assert_eq!(probe.semaphore, Semaphore::At(CODE_AT + 16));
    let (file, probe) = one([START + NOP, 0, 0], Some(0x9000));
    assert_eq!(
        probe.site(&file).unwrap(),
        CODE_AT + NOP,
        "a note without a base is not moved"
    );
}

#[test]
fn only_a_nop_of_one_byte_takes_a_probe() {
    assert!(refusal(12).contains("five-byte nop"), "{}", refusal(12));
    assert!(refusal(0).contains("is not the nop of one"), "{}", refusal(0));
    assert!(refusal(11).contains("inside an instruction"), "{}", refusal(11));
    assert!(refusal(0x8000).contains("what the file loads"), "{}", refusal(0x8000));
}

#[test]
fn a_probe_whose_semaphore_cannot_be_raised_is_refused() {
    for address in [START + 18, START - 1, 1, u64::MAX] {
        let (file, probe) = one([START + NOP, 0, address], None);
        let said = probe.site(&file).unwrap_err().to_string();
        assert!(said.contains("semaphore"), "{address:#x}: {said}");
    }
}

proptest! {
    #[test]
    fn any_notes_are_read_or_passed_over(notes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (file, probes) = probes_of(&notes, None);
        for probe in &probes {
            let _ = (probe.site(&file), probe.operand(0));
        }
    }

    #[test]
    fn damaged_notes_are_read_or_passed_over(
        at in any::<proptest::sample::Index>(), byte: u8, places in any::<[u64; 3]>(), base in proptest::option::of(any::<u64>())
    ) {
        let mut notes = static_probe(places, ["mine", "handed_out", "-8@%rax -4@8(%rsp)"]);
        let damaged = at.index(notes.len());
        notes[damaged] = byte;
        let (file, probes) = probes_of(&notes, base);
        prop_assert!(probes.len() <= 1);
        for probe in &probes {
            if let Ok(offset) = probe.site(&file) {
                prop_assert_eq!(offset, CODE_AT + NOP, "the only place that takes one");
            }
        }
    }
}
