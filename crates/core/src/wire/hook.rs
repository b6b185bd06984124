//! What a user's row computes in the kernel: which calls pass, and what they are summed up to.

use super::word::{TEXT, WORD_NONE};

/// Conditions of one row.
pub const TESTS: usize = 2;

/// Signed numbers cross with this bit flipped, so that all compare as unsigned ones.
pub const SIGN_BIT: u64 = 1 << 63;

/// A number of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    pub word: u8,
    pub bytes: u8,
    pub is_signed: u8,
    pub pad: u8,
}

impl Operand {
    pub const NONE: Operand = Operand::of(WORD_NONE, 8, false);

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

pub const TEST_LESS: u8 = 0;
pub const TEST_GREATER: u8 = 1;
pub const TEST_EQUAL: u8 = 2;
pub const TEST_BITS: u8 = 3;

/// A condition.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    pub value: u64,
    pub of: Operand,
    pub kind: u8,
    /// It has to be the other way.
    pub negate: u8,
    pub pad: u16,
}

impl Test {
    pub const NONE: Test = Test {
        value: 0,
        of: Operand::NONE,
        kind: TEST_EQUAL,
        negate: 0,
        pad: 0,
    };
}

pub const HOOK_AGGREGATE: u8 = 1;
pub const HOOK_SUM: u8 = 2;
pub const HOOK_EXTREMES: u8 = 4;
/// By powers of two of the operand.
pub const HOOK_POWERS: u8 = 8;
pub const HOOK_SITE: u8 = 16;
pub const HOOK_TESTS: u8 = 32;
/// An operand is a captured word.
pub const HOOK_WORDS: u8 = 64;

pub const GROUP_NONE: u8 = 0;
pub const GROUP_OPERAND: u8 = 1;
pub const GROUP_TEXT: u8 = 2;
pub const GROUP_THREAD: u8 = 3;
pub const GROUP_COMM: u8 = 4;
pub const GROUP_SITE: u8 = 5;

/// What a user's row computes in the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    pub flags: u8,
    pub tests: u8,
    pub group: u8,
    pub pad: u8,
    pub of: Operand,
    pub by: Operand,
    pub pad2: u32,
    pub test: [Test; TESTS],
}

impl Hook {
    pub const NONE: Hook = Hook {
        flags: 0,
        tests: 0,
        group: GROUP_NONE,
        pad: 0,
        of: Operand::NONE,
        by: Operand::NONE,
        pad2: 0,
        test: [Test::NONE; TESTS],
    };
}

/// The operand is less than 0.
pub const BUCKET_BELOW: u32 = 65;
/// It could not be read.
pub const BUCKET_UNKNOWN: u32 = 66;

/// A group of calls of one row.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AggregateKey {
    pub tgid: u32,
    pub row: u32,
    /// A number, or that of a text or stack.
    pub group: u64,
    /// 0: the operand is 0, or there is no histogram; 1 + n: it is 2^n or more, and less than 2^(n+1).
    pub bucket: u32,
    pub pad: u32,
}

/// Their sums.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    pub count: u64,
    pub sum: u64,
    pub largest: u64,
    /// Its complement.
    pub smallest: u64,
}

/// A text that calls are summed up by.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateText {
    pub text: [u8; TEXT],
}
