//! ELF files that others control: where their file system may never answer, another process reads them for us.

use super::source::Source;
use super::{ElfError, ElfFile, ReadAt};
use crate::foreign::ForeignFile;

impl ReadAt for ForeignFile {
    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        ForeignFile::read_exact_at(self, offset, into)
    }
}

impl ElfFile {
    /// A file that others control.
    ///
    /// # Errors
    /// As [`ElfFile::open`]; or its file system does not answer.
    pub fn of_foreign(file: &ForeignFile) -> Result<Self, ElfError> {
        let bytes = file.facts().bytes;
        match file.open_here() {
            Ok(Some(here)) => ElfFile::new(Source::of(here, bytes)),
            _ => ElfFile::read_from(Box::new(file.clone()), bytes),
        }
    }
}
