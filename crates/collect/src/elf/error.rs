//! Why a file, or a part of it, is not usable.

use std::io;

/// Each message is complete after the path: `/usr/lib/x.so: not usable: the file is empty`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    #[error("not usable: cannot be read")]
    Io(#[from] io::Error),
    #[error("not usable: {0}, not a regular file")]
    NotRegular(&'static str),
    #[error("not usable: the file is empty")]
    Empty,
    #[error("not usable: not an ELF file")]
    NotElf,
    #[error("not usable: 32-bit; only 64-bit files are read")]
    Not64Bit,
    #[error("not usable: built for another machine ({0}); only {here} is read", here = crate::processor::HERE.name)]
    ForeignMachine(String),
    #[error("not usable: {0}; only programs and shared libraries are read")]
    NotLoadable(String),
    #[error("not usable: cut off: {what} ends at byte {end}, the file has {len}")]
    Truncated { what: &'static str, end: u64, len: u64 },
    #[error("not usable: {what} is too large: {size} bytes, the limit is {limit}")]
    TooLarge { what: &'static str, size: u64, limit: u64 },
    #[error("not usable: damaged: {0}")]
    Damaged(&'static str),
}
