//! Which function of a stripped file refers to which CUDA runtime name.
//!
//! Each entry point of the CUDA runtime reports its own name to profilers, so the name is a string in the file and the
//! function's code takes its address: with `lea`, or, up to CUDA 12.6, by loading a pointer that the dynamic linker fills.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use object::elf;

use super::bytes::u64_at;
use super::layout::Code;
use super::loads_aarch64::{Loaded, Loads, REACH, Step};
use super::unwind::{self, Frame};
use super::{ElfError, ElfFile};
use crate::processor::HERE;

const TEXT_LIMIT: u64 = 512 << 20;
const RELOCATION: usize = 24;
const LONGEST_NAME: usize = 128;
/// Bytes of code that are looked at together.
const BLOCK: usize = 64;

/// Each name with the functions (virtual addresses) that refer to it.
pub(super) type References = BTreeMap<String, BTreeSet<u64>>;

pub(super) fn references(file: &ElfFile) -> Result<References, ElfError> {
    let strings = strings(file)?;
    if strings.is_empty() {
        return Ok(References::new());
    }
    let mut targets: HashMap<u64, &str> = strings.iter().map(|(vaddr, name)| (*vaddr, name.as_str())).collect();
    for (slot, vaddr) in pointers(file, &strings)? {
        if let Some(name) = strings.get(&vaddr) {
            targets.insert(slot, name);
        }
    }
    let frames = unwind::frames(file)?;
    let mut found = References::new();
    match cfg!(target_arch = "aarch64") {
        true => scan_aarch64(file, &targets, &frames, &mut found)?,
        false => scan(file, &targets, &frames, &mut found)?,
    }
    Ok(found)
}

/// `cuda[A-Z]\w+` with a NUL behind it, by virtual address.
fn strings(file: &ElfFile) -> Result<HashMap<u64, String>, ElfError> {
    let finder = memchr::memmem::Finder::new(b"cuda");
    let mut found = HashMap::new();
    for section in file.read_only_data() {
        let range = section.offset..section.offset.saturating_add(section.size);
        file.source
            .chunks("read-only data", range, LONGEST_NAME, &mut |at, bytes| {
                for start in finder.find_iter(bytes) {
                    if let Some(name) = name_at(bytes, start) {
                        found.insert(
                            section.vaddr.wrapping_add(at - section.offset + start as u64),
                            name.to_owned(),
                        );
                    }
                }
                ControlFlow::Continue(())
            })?;
    }
    Ok(found)
}

