//! Which functions of the host stand for which kernels: what the code that `nvcc` generates tells the runtime before `main`.
//!
//! For each kernel that code passes the stub's address in `rsi` (`x1`) and the kernel's name in `rdx` and `rcx` (`x2`, `x3`) to
//! `__cudaRegisterFunction`, which has no name where it was linked statically and stripped. It is the function that is
//! called most often in this way. Nothing is run, and the file is read in pieces.

mod aarch64;

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};

use object::elf;

use super::bytes::{u32_at, u64_at};
use super::layout::{Code, Layout};
use super::symbol::SymbolTable;
use super::{ElfError, ElfFile};
use crate::processor::HERE;

/// TensorFlow has 700 MB.
const CODE_LIMIT: u64 = 2 << 30;
/// Places that look like a registration.
const MOST_CALLS: usize = 1 << 20;
/// How far the name's address may be loaded before the stub's, and the call come after it, in bytes.
const BEFORE: usize = 64;
const AFTER: usize = 72;
const CALL: usize = 5;
/// Of an instruction that loads an address.
const LOAD: usize = 7;
const OVERLAP: usize = 256;
/// Functions that are called in this way most often, of which one is the registration.
const CANDIDATES: usize = 8;
const LONGEST_NAME: usize = 4096;
/// What of a name tells that it is one.
const NAME_START: usize = 32;
const RELOCATION: usize = 24;
const SYMBOL: u64 = 24;

/// Stubs of one file with the names of their kernels, as places in that file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelStubs {
    /// Of a stub's first byte, and of the name; by stub.
    offsets: Vec<(u64, u64)>,
}

impl KernelStubs {
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The name of the kernel whose stub is at a file offset.
    #[must_use]
    pub fn name(&self, file: &ElfFile, stub: u64) -> Option<String> {
        let at = self.offsets.binary_search_by_key(&stub, |(stub, _)| *stub).ok()?;
        let (_, name) = self.offsets.get(at)?;
        let bytes = file.source.read_up_to(*name, LONGEST_NAME).ok()?;
        let name = bytes.get(..memchr::memchr(0, &bytes)?)?;
        std::str::from_utf8(name).ok().map(str::to_owned)
    }
}

/// One call that may register a kernel; virtual addresses.
#[derive(Debug, Clone, Copy)]
struct Call {
    stub: Stub,
    name: u64,
}

#[derive(Debug, Clone, Copy)]
enum Stub {
    At(u64),
    /// The dynamic linker puts its address here.
    Slot(u64),
}

impl ElfFile {
    /// Looks for the kernels that the file's own code registers. Empty without GPU code in the file.
    ///
    /// # Errors
    /// A part of the file cannot be read, is cut off or is larger than its limit.
    pub fn kernel_stubs(&self) -> Result<KernelStubs, ElfError> {
        if !self.has_fat_binary() {
            return Ok(KernelStubs::default());
        }
        let scan = Scan::new(self);
        let mut calls: HashMap<u64, Vec<Call>> = HashMap::new();
        let mut count = 0;
        for code in &self.layout.code {
            scan.code(code, &mut |target, call| {
                count += 1;
                calls.entry(target).or_default().push(call);
                count < MOST_CALLS
            })?;
        }
        let mut calls: Vec<(u64, Vec<Call>)> = calls.into_iter().collect();
        calls.sort_by_key(|(target, calls)| (std::cmp::Reverse(calls.len()), *target));
        calls.truncate(CANDIDATES);
        let registered = calls.into_iter().map(|(_, calls)| self.with_names(&calls));
        let best = registered.max_by_key(|named| named.score()).unwrap_or_default();
        self.placed(best)
    }

