//! Writes down what the engine of a run says (`GPUSCOPE_TAPE=FILE`), for tests that play it again without root.
//!
//! Owns when that is done. What a tape holds is [`crate::engine::Tape`]'s business.

use crate::catalog::Catalog;
use crate::engine::{Engine, Taped};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;

fn wanted() -> Option<OsString> {
    std::env::var_os("GPUSCOPE_TAPE")
}

/// `engine`, listened to if somebody wants a tape.
pub(super) fn listening(engine: Box<dyn Engine>) -> Box<dyn Engine> {
    match wanted() {
        Some(_) => Box::new(Taped::new(engine)),
        None => engine,
    }
}

/// Writes what `engine` has said, if somebody wants that.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(engine: &dyn Engine, catalog: &Catalog) -> Result<()> {
    let Some((taped, path)) = engine.taped().zip(wanted()) else {
        return Ok(());
    };
    let name = |row: &crate::catalog::Row| {
        let library = catalog.library_with(row.library);
        (
            library.map_or_else(String::new, |library| library.name.clone()),
            row.symbol.clone(),
        )
    };
    let tape = taped.tape(catalog.rows.iter().map(name).collect())?;
    let failed = || format!("failed to write {}", path.display());
    let mut options = File::options();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .with_context(failed)?;
    tape.write(BufWriter::new(file)).with_context(failed)
}
