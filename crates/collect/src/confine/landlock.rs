//! Landlock: a thread opens no file, by no path, and makes no connection over TCP. Where the kernel does not have it,
//! nothing happens.
//!
//! Not for threads that look into other processes: the kernel lets one that is confined look at others of its kind alone.

/// Of `linux/landlock.h`, which libc does not have.
const CREATE_RULESET: libc::c_long = 444;
const RESTRICT_SELF: libc::c_long = 446;
const ASK_VERSION: u32 = 1;
/// Rights to files: bits that each version knows, from the first on.
const FILE_RIGHTS: [u32; 5] = [13, 14, 15, 15, 16];
/// Version from which on, and its two rights: to bind and to connect.
const NET_SINCE: i64 = 4;
const NET_RIGHTS: u64 = 3;
/// Version from which on, and its two: abstract sockets of others, and signals to others.
const SCOPE_SINCE: i64 = 6;
const SCOPES: u64 = 3;

#[repr(C)]
struct Ruleset {
    files: u64,
    net: u64,
    scopes: u64,
}

/// Takes an early version's length of it.
fn length(version: i64) -> usize {
    match version {
        ..NET_SINCE => 8,
        NET_SINCE..SCOPE_SINCE => 16,
        _ => 24,
    }
}

fn ruleset(version: i64) -> Ruleset {
    let known = usize::try_from(version).unwrap_or(1).clamp(1, FILE_RIGHTS.len());
    Ruleset {
        files: (1 << FILE_RIGHTS[known - 1]) - 1,
        net: NET_RIGHTS,
        scopes: SCOPES,
    }
}

/// Takes everything that Landlock knows from this thread. It must have given up new privileges.
pub(super) fn deny_all() {
    let nothing = std::ptr::null::<Ruleset>();
    // SAFETY: asks for a number
    let version = unsafe { libc::syscall(CREATE_RULESET, nothing, 0usize, ASK_VERSION) };
    if version < 1 {
        return;
    }
    let rules = ruleset(version);
    // SAFETY: reads as much of a structure of ours as this version knows; makes a descriptor, which is closed below
    let descriptor = unsafe { libc::syscall(CREATE_RULESET, &raw const rules, length(version), 0u32) };
    if descriptor >= 0 {
        // SAFETY: confines this thread; the descriptor is ours
        unsafe {
            libc::syscall(RESTRICT_SELF, descriptor, 0u32);
            libc::close(descriptor as i32);
        }
    }
}
