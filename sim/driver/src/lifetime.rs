//! What happens when the library is loaded, when its process forks and when it ends.

use crate::{LEDGER, book, code, machine, work};

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static ON_UNLOAD: extern "C" fn() = flush;

extern "C" fn on_load() {
    // SAFETY: the handler lives as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

extern "C" fn in_child() {
    LEDGER.reset();
    code::forked();
    machine::forked();
    book::forked();
    work::forked();
}

/// Launches by kernel, for the ledger; names are shown byte by byte.
fn kernels() -> Vec<(String, u64)> {
    let text = |name: &std::ffi::CStr| name.to_bytes().iter().map(|byte| char::from(*byte)).collect();
    let launches = code::take_launches();
    launches
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| (text(name), *count))
        .collect()
}

extern "C" fn flush() {
    LEDGER.flush(&kernels());
    book::flush();
}

/// Writes the ledger and the book now, for programs about to end without running exit handlers.
#[unsafe(no_mangle)]
pub extern "C" fn gpusim_driver_flush() {
    flush();
}