    /// The kernels that functions stand for which begin at these file offsets, by their symbols.
    #[must_use]
    pub fn kernels_by_symbol(&self, stubs: &[u64]) -> HashMap<u64, String> {
        let stubs: HashSet<u64> = stubs.iter().copied().collect();
        let mut names = HashMap::new();
        for table in [SymbolTable::Local, SymbolTable::Dynamic] {
            let Ok(Some(place)) = self.table(table) else { continue };
            // a damaged table names what lies before the damage
            let _ = self.named_records(&place, &mut |record, name| {
                let offset = self.function_offset(record).filter(|offset| stubs.contains(offset));
                if let (Some(offset), true) = (offset, begins_name(name)) {
                    let symbol = std::str::from_utf8(name).unwrap_or_default();
                    names.entry(offset).or_insert_with(|| kernel_of_stub(symbol));
                }
                ControlFlow::Continue(())
            });
        }
        names
    }

    /// Those of `calls` that pass a name.
    fn with_names(&self, calls: &[Call]) -> Named {
        let mut named = Named::default();
        for call in calls {
            let Some(offset) = self.layout.offset_of(call.name) else {
                continue;
            };
            let start = self.source.read_up_to(offset, NAME_START).unwrap_or_default();
            if begins_name(&start) {
                named.mangled += usize::from(start.starts_with(b"_Z"));
                named.calls.push((call.stub, offset));
            }
        }
        named
    }

    fn placed(&self, named: Named) -> Result<KernelStubs, ElfError> {
        let slots = named.calls.iter().filter_map(|(stub, _)| match stub {
            Stub::Slot(slot) => Some((*slot, 0)),
            Stub::At(_) => None,
        });
        let mut slots: HashMap<u64, u64> = slots.collect();
        self.fill(&mut slots)?;
        let address = |stub| match stub {
            Stub::At(address) => Some(address),
            Stub::Slot(slot) => slots.get(&slot).copied(),
        };
        let places = named.calls.into_iter().filter_map(|(stub, name)| {
            let offset = self.layout.offset_of(address(stub)?)?;
            self.layout.code_at(offset).map(|_| (offset, name))
        });
        let mut offsets: Vec<(u64, u64)> = places.collect();
        offsets.sort_unstable();
        offsets.dedup_by_key(|(stub, _)| *stub);
        Ok(KernelStubs { offsets })
    }

    /// Gives each slot the address that the dynamic linker puts there.
    fn fill(&self, slots: &mut HashMap<u64, u64>) -> Result<(), ElfError> {
        if slots.is_empty() {
            return Ok(());
        }
        let sections = self.layout.sections.iter().filter(|s| s.kind == elf::SHT_RELA);
        for section in sections {
            let end = section.offset.saturating_add(section.size);
            let mut next = section.offset;
            self.source
                .chunks("relocations", section.offset..end, RELOCATION - 1, &mut |at, bytes| {
                    let skip = usize::try_from(next - at).unwrap_or_default();
                    for record in bytes.get(skip..).unwrap_or_default().chunks_exact(RELOCATION) {
                        next += RELOCATION as u64;
                        let slot = u64_at(record, 0).and_then(|place| slots.get_mut(&place));
                        if let (Some(slot), Some(address)) = (slot, self.relocated(record)) {
                            *slot = address;
                        }
                    }
                    ControlFlow::Continue(())
                })?;
        }
        Ok(())
    }

    fn relocated(&self, record: &[u8]) -> Option<u64> {
        let (info, addend) = (u64_at(record, 8)?, u64_at(record, 16)?);
        match u32::try_from(info & 0xffff_ffff).ok()? {
            kind if kind == HERE.relative => Some(addend),
            kind if kind == HERE.symbol_in_table || kind == HERE.symbol_in_data => {
                let table = self.table(SymbolTable::Dynamic).ok()??;
                let offset = (info >> 32).checked_mul(SYMBOL)?;
                let inside = offset.checked_add(SYMBOL)? <= table.size;
                let at = inside.then(|| table.symbols.checked_add(offset))??;
                let symbol = self.source.read_up_to(at, SYMBOL as usize).ok()?;
                let defined = u32_at(&symbol, 4)? >> 16 != 0;
                defined.then_some(u64_at(&symbol, 8)?.checked_add(addend)?)
            }
            _ => None,
        }
    }
}

