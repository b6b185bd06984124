//! ELF files that others control: another process reads them for us.

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
        let facts = file.facts();
        ElfFile::read_from(Box::new(file.clone()), facts.bytes)
    }
}
