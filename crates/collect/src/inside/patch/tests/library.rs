//! A library that every program has: which of its functions can be patched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Refusal, assert_same};
use crate::elf::{ElfFile, SymbolTable};
use crate::inside::patch::plan;

/// Bytes behind a function that are given with it.
const BEHIND: usize = 64;

#[derive(Debug, Default)]
struct Outcome {
    kept: usize,
    overwritten: usize,
    refused: BTreeMap<Refusal, Vec<String>>,
}

impl Outcome {
    fn total(&self) -> usize {
        self.kept + self.overwritten + self.refused.values().map(Vec::len).sum::<usize>()
    }

    fn text(&self) -> String {
        let mut text = format!("{} functions, {} keep their first instruction", self.total(), self.kept);
        text += &format!(", of {} it is overwritten\n", self.overwritten);
        for (why, names) in &self.refused {
            text += &format!("{:5} {why}: {}\n", names.len(), names.join(" "));
        }
        text
    }
}

/// The C library that this process has mapped.
fn c_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the maps of this process");
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let is_libc = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with("libc.so"));
    PathBuf::from(paths.find(is_libc).expect("a C library in the maps"))
}

/// The functions of `.dynsym` that have `least` bytes or more, without aliases: name, file offset, size.
fn exported(file: &ElfFile, least: u64) -> Vec<(String, u64, usize)> {
    let mut symbols = file.symbols().expect("symbols");
    symbols.retain(|symbol| symbol.table == SymbolTable::Dynamic && symbol.size >= least);
    symbols.sort_by_key(|symbol| symbol.file_offset);
    symbols.dedup_by_key(|symbol| symbol.file_offset);
    let row = |symbol: crate::elf::Symbol| (symbol.name, symbol.file_offset, symbol.size as usize);
    symbols.into_iter().map(row).collect()
}

fn outcome(path: &Path, least: u64) -> Outcome {
    let bytes = std::fs::read(path).expect("the library");
    let file = ElfFile::open(path).expect("a library");
    let mut outcome = Outcome::default();
    for (name, offset, size) in exported(&file, least) {
        let entry = file.address_of(offset).expect("an address");
        let function = &bytes[offset as usize..];
        let function = &function[..function.len().min(size + BEHIND)];
        match plan(function, size, entry) {
            Ok(patch) => {
                assert_same(function, entry, &patch);
                let count = if patch.kept > 0 {
                    &mut outcome.kept
                } else {
                    &mut outcome.overwritten
                };
                *count += 1;
            }
            Err(why) => outcome.refused.entry(why).or_default().push(name),
        }
    }
    outcome
}

#[test]
fn most_functions_of_the_c_library_can_be_patched() {
    let path = c_library();
    let outcome = outcome(&path, 16);
    println!("{}: {}", path.display(), outcome.text());
    assert!(outcome.total() > 1000, "{}", outcome.text());
    let planned = outcome.kept + outcome.overwritten;
    assert!(planned * 10 > outcome.total() * 9, "{}", outcome.text());
}
