//! Limits of this process. How many descriptors it may open: one link per function needs thousands; the traced command
//! keeps the limit that we were started with. How long a file may become: that is an error, and no end.

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

/// Has a file that may not become longer fail to be written, where the kernel would end us. What we start is not changed:
/// a handler does not outlive `execve`.
pub fn survive_file_size() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the calls read and fill structures of ours, and the handler does nothing
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigaction>();
        let asked = libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &raw mut set);
        if asked == 0 && set.sa_sigaction == libc::SIG_DFL {
            set.sa_sigaction = nothing as *const () as libc::sighandler_t;
            set.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGXFSZ, &raw const set, std::ptr::null_mut());
        }
    }
}

/// The limit to give to the traced command; `None`: it was not changed. To be asked before forking.
pub(super) fn inherited() -> Option<libc::rlimit> {
    INHERITED.get().copied()
}
