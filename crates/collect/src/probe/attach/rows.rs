//! Which row of the catalogue describes what was found in a file.
//!
//! Owns the choice, and what a user's file names in vain.

use super::Rows;
use crate::catalog::{Layer, LibraryId, Row, RowId, SiteKind, glob_matches};
use crate::elf::ElfFile;
use crate::probe::found::Found;
use crate::probe::rows::NoRoom;
use std::collections::HashSet;

pub(super) fn row_for(
    rows: &mut dyn Rows,
    elf: &ElfFile,
    library: LibraryId,
    function: &Found,
    names: &HashSet<&str>,
) -> Result<Option<RowId>, NoRoom> {
    let catalog = rows.catalog();
    let known = function.row(catalog, library, elf);
    let row = known.and_then(|id| catalog.row(id));
    if row
        .and_then(|row| row.forwards.as_deref())
        .is_some_and(|target| names.contains(target))
    {
        return Ok(None);
    }
    let selected = row.is_none_or(|row| rows.filter().selects(catalog, &named(row, &function.name)));
    match known {
        _ if !selected => Ok(None),
        Some(id) if !row.is_some_and(Row::is_glob) => Ok(Some(id)),
        like => rows.add(library, &function.name, like),
    }
}

/// Functions and static probes that a user's file names and the library lacks. The built-in tables name many that a library may lack.
pub(super) fn missing(rows: &dyn Rows, elf: &ElfFile, library: LibraryId, found: &[Found]) -> Vec<String> {
    let catalog = rows.catalog();
    let wanted = catalog.rows.iter().filter(|row| row.library == library);
    let custom = catalog
        .library_with(library)
        .is_some_and(|library| library.layer == Layer::Custom);
    wanted
        .filter(|row| custom && row.majors.contains(elf.soname_major()) && rows.filter().selects(catalog, row))
        .filter(|row| !row.site.is_in_kernel())
        .filter(|row| {
            let probe = row.site == SiteKind::StaticProbe;
            let has = |found: &Found| found.probe.is_some() == probe && glob_matches(&row.symbol, &found.name);
            !found.iter().any(has)
        })
        .map(|row| format!("{} {}", row.site.name(), row.symbol))
        .collect()
}

/// A glob's row under the name of one of its symbols.
fn named(row: &Row, symbol: &str) -> Row {
    let mut row = row.clone();
    if row.is_glob() {
        row.symbol = symbol.to_owned();
        row.api = symbol.to_owned();
    }
    row
}
