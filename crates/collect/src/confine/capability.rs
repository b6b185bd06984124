//! Capabilities of a thread, by number as the kernel has them.

/// One of those that somebody here needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// Writing where only others may.
    DacOverride = 1,
    DacReadSearch = 2,
    /// Writing of files that belong to others, and giving them to others.
    Chown = 0,
    Fowner = 3,
    /// Signals to processes of others.
    Kill = 5,
    SetGid = 6,
    SetUid = 7,
    SysPtrace = 19,
    SysAdmin = 21,
    SysResource = 24,
    Lease = 28,
    Perfmon = 38,
    Bpf = 39,
    CheckpointRestore = 40,
}

impl Capability {
    /// Whether this thread may have it.
    #[must_use]
    pub fn is_held(self) -> bool {
        read().is_some_and(|had| had >> self as u32 & 1 == 1)
    }
}

/// Of `struct __user_cap_header_struct`, with 64 bits of capabilities in two halves.
const VERSION_3: u32 = 0x2008_0522;
/// More than any kernel knows.
const MOST: u32 = 63;

#[repr(C)]
struct Header {
    version: u32,
    /// 0: this thread.
    pid: i32,
}

#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Leaves this thread only `kept`, of those that it has; none can be had again, also not by running a program.
pub(super) fn keep(kept: &[Capability]) {
    let mask = kept.iter().fold(0u64, |mask, one| mask | 1 << *one as u32);
    // as long as it may: that takes a capability itself
    for number in (0..=MOST).filter(|number| mask >> number & 1 == 0) {
        // SAFETY: takes a right from this thread; fails where the kernel knows no such number, or without CAP_SETPCAP
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
    }
    // SAFETY: as above
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    if let Some(had) = read() {
        write(had & mask);
    }
}

/// What this thread may have; `None`: the kernel does not tell.
fn read() -> Option<u64> {
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut halves = [Half::default(); 2];
    // SAFETY: a header and two halves of ours, as this version has them
    let failed = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) };
    (failed == 0).then(|| u64::from(halves[1].permitted) << 32 | u64::from(halves[0].permitted))
}

fn write(mask: u64) {
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let half = |bits: u64| Half {
        effective: (bits & u64::from(u32::MAX)) as u32,
        permitted: (bits & u64::from(u32::MAX)) as u32,
        inheritable: 0,
    };
    let halves = [half(mask), half(mask >> 32)];
    // SAFETY: reads a header and two halves of ours; takes rights from this thread
    unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) };
}