/// Calls of one function whose names are names.
#[derive(Default)]
struct Named {
    mangled: usize,
    calls: Vec<(Stub, u64)>,
}

impl Named {
    fn score(&self) -> (usize, usize) {
        (self.mangled, self.calls.len())
    }
}

/// Whether bytes are a C identifier, or the beginning of one.
fn begins_name(bytes: &[u8]) -> bool {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    let name = bytes.get(..end).unwrap_or_default();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.".contains(byte);
    name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(is_part)
}

/// What the scan of code asks again and again.
struct Scan<'a> {
    file: &'a ElfFile,
    /// Virtual addresses of all code, of read-only data, and of what is loaded.
    code: Vec<Range<u64>>,
    names: Vec<Range<u64>>,
    loaded: Vec<Range<u64>>,
    /// Addresses are constants in the code.
    fixed: bool,
}

impl Scan<'_> {
    fn new(file: &ElfFile) -> Scan<'_> {
        let layout: &Layout = &file.layout;
        let range = |vaddr: u64, size: u64| vaddr..vaddr.saturating_add(size);
        let segments = layout.segments.iter().filter(|s| s.kind == elf::PT_LOAD);
        let lowest = segments.clone().map(|s| s.vaddr).min();
        Scan {
            code: merged(layout.code.iter().map(|code| range(code.vaddr, code.size))),
            names: merged(file.read_only_data().map(|s| range(s.vaddr, s.size))),
            loaded: merged(segments.map(|s| range(s.vaddr, s.size))),
            fixed: lowest.is_some_and(|lowest| lowest > 0),
            file,
        }
    }

    /// Calls `found` with the address that is called and with what it is told, until that is enough.
    fn code(&self, code: &Code, found: &mut dyn FnMut(u64, Call) -> bool) -> Result<(), ElfError> {
        if code.size > CODE_LIMIT {
            return Err(ElfError::TooLarge {
                what: "code",
                size: code.size,
                limit: CODE_LIMIT,
            });
        }
        if cfg!(target_arch = "aarch64") {
            return self.code_of_aarch64(code, found);
        }
        let (first, last) = (code.offset, code.offset + code.size);
        self.file.source.chunks("code", first..last, OVERLAP, &mut |at, bytes| {
            let base = code.vaddr + (at - first);
            let from = if at == first { 0 } else { BEFORE };
            let until = if at + bytes.len() as u64 == last {
                bytes.len()
            } else {
                bytes.len() - BEFORE - AFTER - CALL
            };
            for place in self.loads(bytes).filter(|place| (from..until).contains(place)) {
                let call = self.call(bytes, base, place);
                if call.is_some_and(|(target, call)| !found(target, call)) {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })
    }

    /// Where an address may be loaded into `rsi` (`lea`, `mov`) or, if addresses are fixed, `esi`.
    fn loads<'b>(&self, bytes: &'b [u8]) -> Box<dyn Iterator<Item = usize> + 'b> {
        let relative = memchr::memchr_iter(0x35, bytes).filter_map(|at| {
            let start = at.checked_sub(2)?;
            matches!(bytes.get(start..at)?, [0x48, 0x8d | 0x8b]).then_some(start)
        });
        if self.fixed {
            Box::new(relative.chain(memchr::memchr_iter(0xbe, bytes)))
        } else {
            Box::new(relative)
        }
    }

    /// The call after the stub's address was loaded at `place`, if it looks like a registration.
    fn call(&self, bytes: &[u8], base: u64, place: usize) -> Option<(u64, Call)> {
        let stub = self.stub(bytes, base, place)?;
        let called = |at: usize| {
            let target = self.target(bytes, base, at, CALL)?;
            (*bytes.get(at)? == 0xe8 && is_in(&self.code, target)).then_some(target)
        };
        let (at, target) = (place + CALL..=place + AFTER).find_map(|at| Some((at, called(at)?)))?;
        // loaded for another call, which was a jump
        if (place + CALL..at).any(|at| self.stub(bytes, base, at).is_some()) {
            return None;
        }
        let start = place.saturating_sub(BEFORE);
        let before = (start..place).rev().find(|at| called(*at).is_some());
        let after_it = before.map_or(start, |before| before + CALL);
        let name = (after_it..at).rev().find_map(|at| self.name(bytes, base, at))?;
        Some((target, Call { stub, name }))
    }

    /// What may be a stub and is loaded at `at`.
    fn stub(&self, bytes: &[u8], base: u64, at: usize) -> Option<Stub> {
        match *bytes.get(at..at + 3)? {
            [0x48, 0x8d, 0x35] => {
                let target = self.target(bytes, base, at, LOAD)?;
                is_in(&self.code, target).then_some(Stub::At(target))
            }
            [0x48, 0x8b, 0x35] => {
                let slot = self.target(bytes, base, at, LOAD)?;
                is_in(&self.loaded, slot).then_some(Stub::Slot(slot))
            }
            [0xbe, ..] if self.fixed => {
                let target = u64::from(u32_at(bytes, at + 1)?);
                is_in(&self.code, target).then_some(Stub::At(target))
            }
            _ => None,
        }
    }

    /// The address of read-only data that is loaded into `rdx` or `rcx` at `at`.
    fn name(&self, bytes: &[u8], base: u64, at: usize) -> Option<u64> {
        let target = match *bytes.get(at..at + 3)? {
            [0x48, 0x8d, 0x15 | 0x0d] => self.target(bytes, base, at, LOAD)?,
            [0xba | 0xb9, ..] if self.fixed => u64::from(u32_at(bytes, at + 1)?),
            _ => return None,
        };
        is_in(&self.names, target).then_some(target)
    }

    /// What the last four bytes of an instruction stand for, which are relative to its end.
    fn target(&self, bytes: &[u8], base: u64, at: usize, size: usize) -> Option<u64> {
        let distance = u32_at(bytes, at + size - 4)? as i32;
        let end = base.wrapping_add((at + size) as u64);
        Some(end.wrapping_add_signed(i64::from(distance)))
    }
}

