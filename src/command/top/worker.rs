//! Whose calls are looked at where a launcher is named (`torchrun`), which has none.

use crate::catalog::Catalog;
use crate::discover;
use crate::probe::machine::coverage;

/// `pid` itself where it uses CUDA, else the first of its descendants that does; itself where none does yet.
pub(super) fn of(pid: u32) -> u32 {
    let Ok(catalog) = Catalog::builtin() else { return pid };
    let uses_cuda = |pid: &u32| coverage::coverage(*pid, &catalog).is_ok_and(|process| !process.libraries.is_empty());
    if uses_cuda(&pid) {
        return pid;
    }
    discover::descendants([pid]).into_iter().find(uses_cuda).unwrap_or(pid)
}
