//! Entry points of a CUDA runtime that was linked into a program or library.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use object::elf;

use super::bytes::printable;
use super::name_strings::{self, References};
use super::symbol::SymbolTable;
use super::{ElfError, ElfFile};

/// Every CUDA runtime contains it, and its users do not.
const MARKER: &[u8] = b"CUDA_ENABLE_MODULE_LAZY_LOADING";
/// Every runtime opens the driver by this name. Others may, too; but most files do not, and are asked no more.
const DRIVER: &[u8] = b"libcuda.so.1";
/// Present where all `cuda*` functions only forward to a runtime that is loaded later.
const FORWARDING_TABLE: &str = "_cudart_tramp_table";
/// Functions of one runtime lie closer together than this, in bytes.
const CLUSTER_GAP: u64 = 64 << 10;
/// A whole runtime has 370 and more; from fewer nothing follows about those that are absent.
const ENOUGH_TO_DATE: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Method {
    /// `.symtab` names them.
    SymbolTable,
    /// Each function was found by its reference to its own name.
    NameStrings,
}

/// The runtime inside a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct StaticRuntime {
    pub method: Method,
    /// Name and file offset in bytes, sorted by name. No name and no offset appears twice.
    pub functions: Vec<(String, u64)>,
    /// 11, 12 or 13, where the functions that are present tell. 12 and below is not told apart from older than 11.
    pub major: Option<u32>,
}

/// Looks for a CUDA runtime that the file contains but does not export. `is_name` says which names to return.
///
/// `None` if there is none, if the file only forwards to one, or if `.dynsym` exports the functions, where
/// [`ElfFile::symbols`] has them already.
///
/// # Errors
/// A part of the file cannot be read, is cut off or is larger than its limit.
pub fn find_runtime(file: &ElfFile, is_name: &dyn Fn(&str) -> bool) -> Result<Option<StaticRuntime>, ElfError> {
    if !file.read_only_data_contains(DRIVER)? {
        return Ok(None);
    }
    runtime_of(file, is_name)
}

/// The same of a file that knows the driver.
pub(super) fn runtime_of(file: &ElfFile, is_name: &dyn Fn(&str) -> bool) -> Result<Option<StaticRuntime>, ElfError> {
    let exported = named(file, SymbolTable::Dynamic)?;
    if exported.functions.iter().any(|(name, _)| is_name(name)) || exported.forwards {
        return Ok(None);
    }
    let local = named(file, SymbolTable::Local)?;
    if local.forwards {
        return Ok(None);
    }
    let mut functions = Vec::new();
    for (name, offset) in local.functions {
        if !is_trampoline(file, offset)? {
            functions.push((name, offset));
        }
    }
    if functions.iter().any(|(name, _)| is_name(name)) {
        return Ok(Some(runtime(Method::SymbolTable, functions, is_name)));
    }
    find_by_name_strings(file, is_name)
}

/// As [`find_runtime`], as if the file had no symbols.
///
/// # Errors
/// A part of the file cannot be read, is cut off or is larger than its limit.
pub fn find_by_name_strings(file: &ElfFile, is_name: &dyn Fn(&str) -> bool) -> Result<Option<StaticRuntime>, ElfError> {
    if !file.read_only_data_contains(MARKER)? {
        return Ok(None);
    }
    let references = name_strings::references(file)?;
    let functions = owners(&references)
        .into_iter()
        .filter_map(|(name, vaddr)| Some((name, file.layout.offset_of(vaddr)?)))
        .collect();
    let found = runtime(Method::NameStrings, functions, is_name);
    Ok((!found.functions.is_empty()).then_some(found))
}

/// Whether the function is `cmpq $0,slot; je …; jmp *slot`: a stand-in which calls the real one, so that probing both
/// would count each call twice.
///
/// # Errors
/// The file cannot be read.
pub fn is_trampoline(file: &ElfFile, offset: u64) -> Result<bool, ElfError> {
    let code = file.source.read_up_to(offset, 24)?;
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(&code);
    let Some(rest) = code.strip_prefix(&[0x48, 0x83, 0x3d]) else {
        return Ok(false);
    };
    let Some((&[_, _, _, _, 0], rest)) = rest.split_first_chunk() else {
        return Ok(false);
    };
    let after = match rest {
        [0x74, _, after @ ..] | [0x0f, 0x84, _, _, _, _, after @ ..] => after,
        _ => return Ok(false),
    };
    Ok(after.starts_with(&[0xff, 0x25]))
}

/// What a symbol table has of a runtime.
#[derive(Default)]
struct Named {
    /// Name and file offset of what may be its functions.
    functions: Vec<(String, u64)>,
    /// The table of those that only forward is defined.
    forwards: bool,
}

fn named(file: &ElfFile, table: SymbolTable) -> Result<Named, ElfError> {
    let mut named = Named::default();
    let Some(place) = file.table(table)? else {
        return Ok(named);
    };
    file.named_records(&place, &mut |record, name| {
        named.forwards |= name == FORWARDING_TABLE.as_bytes() && record.section != elf::SHN_UNDEF;
        if name.starts_with(b"cuda") || name.starts_with(b"__cuda") {
            let plain = name.split(|&byte| byte == b'@').next().unwrap_or_default();
            let offset = file.function_offset(record);
            named.functions.extend(offset.map(|offset| (printable(plain), offset)));
        }
        ControlFlow::Continue(())
    })?;
    Ok(named)
}

