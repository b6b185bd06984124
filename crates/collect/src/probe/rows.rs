//! What whoever attaches has to know of the rows of a run, which owns them and their plans.

use crate::catalog::{Arg, Catalog, LibraryId, RowId};
use crate::engine::Engine;
use crate::filter::Filter;
use anyhow::Result;

/// Decides for new rows and files; implemented by whoever owns the catalogue's plans.
pub trait Rows {
    fn catalog(&self) -> &Catalog;
    fn filter(&self) -> &Filter;
    /// Whether calls of this row get a return probe.
    fn returns(&self, row: RowId) -> bool;
    /// From now on calls of this row are seen at entry only.
    fn see_entry_only(&mut self, row: RowId);
    /// Adds a row for a symbol that only a glob, or nothing, describes. `None`: nobody asks for it.
    ///
    /// # Errors
    /// There is no room left.
    fn add(&mut self, library: LibraryId, symbol: &str, like: Option<RowId>) -> Result<Option<RowId>, NoRoom>;
    /// How many rows may be added in all.
    fn spare(&self) -> usize;
    /// A row's arguments, now that the kernel has told them.
    fn set_args(&mut self, row: RowId, args: Vec<Arg>);
    /// Tells the kernel side about the rows added since the last time.
    ///
    /// # Errors
    /// The kernel refuses.
    fn publish(&mut self, engine: &dyn Engine) -> Result<()>;
}

/// Globs, and functions that nothing describes, have added as many rows as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;
