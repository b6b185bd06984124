//! What a user's row computes in the kernel, where it computes nothing.

use super::bytes::zero;
use super::generated::*;

impl Operand {
    pub(crate) const NONE: Operand = Operand::of(WORD_NONE, 8, false);

    /// `bytes` (1 to 8) of a word.
    pub const fn of(word: u8, bytes: u8, is_signed: bool) -> Operand {
        Operand {
            word,
            bytes,
            is_signed: is_signed as u8,
            pad: 0,
        }
    }
}

impl Test {
    pub(crate) const NONE: Test = Test {
        of: Operand::NONE,
        kind: TEST_EQUAL,
        ..zero()
    };
}

impl Hook {
    pub const NONE: Hook = Hook {
        group: GROUP_NONE,
        of: Operand::NONE,
        by: Operand::NONE,
        test: [Test::NONE; TESTS],
        ..zero()
    };
}
