//! The beginning of a function, as it lies in the file, and the calls of one.

use super::{ElfError, ElfFile, unwind};

/// Of a function that is longer, so much is read.
const MOST_READ: u64 = 64 << 10;
/// Bytes of a near call: its opcode and how far it goes.
const CALL: usize = 5;
/// A call, and the jump that it becomes at the end of a function.
const CALL_OPCODES: [u8; 2] = [0xe8, 0xe9];
const CODE_LIMIT: u64 = 16 << 20;

/// The beginning of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// Address in the file of the first byte.
    pub address: u64,
    /// From there on, up to the next function.
    pub bytes: Vec<u8>,
    /// How many of them are the function's; 0: not known.
    pub size: usize,
}

/// A function, and an instruction of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Around {
    pub function: Beginning,
    /// Offset of the instruction from the function's first byte.
    pub at: usize,
}

impl ElfFile {
    /// The function that holds an offset, by its symbol or its unwind information; `None`: nothing says where it begins.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn around(&self, offset: u64) -> Result<Option<Around>, ElfError> {
        let extents = self.extents()?;
        let after = extents.partition_point(|extent| extent.offset <= offset);
        let last = extents.get(..after).unwrap_or_default().last();
        let symbol = last.filter(|extent| offset - extent.offset < extent.size);
        let (start, size) = match symbol {
            Some(extent) => (extent.offset, extent.size),
            None => {
                let frames = unwind::frames(self)?;
                let vaddr = self.layout.vaddr_of(offset);
                let Some(frame) = vaddr.and_then(|vaddr| unwind::enclosing(&frames, vaddr)) else {
                    return Ok(None);
                };
                let Some(start) = self.layout.offset_of(frame.start) else {
                    return Ok(None);
                };
                (start, frame.end - frame.start)
            }
        };
        let Some(mut function) = self.beginning(start)? else {
            return Ok(None);
        };
        function.size = size.min(function.bytes.len() as u64) as usize;
        let at = (offset - start) as usize;
        Ok((at < function.size && size <= MOST_READ).then_some(Around { function, at }))
    }

    /// What lies at the offset of a function, or within one; `None`: there is no code.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn beginning(&self, offset: u64) -> Result<Option<Beginning>, ElfError> {
        let Some((code, address)) = self.layout.code_at(offset).zip(self.layout.vaddr_of(offset)) else {
            return Ok(None);
        };
        let extents = self.extents()?;
        let after = extents.partition_point(|extent| extent.offset <= offset);
        let around = extents.get(..after).unwrap_or_default().last();
        let end = around.map_or(offset, |extent| extent.offset + extent.size);
        let next = extents.get(after).map_or(u64::MAX, |extent| extent.offset);
        let last = next.min(code.offset + code.size).max(end.min(code.offset + code.size));
        let bytes = self
            .source
            .read_up_to(offset, (last - offset).min(MOST_READ) as usize)?;
        let size = (end.saturating_sub(offset)).min(bytes.len() as u64) as usize;
        Ok(Some(Beginning { address, bytes, size }))
    }

    /// The addresses in the file of the near calls of the function at `offset`, and its own.
    ///
    /// # Errors
    /// The file cannot be read, or has more code than a dynamic linker.
    pub(crate) fn calls_of(&self, offset: u64) -> Result<(Vec<u64>, u64), ElfError> {
        let target = self.layout.vaddr_of(offset).unwrap_or_default();
        let mut calls = Vec::new();
        for code in &self.layout.code {
            let bytes = self.source.read("code", code.offset, code.size, CODE_LIMIT)?;
            // what is no call has such bytes at one of some four thousand million places
            let found = bytes.windows(CALL).enumerate().filter(|(at, call)| {
                let next = code.vaddr + (at + CALL) as u64;
                let apart = call[1..].try_into().map_or(0, i32::from_le_bytes);
                CALL_OPCODES.contains(&call[0]) && next.wrapping_add_signed(i64::from(apart)) == target
            });
            calls.extend(found.map(|(at, _)| code.vaddr + at as u64));
        }
        Ok((calls, target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dynamic linker of this very program.
    fn linker() -> ElfFile {
        let own = ElfFile::open("/proc/self/exe").expect("a program");
        ElfFile::open(own.interpreter().expect("it is linked dynamically")).expect("a library")
    }

    #[test]
    fn a_dynamic_linker_calls_its_notification() {
        let linker = linker();
        let symbols = linker
            .symbols_where(&|name| name == "_dl_debug_state")
            .expect("symbols");
        let (calls, target) = linker.calls_of(symbols[0].file_offset).expect("code");
        assert!((2..40).contains(&calls.len()), "{calls:?}");
        assert!(!calls.contains(&target));
    }

    #[test]
    fn a_function_begins_with_its_bytes_and_ends_where_its_symbol_says() {
        let linker = linker();
        let symbols = linker.symbols_where(&|name| name == "__tls_get_addr").expect("symbols");
        let whole = linker.beginning(symbols[0].file_offset).expect("a file").expect("code");
        assert_eq!(whole.size as u64, symbols[0].size);
        assert!(whole.bytes.len() >= whole.size);
        let inner = linker
            .beginning(symbols[0].file_offset + 4)
            .expect("a file")
            .expect("code");
        assert_eq!((inner.address, inner.size), (whole.address + 4, whole.size - 4));
        assert_eq!(linker.beginning(0).expect("a file"), None);
    }
}
