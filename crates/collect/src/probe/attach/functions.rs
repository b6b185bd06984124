//! Which functions and static probes lie in a file, and of which library of the catalogue it is.
//!
//! Owns where to look: symbols, notes, rows with offsets, runtimes linked in. How an ELF file says it is [`crate::elf`]'s
//! business, which row describes it that of [`super::rows`].

use super::remembered::{digest_of, runtime_in};
use crate::catalog::{Catalog, Layer, LibraryId};
use crate::elf::{ElfFile, Method, find_runtime};
use crate::probe::found::Found;
use crate::probe::place::places_of;
use crate::probe::static_probe::static_probes_of;
use anyhow::Result;
use std::path::Path;

/// Larger files without a fat binary are not searched for an embedded runtime.
const SEARCHED_BYTES: u64 = 64 << 20;

type Functions = (LibraryId, Vec<Found>, Option<Method>);

/// Which library of the catalogue a file is, and its functions.
pub(crate) fn functions_of(catalog: &Catalog, elf: &ElfFile, path: &Path) -> Result<Option<Functions>> {
    let text = path.to_string_lossy();
    let soname = elf.soname().unwrap_or_default();
    let by_name = catalog
        .libraries
        .iter()
        .rposition(|library| library.matches(&text) || library.matches(soname));
    if let Some(index) = by_name {
        let library = LibraryId(index as u16);
        let symbols = elf.symbols_where(&|name| belongs(catalog, library, name))?;
        let mut found: Vec<Found> = symbols.into_iter().map(Found::from).collect();
        found.extend(static_probes_of(catalog, elf, library)?);
        found.extend(places_of(catalog, elf, library)?);
        return Ok(Some((library, found, None)));
    }
    let Some(runtime) = catalog.library("runtime") else {
        return Ok(None);
    };
    if !may_embed_runtime(elf, &text) {
        return Ok(None);
    }
    let is_name = |name: &str| catalog.find(runtime, name, None).is_some();
    let Some(found) = runtime_in(elf, names_of(catalog, runtime), || find_runtime(elf, &is_name))? else {
        return Ok(None);
    };
    let functions = found
        .functions
        .into_iter()
        .map(|(name, offset)| Found::function(name, offset))
        .collect();
    Ok(Some((runtime, functions, Some(found.method))))
}

/// Of all names that are looked for in a runtime.
fn names_of(catalog: &Catalog, runtime: LibraryId) -> u64 {
    let rows = catalog.rows.iter().filter(|row| row.library == runtime);
    digest_of(&rows.map(|row| row.symbol.as_str()).collect::<Vec<_>>())
}

/// The dynamic linker and the C library are mapped by everything and hold no runtime.
pub(crate) fn may_embed_runtime(elf: &ElfFile, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let system = [
        "ld-linux",
        "ld-musl",
        "libc.so",
        "libc-",
        "libm.so",
        "libpthread",
        "libdl.so",
        "libstdc++",
        "libgcc_s",
    ];
    !system.iter().any(|prefix| name.starts_with(prefix)) && (elf.len() <= SEARCHED_BYTES || elf.has_fat_binary())
}

/// Names worth looking up: those with a row, and what a CUDA library exports beyond the catalogue.
fn belongs(catalog: &Catalog, library: LibraryId, name: &str) -> bool {
    let layer = catalog.library_with(library).map(|library| library.layer);
    let unknown = match layer {
        Some(Layer::Driver) => name
            .strip_prefix("cu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase())),
        Some(Layer::Runtime) => name.starts_with("cuda"),
        _ => false,
    };
    unknown || catalog.find(library, name, None).is_some()
}
