//! What files of another processor may hold, read as that one would: any bytes.

use super::aarch64::class_of;
use super::loads_aarch64::Loads;
use super::operand::{Location, of_aarch64};

/// Registers with numbers, and those behind the last one, which there are none of.
const NUMBERS: std::ops::Range<usize> = 0..40;
const REGISTERS: usize = 32;
const INSTRUCTION: usize = 4;

/// Reads `bytes` as code of aarch64 at `base`, and as a note of a static probe there. How many instructions it is.
///
/// # Panics
/// An instruction is told of outside of the code, or a register is named that there is none of.
pub fn read_as_aarch64(base: u64, bytes: &[u8]) -> usize {
    let _ = class_of(bytes);
    if let Some(Location::Register(number)) = std::str::from_utf8(bytes).ok().and_then(of_aarch64) {
        assert!(usize::from(number) < REGISTERS);
    }
    let mut steps = 0;
    // no section of a file that is read ends behind the last address
    Loads::walk(base / 2, bytes, &mut |loads, at, step| {
        assert!(at + INSTRUCTION <= bytes.len());
        let pc = base / 2 + at as u64;
        let known = NUMBERS.filter(|number| loads.held(*number, pc).is_some());
        assert!(known.max().is_none_or(|number| number < REGISTERS), "{step:?}");
        steps += 1;
        true
    });
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_instruction_is_told_of_once() {
        assert_eq!(read_as_aarch64(0, &[0; 41]), 10);
        assert_eq!(
            read_as_aarch64(2, &[0; 41]),
            9,
            "the first that is at a multiple of four"
        );
        assert_eq!(read_as_aarch64(0, b"x30"), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(base: u64, bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            prop_assert!(read_as_aarch64(base, &bytes) <= bytes.len() / INSTRUCTION);
        }
    }
}
