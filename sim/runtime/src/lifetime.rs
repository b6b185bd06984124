//! What happens when the library is loaded, when its process forks and when it ends.

use crate::api_launch::take_tail_launches;
use crate::{LEDGER, driver};

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static ON_UNLOAD: extern "C" fn() = on_unload;

extern "C" fn on_load() {
    // SAFETY: the handler lives as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

extern "C" fn in_child() {
    LEDGER.reset();
    take_tail_launches();
}

extern "C" fn on_unload() {
    for (function, calls) in take_tail_launches() {
        LEDGER.add_calls(function, calls);
    }
    LEDGER.flush(&[]);
}

/// Writes the ledgers of both layers now, for programs about to end without running exit
/// handlers. Only a runtime that had calls has a driver loaded.
#[unsafe(no_mangle)]
pub extern "C" fn gpusim_flush() {
    on_unload();
    driver::flush();
}