fn name_at(bytes: &[u8], start: usize) -> Option<&str> {
    let rest = bytes.get(start..)?;
    let rest = rest.get(..rest.len().min(LONGEST_NAME))?;
    let name = rest.get(..rest.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_')?)?;
    let ends = rest.get(name.len()) == Some(&0);
    let word = name.get(4).is_some_and(u8::is_ascii_uppercase) && name.len() > 5;
    if ends && word {
        std::str::from_utf8(name).ok()
    } else {
        None
    }
}

/// Places that the dynamic linker fills with the address of a name: (place, address), both virtual.
fn pointers(file: &ElfFile, strings: &HashMap<u64, String>) -> Result<Vec<(u64, u64)>, ElfError> {
    let mut found = Vec::new();
    for section in file.layout.sections.iter().filter(|s| s.kind == elf::SHT_RELA) {
        let end = section.offset.saturating_add(section.size);
        let mut next = section.offset;
        file.source
            .chunks("relocations", section.offset..end, RELOCATION - 1, &mut |at, bytes| {
                let skip = usize::try_from(next - at).unwrap_or_default();
                for record in bytes.get(skip..).unwrap_or_default().chunks_exact(RELOCATION) {
                    next += RELOCATION as u64;
                    let (Some(place), Some(info), Some(value)) =
                        (u64_at(record, 0), u64_at(record, 8), u64_at(record, 16))
                    else {
                        break;
                    };
                    if info == u64::from(HERE.relative) && strings.contains_key(&value) {
                        found.push((place, value));
                    }
                }
                ControlFlow::Continue(())
            })?;
    }
    Ok(found)
}

/// Looks at every position of the code, as decoding it all would take longer: an operand relative to the instruction
/// pointer is a byte `00rrr101` and a distance, and the targets are too few to be met by chance.
fn scan(
    file: &ElfFile,
    targets: &HashMap<u64, &str>,
    frames: &[Frame],
    found: &mut References,
) -> Result<(), ElfError> {
    const OPERAND: usize = 5;
    let (Some(low), Some(high)) = (targets.keys().min().copied(), targets.keys().max().copied()) else {
        return Ok(());
    };
    for code in &file.layout.code {
        check_size(code)?;
        let range = code.offset..code.offset + code.size;
        file.source.chunks("code", range, OPERAND, &mut |at, bytes| {
            let base = code.vaddr + (at - code.offset);
            for index in candidates(bytes) {
                let Some(&[_, _, a, b, c, d]) = bytes.get(index..index + OPERAND + 1) else {
                    continue;
                };
                let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
                let here = base + index as u64;
                let target = (here + OPERAND as u64 + 1).wrapping_add_signed(distance);
                if target < low || target > high {
                    continue;
                }
                if let (Some(name), Some(frame)) = (targets.get(&target), unwind::enclosing(frames, here)) {
                    found.entry((*name).to_owned()).or_default().insert(frame.start);
                }
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(())
}

/// Names whose addresses functions of aarch64 put into registers, but for those from which they reach others.
fn scan_aarch64(
    file: &ElfFile,
    targets: &HashMap<u64, &str>,
    frames: &[Frame],
    found: &mut References,
) -> Result<(), ElfError> {
    let (mut loaded, mut anchors) = (BTreeSet::new(), BTreeSet::new());
    for code in &file.layout.code {
        check_size(code)?;
        let range = code.offset..code.offset + code.size;
        file.source.chunks("code", range, REACH, &mut |at, bytes| {
            let base = code.vaddr + (at - code.offset);
            Loads::walk(base, bytes, &mut |_, at, step| {
                let (target, from) = match step {
                    Step::Loaded(Loaded::Address(address) | Loaded::Slot(address)) => (address, None),
                    Step::Reached { from, to } => (to, Some(from)),
                    Step::Call(_) | Step::Other => return true,
                };
                let known = |address: &u64| targets.contains_key(address);
                if (known(&target) || from.is_some_and(|from| known(&from)))
                    && let Some(frame) = unwind::enclosing(frames, base + at as u64)
                {
                    loaded.insert((frame.start, target));
                    anchors.extend(from.map(|from| (frame.start, from)));
                }
                true
            });
            ControlFlow::Continue(())
        })?;
    }
    for (function, target) in loaded.difference(&anchors) {
        if let Some(name) = targets.get(target) {
            found.entry((*name).to_owned()).or_default().insert(*function);
        }
    }
    Ok(())
}

fn check_size(code: &Code) -> Result<(), ElfError> {
    if code.size > TEXT_LIMIT {
        return Err(ElfError::TooLarge {
            what: "code",
            size: code.size,
            limit: TEXT_LIMIT,
        });
    }
    Ok(())
}

/// Where an operation that takes an address may begin, with an operand relative to the instruction pointer.
fn candidates(code: &[u8]) -> impl Iterator<Item = usize> {
    let operands = code.get(1..).unwrap_or_default();
    let blocks = code.chunks(BLOCK).zip(operands.chunks(BLOCK)).enumerate();
    let promising = blocks.filter(|(_, (opcodes, operands))| {
        // without branches, so that many bytes are looked at at once
        let pairs = opcodes.iter().zip(operands.iter());
        pairs.fold(false, |any, (opcode, operand)| any | is_candidate(*opcode, *operand))
    });
    promising.flat_map(|(number, (opcodes, operands))| {
        let pairs = opcodes.iter().zip(operands).enumerate();
        pairs
            .filter(|(_, (opcode, operand))| is_candidate(**opcode, **operand))
            .map(move |(index, _)| number * BLOCK + index)
    })
}

fn is_candidate(opcode: u8, operand: u8) -> bool {
    (operand & 0xc7 == 0x05) & takes_address(opcode)
}

/// `lea`, `mov` and the vector loads `movups movlps movhps movaps movdqa movq`.
fn takes_address(opcode: u8) -> bool {
    const OPCODES: [u8; 8] = [0x8d, 0x8b, 0x10, 0x12, 0x16, 0x28, 0x6f, 0x7e];
    OPCODES.iter().fold(false, |any, known| any | (*known == opcode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn candidates_are_those_of_each_position(code in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(0x8d_u8), Just(0x05_u8), Just(0x8b_u8), Just(0x3d_u8)], 0..400)) {
            let each = code.windows(2).enumerate();
            let expected: Vec<usize> = each
                .filter(|(_, pair)| pair[1] & 0xc7 == 0x05 && takes_address(pair[0]))
                .map(|(index, _)| index)
                .collect();
            prop_assert_eq!(candidates(&code).collect::<Vec<_>>(), expected);
        }
    }
}
