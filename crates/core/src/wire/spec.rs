//! What the kernel programs do at one row of the catalogue, where they do nothing; and where its arguments lie, where it
//! has none.

use super::bytes::zero;
use super::generated::*;

impl Read {
    pub const NONE: Read = zero();
}

impl Factor {
    pub const NONE: Factor = Factor {
        word: WORD_NONE,
        bytes: 0,
    };
}

impl Launch {
    pub const NONE: Launch = Launch {
        kernel: Factor::NONE,
        name: Factor::NONE,
        role: ROLE_NONE,
        shape_block: WORD_NONE,
        shape_word: WORD_NONE,
        stream: Factor::NONE,
        ..zero()
    };
}

impl Work {
    pub const NONE: Work = Work {
        step: WORK_NONE,
        ..zero()
    };
}

impl Spec {
    /// Captures nothing.
    pub const EMPTY: Spec = Spec {
        size: SIZE_SMALL,
        block_word: WORD_NONE,
        text_word: [WORD_NONE; TEXTS],
        variant: [Factor::NONE; 2],
        factor: [Factor::NONE; FACTORS],
        part: [Factor::NONE; PARTS],
        context_move: CONTEXT_STAYS,
        launch: Launch::NONE,
        work: Work::NONE,
        hook: Hook::NONE,
        ..zero()
    };

    /// Counts calls (with `returns`: failures and durations, too) and captures nothing.
    pub fn counting(returns: bool) -> Spec {
        Spec {
            flags: if returns { SPEC_RETURN | SPEC_FALLIBLE } else { 0 },
            ..Spec::EMPTY
        }
    }
}

impl KernelSite {
    /// Any call, without arguments.
    pub const EMPTY: KernelSite = KernelSite {
        only: WORD_NONE as u32,
        ..zero()
    };
}
