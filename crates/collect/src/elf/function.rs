//! The functions that hold given bytes of a file. No table is kept: a file of gigabytes costs no more than a small one.

use std::ops::ControlFlow;

use object::elf;

use super::bytes::printable;
use super::symbol::{Record, SymbolTable, Table};
use super::{ElfError, ElfFile};

/// Bytes of a name that are read; templates of C++ can be thousands long.
const LONGEST_NAME: usize = 16 << 10;
/// Most names are shorter, and are had with one read.
const FIRST_READ: usize = 256;
/// Functions which lie inside each other, beyond what any compiler makes.
const MOST_COVERS: usize = 1 << 24;

/// A function's symbol, without its name.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    start: u64,
    size: u64,
    rank: u8,
    name: u32,
}

/// What is known of one address.
#[derive(Debug)]
struct Asked {
    vaddr: u64,
    /// Function that holds it.
    holder: Option<Candidate>,
    /// The last that starts between the next lower address and this one.
    before: Option<Candidate>,
}

impl ElfFile {
    /// The address, as linked, of the byte at a file offset.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        self.layout.vaddr_of(offset)
    }

    /// The names, as the linker knows them, of the functions that hold these file offsets: from `.symtab`, else from
    /// `.dynsym`. `None` where no table tells, or cannot be read.
    pub fn function_names(&self, offsets: &[u64]) -> Vec<Option<String>> {
        let mut names = vec![None; offsets.len()];
        for table in [SymbolTable::Local, SymbolTable::Dynamic] {
            let missing: Vec<usize> = (0..names.len()).filter(|at| names[*at].is_none()).collect();
            if missing.is_empty() {
                break;
            }
            let wanted: Vec<u64> = missing.iter().map(|at| offsets[*at]).collect();
            let found = self.function_names_of(table, &wanted).unwrap_or_default();
            for (at, name) in missing.into_iter().zip(found) {
                names[at] = name;
            }
        }
        names
    }

    fn function_names_of(&self, table: SymbolTable, offsets: &[u64]) -> Result<Vec<Option<String>>, ElfError> {
        let Some(place) = self.table(table)? else {
            return Ok(Vec::new());
        };
        let vaddrs: Vec<Option<u64>> = offsets.iter().map(|offset| self.layout.vaddr_of(*offset)).collect();
        let mut asked = ask(vaddrs.iter().flatten().copied());
        let mut covers = 0;
        self.records(&place, &mut |record| {
            consider(record, &mut asked, &mut covers);
            if covers > MOST_COVERS {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        self.fall_back(&mut asked);
        Ok(vaddrs
            .iter()
            .map(|vaddr| self.name_of(&place, holder(&asked, (*vaddr)?)?))
            .collect())
    }

    /// What no function holds belongs to the one before it, if that is of the same section and does not say its size.
    fn fall_back(&self, asked: &mut [Asked]) {
        let mut before = None;
        for asked in asked {
            before = asked.before.or(before);
            let Some(last) = before.filter(|last| last.size == 0 && asked.holder.is_none()) else {
                continue;
            };
            let offset = self.layout.offset_of(asked.vaddr);
            let code = offset.and_then(|offset| self.layout.code_at(offset));
            asked.holder = code.filter(|code| code.vaddr <= last.start).map(|_| last);
        }
    }

    fn name_of(&self, table: &Table, symbol: Candidate) -> Option<String> {
        let at = u64::from(symbol.name);
        let has = table.names_size.checked_sub(at)?;
        let mut name = Vec::new();
        for size in [FIRST_READ, LONGEST_NAME] {
            let size = usize::try_from(has).unwrap_or(size).min(size);
            name = self.source.read_up_to(table.names.checked_add(at)?, size).ok()?;
            if let Some(end) = memchr::memchr(0, &name) {
                name.truncate(end);
                break;
            }
        }
        let name = name.split(|byte| *byte == b'@').next().unwrap_or_default();
        (!name.is_empty()).then(|| printable(name))
    }
}

/// In ascending order, each once.
fn ask(vaddrs: impl Iterator<Item = u64>) -> Vec<Asked> {
    let mut vaddrs: Vec<u64> = vaddrs.collect();
    vaddrs.sort_unstable();
    vaddrs.dedup();
    let unknown = |vaddr| Asked {
        vaddr,
        holder: None,
        before: None,
    };
    vaddrs.into_iter().map(unknown).collect()
}

fn consider(record: &Record, asked: &mut [Asked], covers: &mut usize) {
    if !matches!(record.info & 0xf, elf::STT_FUNC | elf::STT_GNU_IFUNC) || record.section == elf::SHN_UNDEF {
        return;
    }
    let candidate = Candidate {
        start: record.value,
        size: record.size,
        rank: rank(record.info),
        name: record.name,
    };
    let first = asked.partition_point(|asked| asked.vaddr < candidate.start);
    let Some((next, after)) = asked.get_mut(first..).and_then(<[Asked]>::split_first_mut) else {
        return;
    };
    improve(&mut next.before, candidate);
    for asked in std::iter::once(next).chain(after) {
        if asked.vaddr - candidate.start >= candidate.size {
            break;
        }
        *covers += 1;
        improve(&mut asked.holder, candidate);
    }
}

/// The innermost function counts, and of its names the one that other files know.
fn improve(best: &mut Option<Candidate>, other: Candidate) {
    let order = |candidate: &Candidate| (candidate.start, candidate.size > 0, candidate.rank);
    if best.as_ref().is_none_or(|best| order(best) < order(&other)) {
        *best = Some(other);
    }
}

fn rank(info: u8) -> u8 {
    match info >> 4 {
        elf::STB_LOCAL => 0,
        elf::STB_WEAK => 1,
        _ => 2,
    }
}

fn holder(asked: &[Asked], vaddr: u64) -> Option<Candidate> {
    let at = asked.binary_search_by_key(&vaddr, |asked| asked.vaddr).ok()?;
    asked.get(at)?.holder
}

#[cfg(test)]
mod tests {
    use super::super::elf_builder::{CODE_AT, Function, library};
    use super::super::symbol::Binding;
    use super::*;
    use proptest::prelude::*;

    const GLOBAL: u8 = 0x12;
    const LOCAL: u8 = 0x02;
    const WEAK: u8 = 0x22;

    fn names(functions: &[Function], places: &[u64]) -> Vec<Option<String>> {
        let file = ElfFile::from_bytes(library(&[0x90; 0x100], functions)).unwrap();
        let offsets: Vec<u64> = places.iter().map(|place| CODE_AT + place).collect();
        file.function_names(&offsets)
    }

    fn told(functions: &[Function], places: &[u64]) -> Vec<String> {
        let names = names(functions, places);
        names.into_iter().map(|name| name.unwrap_or("-".to_owned())).collect()
    }

    #[test]
    fn a_byte_belongs_to_the_function_that_holds_it() {
        let functions = [Function::new("a", 0x10, 0x10), Function::new("b", 0x30, 0x10)];
        let places = [0x3f, 0x10, 0x1f, 0x20, 0x0f, 0x40, 0x10];
        assert_eq!(told(&functions, &places), ["b", "a", "a", "-", "-", "-", "a"]);
    }

    #[test]
    fn a_function_without_a_size_reaches_to_the_next() {
        let functions = [
            Function::new("sized", 0x10, 0x10),
            Function::new("open", 0x20, 0),
            Function::new("next", 0x40, 0x10),
        ];
        let places = [0x1f, 0x20, 0x3f, 0x40, 0x50];
        assert_eq!(told(&functions, &places), ["sized", "open", "open", "next", "-"]);
    }

    #[test]
    fn the_innermost_function_counts() {
        let functions = [Function::new("outer", 0x10, 0x40), Function::new("inner", 0x20, 0x10)];
        assert_eq!(told(&functions, &[0x1f, 0x2f, 0x30]), ["outer", "inner", "outer"]);
    }

    #[test]
    fn of_many_names_the_one_for_others_is_told_without_its_version() {
        let functions = [
            Function::with_info(b"a.localalias", 0x10, LOCAL),
            Function::with_info(b"weak", 0x10, WEAK),
            Function::with_info(b"a@@VERS_1", 0x10, GLOBAL),
            Function::with_info(b"later", 0x10, GLOBAL),
        ];
        assert_eq!(told(&functions, &[0x10]), ["a"]);
    }

    #[test]
    fn only_functions_of_this_file_count() {
        let functions = [
            Function::with_info(b"data", 0x10, 0x11),
            Function::with_info(b"indirect", 0x11, 0x1a),
        ];
        assert_eq!(told(&functions, &[0x10, 0x11]), ["-", "indirect"]);
    }

    #[test]
    fn a_name_without_end_is_cut() {
        let long = "x".repeat(3 * LONGEST_NAME);
        let functions = [Function::new(&long, 0, 1), Function::new(&long[..1000], 1, 1)];
        let names = told(&functions, &[0, 1]);
        assert_eq!((names[0].len(), names[1].len()), (LONGEST_NAME, 1000));
    }

    #[test]
    fn offsets_outside_of_the_file_have_no_name() {
        let file = ElfFile::from_bytes(library(&[0x90; 0x100], &[Function::new("a", 0, 0x100)])).unwrap();
        assert_eq!(
            file.function_names(&[0, u64::MAX, CODE_AT + 0x1000]),
            [None, None, None]
        );
    }

    proptest! {
        #[test]
        fn the_answer_is_that_of_looking_at_every_symbol(
            functions in proptest::collection::vec((0_u64..200, 1_u64..60), 0..12),
            places in proptest::collection::vec(0_u64..256, 0..12),
        ) {
            let functions: Vec<(String, u64, u64)> = functions
                .into_iter()
                .enumerate()
                .map(|(number, (at, size))| (format!("f{number}"), at, size))
                .collect();
            let built: Vec<Function> = functions.iter().map(|(name, at, size)| Function::new(name, *at, *size)).collect();
            let file = ElfFile::from_bytes(library(&[0x90; 0x100], &built)).unwrap();
            prop_assert!(file.symbols().unwrap().iter().all(|symbol| symbol.binding == Binding::Global));
            for (place, name) in places.iter().zip(names(&built, &places)) {
                let holds = |start: u64, size: u64| (start..start + size).contains(place);
                let innermost = functions.iter().filter(|(_, at, size)| holds(*at, *size)).map(|(_, at, _)| *at).max();
                let found = name.map(|name| functions.iter().find(|(known, _, _)| *known == name).unwrap().1);
                prop_assert_eq!(found, innermost);
            }
        }
    }
}
