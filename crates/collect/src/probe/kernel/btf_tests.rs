use super::btf::{Btf, BtfError};
use super::place::{Names, Placed};
use crate::catalog::Kind;
use crate::wire;
use proptest::prelude::*;

/// Type information that is written type by type; ids count from 1.
struct Writer {
    types: Vec<u8>,
    strings: Vec<u8>,
}

impl Writer {
    fn new() -> Writer {
        Writer {
            types: Vec::new(),
            strings: vec![0],
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend(text.bytes().chain([0]));
        at
    }

    fn words(&mut self, words: &[u32]) {
        self.types.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn head(&mut self, name: &str, kind: u32, members: u32, size_or_type: u32) {
        let name = if name.is_empty() { 0 } else { self.string(name) };
        self.words(&[name, kind << 24 | members, size_or_type]);
    }

    fn member(&mut self, name: &str, kind: u32, place: u32) {
        let name = if name.is_empty() { 0 } else { self.string(name) };
        self.words(&[name, kind, place]);
    }

    fn bytes(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = 0xeb9f_u16.to_le_bytes().to_vec();
        bytes.extend([1, 0]);
        bytes.extend(
            [24, 0, types, types, strings]
                .iter()
                .flat_map(|word: &u32| word.to_le_bytes()),
        );
        bytes.extend(&self.types);
        bytes.extend(&self.strings);
        bytes
    }
}

/// `long look(struct outer *o, unsigned int n)` with
/// `struct outer { int a; struct { struct outer *next; char label[12]; }; unsigned int bits : 5 at bit 3 of byte 24 }`.
fn example() -> Vec<u8> {
    let mut to = Writer::new();
    to.head("int", 1, 0, 4); // 1
    to.words(&[0x0100_0020]);
    to.head("unsigned int", 1, 0, 4); // 2
    to.words(&[0x0000_0020]);
    to.head("char", 1, 0, 1); // 3
    to.words(&[0x0100_0008]);
    to.head("", 3, 0, 0); // 4: char[12]
    to.words(&[3, 2, 12]);
    to.head("", 2, 0, 7); // 5: struct outer *
    to.head("", 4, 2, 24); // 6: the unnamed structure
    to.member("next", 5, 0);
    to.member("label", 4, 64);
    to.head("outer", 4 | 0x80, 3, 32); // 7
    to.member("a", 1, 0);
    to.member("", 6, 64);
    to.member("bits", 2, 5 << 24 | (24 * 8 + 3));
    to.head("", 13, 2, 1); // 8
    to.words(&[0, 5]);
    let at = to.types.len() - 8;
    let name = to.string("o");
    to.types[at..at + 4].copy_from_slice(&name.to_le_bytes());
    let name = to.string("n");
    to.words(&[name, 2]);
    to.head("look", 12, 0, 8); // 9
    to.bytes()
}

fn placed(path: &[&str]) -> Result<Placed, String> {
    let types = Btf::parse(example(), None).unwrap();
    let prototype = types.function("look").unwrap();
    let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
    prototype.place(&path)
}

#[test]
fn an_argument_is_its_register() {
    let found = placed(&["n"]).unwrap();
    assert_eq!((found.place.base, found.place.steps, found.kind), (1, 0, Kind::U32));
}

#[test]
fn fields_behind_pointers_are_steps_and_unnamed_structures_are_looked_into() {
    let found = placed(&["o", "next", "a"]).unwrap();
    assert_eq!(
        (found.place.steps, &found.place.offset[..2], found.kind),
        (2, &[8, 0][..], Kind::I32)
    );
    assert_eq!(found.place.flags, wire::KERNEL_SIGNED);
}

#[test]
fn characters_in_a_structure_are_a_text() {
    let found = placed(&["o", "label"]).unwrap();
    assert_eq!(
        (found.kind, found.place.flags, found.place.offset[0]),
        (Kind::CStr, wire::KERNEL_ADDRESS, 16)
    );
}

#[test]
fn a_bit_field_is_shifted_and_masked() {
    let found = placed(&["o", "bits"]).unwrap().place;
    assert_eq!((found.offset[0], found.bytes, found.shift, found.mask), (24, 1, 3, 31));
}

#[test]
fn what_is_not_there_is_named() {
    assert!(placed(&["x"]).unwrap_err().contains("it has o, n"));
    assert!(
        placed(&["o", "nothing"])
            .unwrap_err()
            .contains("nothing is called nothing")
    );
    assert!(placed(&["n", "a"]).is_err());
}

#[test]
fn a_type_that_is_cut_off_is_an_error() {
    let mut bytes = example();
    bytes[12] -= 4; // bytes of types
    assert!(Btf::parse(bytes, None).is_err());
    assert_eq!(Btf::parse(vec![1, 2, 3], None).unwrap_err(), BtfError::NoBtf);
}

proptest! {
    #[test]
    fn any_change_to_one_byte_is_read_or_refused(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut bytes = example();
        let at = at.index(bytes.len());
        bytes[at] = value;
        if let Ok(types) = Btf::parse(bytes, None) {
            for name in types.functions() {
                let _ = types.function(name).map(|found| found.all());
            }
        }
    }
}
