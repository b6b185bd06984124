//! The words that are captured of a call: how many there are, how they are numbered, and how a row refers to them.

pub const REGS: usize = 6;
pub const STACK: usize = 10;
pub const VALUES: usize = 8;
pub const BLOCK: usize = 26;
pub const TEXTS: usize = 2;
pub const TEXT: usize = 128;

/// First index of the stack words and of the values among a call's captured words.
pub const WORD_STACK: u8 = REGS as u8;
pub const WORD_VALUES: u8 = (REGS + STACK) as u8;
pub const WORD_NONE: u8 = 255;
/// Where a launch whose shape lies behind a pointer keeps the stream that it has found there.
pub const WORD_STREAM: u8 = WORD_VALUES + 6;
/// Where a row that asks for the stack of each call has its id.
pub const WORD_SITE: u8 = WORD_VALUES + VALUES as u8 - 1;
/// What stands for a captured word where a call is tested or summed up: nothing, as what it needs is not seen.
pub const WORD_UNKNOWN: u8 = 254;
pub const WORD_RESULT: u8 = 253;
pub const WORD_DURATION: u8 = 252;
pub const WORD_BYTES: u8 = 251;

/// Offset of a [`Read`] that is no pointer: the word itself.
pub const READ_DIRECT: u16 = 0xffff;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub word: u8,
    pub bytes: u8,
    pub offset: u16,
}

impl Read {
    pub const NONE: Read = Read {
        word: 0,
        bytes: 0,
        offset: 0,
    };
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    pub word: u8,
    pub bytes: u8,
}

impl Factor {
    pub const NONE: Factor = Factor {
        word: WORD_NONE,
        bytes: 0,
    };
}
