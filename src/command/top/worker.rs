//! Whose calls are looked at where a launcher is named (`torchrun`), which has none.

use crate::discover;

/// `pid` itself where it has loaded the CUDA driver, which `torchrun` has not, else the first of its descendants that has; itself
/// where none has yet.
pub(super) fn of(pid: u32) -> u32 {
    if uses_cuda(&pid) {
        return pid;
    }
    discover::descendants([pid]).into_iter().find(uses_cuda).unwrap_or(pid)
}

fn uses_cuda(pid: &u32) -> bool {
    let maps = discover::mappings(*pid).unwrap_or_default();
    maps.iter().any(|mapping| mapping.is_named("libcuda.so"))
}
