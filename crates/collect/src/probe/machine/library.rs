//! What of one mapped file can be probed; decided by the code that attaches.

use super::super::attach;
use super::super::found::Found;
use super::mapped::{Kind, MappedLibrary};
use crate::catalog::{Catalog, Library, LibraryId};
use crate::discover::Mapping;
use crate::elf::{ElfFile, Method, is_trampoline};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, HashSet};

/// How many functions without a probe are named; the rest is counted.
const NAMED: usize = 3;

/// A mapped file as it was looked at.
pub(super) enum Finding {
    Library(Box<MappedLibrary>),
    /// Too large to be searched for a runtime, and without code for a GPU.
    NotSearched,
    Nothing,
}

/// What `mapping` of process `pid` offers of the libraries in `catalog`.
pub(super) fn examine(pid: u32, mapping: &Mapping, catalog: &Catalog) -> Result<Finding> {
    let file = mapping.open(pid).context("cannot be opened")?;
    let elf = ElfFile::of_foreign(&file)?;
    let Some((id, functions, embedded)) = attach::functions_of(catalog, &elf, &mapping.path)? else {
        return Ok(if too_large(&elf) {
            Finding::NotSearched
        } else {
            Finding::Nothing
        });
    };
    let functions = distinct(catalog, id, &elf, functions);
    let mut library = counted(mapping, catalog, id, &elf, &functions);
    library.kind = embedded.map_or(Kind::Shared, kind);
    if library.kind == Kind::Stripped {
        library.add_note("found by the names in its messages; a function that does not name itself is not seen".into());
    }
    Ok(Finding::Library(Box::new(library)))
}

/// The library of the catalogue that the file is by its name.
pub(super) fn by_name<'a>(mapping: &Mapping, catalog: &'a Catalog) -> Option<&'a Library> {
    let path = mapping.path.to_string_lossy();
    catalog.libraries.iter().rev().find(|library| library.matches(&path))
}

fn kind(method: Method) -> Kind {
    match method {
        Method::SymbolTable => Kind::Static,
        Method::NameStrings => Kind::Stripped,
    }
}

/// Whether it was not searched for its size.
fn too_large(elf: &ElfFile) -> bool {
    // a file without a name is judged by its size alone; system libraries are small
    !attach::may_embed_runtime(elf, "")
}

/// One name for each place; without functions that only jump into another one, which is probed instead.
fn distinct(catalog: &Catalog, id: LibraryId, elf: &ElfFile, functions: Vec<Found>) -> BTreeMap<u64, Found> {
    let names: HashSet<String> = functions.iter().map(|function| function.name.clone()).collect();
    let mut places = BTreeMap::new();
    for function in functions {
        let row = function.row(catalog, id, elf).and_then(|row| catalog.row(row));
        let forwards = row
            .and_then(|row| row.forwards.as_ref())
            .is_some_and(|target| names.contains(target));
        let jumps = function.probe.is_none() && is_trampoline(elf, function.offset).unwrap_or(false);
        if !forwards && !jumps {
            places.entry(function.offset).or_insert(function);
        }
    }
    places
}

fn counted(
    mapping: &Mapping,
    catalog: &Catalog,
    id: LibraryId,
    elf: &ElfFile,
    functions: &BTreeMap<u64, Found>,
) -> MappedLibrary {
    let refusal = |found: &Found| found.refusal(elf).map(|why| format!("{} ({why})", found.name));
    let refused: Vec<String> = functions.values().filter_map(refusal).collect();
    let unknown = functions
        .values()
        .filter(|found| found.row(catalog, id, elf).is_none())
        .count();
    let mut library = MappedLibrary {
        path: mapping.path.to_string_lossy().into_owned(),
        kind: Kind::Shared,
        layer: catalog
            .libraries
            .get(usize::from(id.0))
            .map(|library| library.name.clone())
            .unwrap_or_default(),
        hookable: functions.len() - refused.len(),
        of: functions.len(),
        mount_namespace_differs: false,
        deleted: mapping.deleted,
        note: None,
    };
    library.add_notes(notes(&refused, unknown, mapping.deleted, elf.is_go()));
    library
}

fn notes(refused: &[String], unknown: usize, deleted: bool, go: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if deleted {
        notes.push("removed or replaced on disk since it was mapped; new processes map another file".to_owned());
    }
    if go {
        notes.push("a Go program: no results and durations, return probes would crash it".to_owned());
    }
    if unknown > 0 {
        notes.push(format!(
            "{unknown} are not in the catalogue: seen at entry, with raw arguments"
        ));
    }
    if !refused.is_empty() {
        notes.push(format!("without a probe: {}", first_few(refused)));
    }
    notes
}

fn first_few(names: &[String]) -> String {
    let shown = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_with_a_count() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(first_few(&names[..2]), "a, b");
        assert_eq!(first_few(&names), "a, b, c and 2 more");
    }

    #[test]
    fn everything_that_is_lost_is_noted() {
        assert!(notes(&[], 0, false, false).is_empty());
        let all = notes(&["cuX (why)".to_owned()], 2, true, true);
        assert_eq!(all.len(), 4);
        assert_eq!(all.last().map(String::as_str), Some("without a probe: cuX (why)"));
    }
}