/// In order, none of which touches another.
fn merged(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let touches = next.start <= before.end;
        if touches {
            before.end = before.end.max(next.end);
        }
        touches
    });
    ranges
}

fn is_in(ranges: &[Range<u64>], address: u64) -> bool {
    let after = ranges.partition_point(|range| range.start <= address);
    ranges[..after].last().is_some_and(|range| address < range.end)
}

/// The name of a kernel, of the name that its stub has in a symbol table: since CUDA 13 those of templates are local
/// to their file, which a C++ name marks with an `L`.
#[must_use]
pub fn kernel_of_stub(symbol: &str) -> String {
    let mut kernel = String::from("_Z");
    let Some(mut rest) = symbol.strip_prefix("_Z") else {
        return symbol.to_owned();
    };
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let size = rest.get(..digits).and_then(|size| size.parse::<usize>().ok());
        let local = rest.starts_with('L') && rest[1..].starts_with(|next: char| next.is_ascii_digit());
        let taken = match size {
            Some(size) => digits.saturating_add(size),
            None if local || (kernel == "_Z" && rest.starts_with('N')) => 1,
            None => break,
        };
        let Some(part) = rest.get(..taken) else { break };
        kernel.push_str(if local { "" } else { part });
        rest = rest.get(taken..).unwrap_or_default();
    }
    kernel + rest
}

#[cfg(test)]
#[path = "kernel_stubs_tests.rs"]
mod tests;
