//! How many descriptors this process may open. One link per function needs thousands; the traced command keeps
//! the limit that we were started with.

use std::sync::OnceLock;

static INHERITED: OnceLock<libc::rlimit> = OnceLock::new();

const WANTED: libc::rlim_t = 1 << 16;

/// Allows as many descriptors as links may need, as far as we may.
pub(super) fn raise_descriptors() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the calls only read and write the structures that they are given
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return;
        }
        let _ = INHERITED.set(limit);
        let most = libc::rlimit {
            rlim_cur: limit.rlim_cur.max(WANTED),
            rlim_max: limit.rlim_max.max(WANTED),
        };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const most) != 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// The limit to give to the traced command; `None`: it was not changed. To be asked before forking.
pub(super) fn inherited() -> Option<libc::rlimit> {
    INHERITED.get().copied()
}
