//! A filter of system calls for threads that serve over descriptors which they have: what opens, connects, runs, looks into
//! processes or changes the machine is refused with EPERM.
//!
//! A list of what is refused, not of what is allowed: the C library's own calls change from version to version.

use crate::processor::HERE;
use libc::{sock_filter, sock_fprog};

/// Those with a number on every machine.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_chdir,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setresuid,
    libc::SYS_setgroups,
    libc::SYS_setrlimit,
    libc::SYS_prlimit64,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_personality,
    libc::SYS_memfd_create,
];

/// Older forms of the same, and x86's own.
#[cfg(target_arch = "x86_64")]
const OLD: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[libc::c_long] = &[];

/// Numbers from here on are x32's, the same calls once more.
#[cfg(target_arch = "x86_64")]
const FOREIGN: u32 = 0x4000_0000;
#[cfg(not(target_arch = "x86_64"))]
const FOREIGN: u32 = u32::MAX;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
/// In `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

fn step(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Goes over the refusal where the number is another.
fn program() -> Vec<sock_filter> {
    let refuse = step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0);
    let mut program = vec![
        step(LOAD, ARCHITECTURE, 0, 0),
        step(IF_EQUAL, HERE.audit, 1, 0),
        refuse,
        step(LOAD, NUMBER, 0, 0),
        step(IF_AT_LEAST, FOREIGN, 0, 1),
        refuse,
    ];
    for number in REFUSED.iter().chain(OLD) {
        program.extend([step(IF_EQUAL, *number as u32, 0, 1), refuse]);
    }
    program.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    program
}

/// Puts the filter before this thread's calls. It must have given up new privileges.
pub(super) fn deny_what_is_not_served() {
    let mut program = program();
    let filter = sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: reads a program of ours, of that length, which the kernel checks and copies
    unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0u32,
            &raw const filter,
        )
    };
}
