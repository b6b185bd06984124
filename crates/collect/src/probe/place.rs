//! Rows of places that are no symbol: an offset in the file, or behind a symbol.

use super::found::Found;
use crate::catalog::{Catalog, LibraryId, Loc, Row};
use crate::elf::{ElfFile, PlaceSite, SiteRefusal, place_site};
use crate::wire;
use anyhow::{Result, bail};

/// How machine code numbers the registers that carry arguments.
const ARGUMENTS: [u8; wire::REGS] = match cfg!(target_arch = "aarch64") {
    true => [0, 1, 2, 3, 4, 5],
    false => [7, 6, 2, 1, 8, 9],
};

/// The places of `elf` that rows of `library` name. A row whose symbol the file lacks has none.
pub(super) fn places_of(catalog: &Catalog, elf: &ElfFile, library: LibraryId) -> Result<Vec<Found>> {
    let rows = catalog.rows.iter().filter(|row| row.library == library);
    let mut found = Vec::new();
    for row in rows {
        let Some(offset) = row.hook.offset else { continue };
        let start = match &row.hook.from {
            None => Some(0),
            Some(from) => elf
                .symbols_where(&|name| name == from)?
                .first()
                .map(|symbol| symbol.file_offset),
        };
        found.extend(start.map(|start| Found::place(row.symbol.clone(), start.saturating_add(offset))));
    }
    Ok(found)
}

/// Where to probe for a row with an offset.
///
/// # Errors
/// There is no code or no instruction, or nothing says where instructions begin.
pub fn site_at(elf: &ElfFile, offset: u64) -> Result<PlaceSite, SiteRefusal> {
    place_site(elf, offset)
}

/// Whether the arguments of `row` can be read inside a function.
///
/// # Errors
/// One lies on the stack, whose layout there nobody knows.
pub fn readable_inside(row: &Row) -> Result<()> {
    match row.args.iter().find(|arg| matches!(arg.loc, Loc::Stack { .. })) {
        None => Ok(()),
        Some(arg) => bail!(
            "not probed: argument `{}` lies on the stack, where it is found at a function's entry only",
            arg.name
        ),
    }
}

/// Inside a function, arguments are what their registers hold there.
pub(super) fn registers() -> wire::ProbeSite {
    let mut site = wire::ProbeSite {
        places: wire::REGS as u32,
        ..wire::ProbeSite::default()
    };
    for (place, register) in site.place.iter_mut().zip(ARGUMENTS) {
        *place = wire::Place {
            kind: wire::PLACE_VALUE,
            base: register,
            index: wire::WORD_NONE,
            bytes: 8,
            ..wire::Place::default()
        };
    }
    site
}
