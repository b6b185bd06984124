//! Why an entry is not patched.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("not all bytes of the function were given")]
    CutOff,
    #[error("the bytes of its beginning are no instructions")]
    Undecodable,
    #[error("its first instruction can neither be undone nor executed twice, and is shorter than a jump")]
    First,
    #[error("its first instruction jumps to another place")]
    JumpsAway,
    #[error("its first instruction returns")]
    Returns,
    #[error("it is shorter than what a jump overwrites, and no padding follows")]
    TooShort,
    #[error("its first instructions are too long to move")]
    TooLong,
    #[error("an instruction of its beginning works only where it is")]
    Unmovable,
    #[error("its beginning calls another function, which could throw through the moved call")]
    Calls,
    #[error("a branch of the function leads into the bytes that have to move")]
    BranchedTo,
    #[error("the function jumps to places that its bytes do not show, and one may lie among those that have to move")]
    Indirect,
    #[error("the instruction there is no nop and shorter than a jump")]
    ShortPlace,
    #[error("the function takes the address of a byte that has to move")]
    AddressTaken,
}
