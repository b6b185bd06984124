//! Takes from a process what reading hostile bytes needs not: rights, files, memory, time, and most of the kernel.

use crate::processor::HERE;
use std::io;

/// Address space: what is read at most, several times over, and the program itself.
const MOST_MEMORY: u64 = 768 << 20;
/// Of a file that it makes, which is in memory.
const MOST_WRITTEN: u64 = 128 << 20;
const MOST_FILES: u64 = 64;
/// Seconds of CPU, after which it ends.
const MOST_CPU: u64 = 120;
/// User and group `nobody`.
const NOBODY: libc::gid_t = 65534;

/// Confines this process, for good. What cannot be taken away (a kernel without seccomp) stays.
pub(crate) fn confine() {
    limit(libc::RLIMIT_AS, MOST_MEMORY);
    limit(libc::RLIMIT_FSIZE, MOST_WRITTEN);
    limit(libc::RLIMIT_NOFILE, MOST_FILES);
    limit(libc::RLIMIT_CPU, MOST_CPU);
    limit(libc::RLIMIT_CORE, 0);
    give_up_rights();
    // where the kernel has no filters the rest has to do
    let _ = filter();
}

fn limit(what: libc::__rlimit_resource_t, most: u64) {
    let limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: the structure lives until the call is over
    unsafe { libc::setrlimit(what, &raw const limit) };
}

/// `struct __user_cap_header_struct` and `__user_cap_data_struct` of `linux/capability.h`, version 3.
#[repr(C)]
struct Whose {
    version: u32,
    pid: i32,
}

fn give_up_rights() {
    const VERSION: u32 = 0x2008_0522;
    let whose = Whose {
        version: VERSION,
        pid: 0,
    };
    let none = [[0_u32; 3]; 2];
    // SAFETY: plain system calls; both structures are as large as their version says
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if libc::geteuid() == 0 {
            libc::setgroups(0, std::ptr::null());
            libc::setresgid(NOBODY, NOBODY, NOBODY);
            libc::setresuid(NOBODY, NOBODY, NOBODY);
        }
        libc::syscall(libc::SYS_capset, &raw const whose, none.as_ptr());
    }
}

/// What naming needs of the kernel. Files can only be opened for reading.
const ALLOWED: [libc::c_long; 38] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_memfd_create,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_newfstatat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_write,
];

/// Older forms of two of them, which aarch64 does not have.
#[cfg(target_arch = "x86_64")]
const OLD: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_readlink];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[libc::c_long] = &[];

fn filter() -> io::Result<()> {
    let program = program();
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the program lives until the call is over, which copies it
    let refused = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
    match refused {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const THIRD_ARGUMENT: u32 = 32;

fn program() -> Vec<libc::sock_filter> {
    let load = |at| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at);
    let is = |value, skipped| jump(libc::BPF_JEQ, value, 0, skipped);
    let give = |verdict| statement(libc::BPF_RET | libc::BPF_K, verdict);
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program = vec![
        load(ARCHITECTURE),
        jump(libc::BPF_JEQ, HERE.audit, 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    for number in ALLOWED.iter().chain(OLD) {
        program.extend([is(*number as u32, 1), give(libc::SECCOMP_RET_ALLOW)]);
    }
    let writes = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;
    program.extend([
        is(libc::SYS_openat as u32, 4),
        load(THIRD_ARGUMENT),
        jump(libc::BPF_JSET, writes, 1, 0),
        give(libc::SECCOMP_RET_ALLOW),
        give(refuse),
        give(refuse),
    ]);
    program
}

fn statement(code: u32, value: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: value,
    }
}

fn jump(how: u32, value: u32, so: u8, otherwise: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: (libc::BPF_JMP | how | libc::BPF_K) as u16,
        jt: so,
        jf: otherwise,
        k: value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `check` in a confined copy of this process; whether it held.
    fn confined(check: fn() -> bool) -> bool {
        // SAFETY: the copy makes system calls and ends
        unsafe {
            match libc::fork() {
                0 => {
                    confine();
                    libc::_exit(i32::from(!check()))
                }
                pid => {
                    let mut status = 0;
                    libc::waitpid(pid, &raw mut status, 0);
                    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
                }
            }
        }
    }

    fn refused(result: libc::c_long) -> bool {
        result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }

    #[test]
    fn a_confined_process_reads_and_does_nothing_else() {
        // SAFETY: plain system calls with constant arguments
        assert!(confined(|| unsafe {
            let path = c"/proc/self/status".as_ptr();
            let open = |flags: i32| libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags);
            open(libc::O_RDONLY) >= 0
                && refused(open(libc::O_WRONLY))
                && refused(open(libc::O_RDONLY | libc::O_CREAT))
                && refused(libc::syscall(libc::SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0))
                && refused(libc::syscall(libc::SYS_ptrace, 0, 0, 0, 0))
                && refused(libc::syscall(
                    libc::SYS_unlinkat,
                    libc::AT_FDCWD,
                    c"/nowhere".as_ptr(),
                    0,
                ))
        }));
    }

    #[test]
    fn a_confined_process_has_no_rights_and_little_memory() {
        assert!(confined(|| {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            status.contains("CapEff:\t0000000000000000") && status.contains("CapPrm:\t0000000000000000")
        }));
        assert!(confined(|| Vec::<u8>::new().try_reserve(MOST_MEMORY as usize).is_err()));
    }
}