/// Names with exactly one function; where other code uses a name too, the function that lies among the others.
fn owners(references: &References) -> Vec<(String, u64)> {
    let single = |functions: &BTreeSet<u64>| (functions.len() == 1).then(|| functions.first().copied()).flatten();
    let sure: BTreeSet<u64> = references.values().filter_map(single).collect();
    let Some((low, high)) = cluster(&sure) else {
        return Vec::new();
    };
    let mut owned: Vec<(String, u64)> = Vec::new();
    for (name, functions) in references {
        let mut among: BTreeSet<u64> = functions.range(low..=high).copied().collect();
        if among.is_empty() {
            // The first or the last function of the runtime may itself be one of those whose name others use.
            let near = low.saturating_sub(CLUSTER_GAP)..=high.saturating_add(CLUSTER_GAP);
            among = functions.range(near).copied().collect();
        }
        owned.extend(single(&among).map(|function| (name.clone(), function)));
    }
    let mut seen = BTreeSet::new();
    let shared: BTreeSet<u64> = owned.iter().map(|(_, f)| *f).filter(|f| !seen.insert(*f)).collect();
    owned.retain(|(_, function)| !shared.contains(function));
    owned
}

/// The longest run of addresses without a gap: its first and last.
fn cluster(addresses: &BTreeSet<u64>) -> Option<(u64, u64)> {
    let addresses: Vec<u64> = addresses.iter().copied().collect();
    let runs = addresses.chunk_by(|a, b| b - a <= CLUSTER_GAP);
    let longest = runs.max_by_key(|run| run.len())?;
    Some((*longest.first()?, *longest.last()?))
}

fn runtime(method: Method, mut functions: Vec<(String, u64)>, is_name: &dyn Fn(&str) -> bool) -> StaticRuntime {
    let major = major(&functions);
    functions.retain(|(name, _)| is_name(name));
    functions.sort_unstable();
    functions.dedup_by(|a, b| a.0 == b.0);
    let mut seen = BTreeSet::new();
    functions.retain(|(_, offset)| seen.insert(*offset));
    StaticRuntime {
        method,
        functions,
        major,
    }
}

fn major(functions: &[(String, u64)]) -> Option<u32> {
    let has = |wanted: &str| functions.iter().any(|(name, _)| name == wanted);
    let public = functions.iter().filter(|(name, _)| name.starts_with("cuda")).count();
    match () {
        () if has("cudaBindTexture") => Some(11),
        () if has("cudaLaunchCooperativeKernelMultiDevice") => Some(12),
        () if public >= ENOUGH_TO_DATE => Some(13),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::elf_builder::{CODE_AT, Function, library};
    use super::*;

    const FORWARDS: [u8; 16] = [
        0x48, 0x83, 0x3d, 1, 2, 3, 0, 0, // cmpq $0,slot(%rip)
        0x74, 0x06, // je
        0xff, 0x25, 1, 2, 3, 0, // jmp *slot(%rip)
    ];

    #[test]
    fn a_stand_in_is_told_from_a_function() {
        let answer = |code: &[u8]| {
            let file = ElfFile::from_bytes(library(code, &[])).expect("a library");
            is_trampoline(&file, CODE_AT).expect("readable")
        };
        assert!(answer(&FORWARDS));
        assert!(answer(&[&[0xf3, 0x0f, 0x1e, 0xfa][..], &FORWARDS].concat()));
        assert!(!answer(&FORWARDS[..11]));
        // The driver's own thunk: cmpl $imm,state(%rip); je; jmp *table(%rip).
        assert!(!answer(
            &[&[0x81, 0x3d, 1, 2, 3, 0, 0, 0xba, 0x1c, 0x32][..], &FORWARDS[8..]].concat()
        ));
    }

    #[test]
    fn a_file_that_exports_or_only_forwards_hides_no_runtime() {
        for name in ["cudaMalloc", FORWARDING_TABLE] {
            let file = ElfFile::from_bytes(library(&FORWARDS, &[Function::new(name, 0, 16)]));
            let file = file.expect("a library");
            assert_eq!(runtime_of(&file, &|_| true).expect("readable"), None, "{name}");
        }
    }

    #[test]
    fn a_name_that_others_use_too_belongs_to_the_function_among_the_rest() {
        let entry = |name: &str, at: &[u64]| (name.to_owned(), at.iter().copied().collect());
        let references: References = [
            entry("cudaMalloc", &[0x1000]),
            entry("cudaFree", &[0x2000]),
            entry("cudaMemcpy", &[0x90_0000, 0x3000]),
            entry("cudaOnlyInALogLine", &[0x90_0000]),
            entry("cudaTwice", &[0x1800, 0x1900]),
        ]
        .into();
        let names: Vec<String> = owners(&references).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["cudaFree", "cudaMalloc", "cudaMemcpy"]);
    }

    #[test]
    fn the_version_follows_from_the_names() {
        let with = |name: &str, count: usize| {
            let mut functions: Vec<_> = (0..count).map(|i| (format!("cudaF{i}"), i as u64)).collect();
            functions.push((name.to_owned(), 0));
            major(&functions)
        };
        assert_eq!(with("cudaBindTexture", 1), Some(11));
        assert_eq!(with("cudaLaunchCooperativeKernelMultiDevice", 1), Some(12));
        assert_eq!(with("cudaMalloc", 300), Some(13));
        assert_eq!(with("cudaMalloc", 30), None);
    }
}
