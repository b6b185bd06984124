//! A thread that was stopped within a system call goes on with it.
//!
//! Most calls the kernel resumes itself. Some end with EINTR whatever stopped their thread: signal(7), "Interruption of system
//! calls and library functions by stop signals". Programs do not expect that of a signal that nobody sent, so these calls
//! are made again, from the beginning. Owns which these are: calls that have done nothing yet when they say EINTR.

use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;

const CALLS: [libc::c_long; 19] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_io_getevents,
    libc::SYS_mq_timedreceive,
];
/// Bytes of the instruction `syscall`.
const INSTRUCTION: u64 = 2;
/// The code segment of 64-bit programs.
const CODE_64: u64 = 0x33;
/// Signals that do nothing unless the program has a handler: SIGCHLD, SIGCONT, SIGURG, SIGWINCH.
const IDLE_SIGNALS: u64 = bit(libc::SIGCHLD) | bit(libc::SIGCONT) | bit(libc::SIGURG) | bit(libc::SIGWINCH);

const fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// Has stopped thread `tid` make its system call again, where only the stop has ended it.
pub(super) fn resume_call(tid: libc::pid_t) {
    let Some(mut registers) = registers(tid) else { return };
    let is_known = CALLS.iter().any(|call| *call as u64 == registers.orig_rax);
    let is_interrupted = registers.rax == (-libc::EINTR) as i64 as u64;
    if registers.cs != CODE_64 || !is_known || !is_interrupted || awaits_signal(tid) {
        return;
    }
    registers.rax = registers.orig_rax;
    registers.rip -= INSTRUCTION;
    // it is in no system call any more
    registers.orig_rax = u64::MAX;
    // SAFETY: the request reads a whole structure of that type
    unsafe {
        libc::ptrace(
            libc::PTRACE_SETREGS,
            tid,
            std::ptr::null_mut::<libc::c_void>(),
            (&raw mut registers).cast::<libc::c_void>(),
        );
    }
}

fn registers(tid: libc::pid_t) -> Option<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
    let none = std::ptr::null_mut::<libc::c_void>();
    let to = registers.as_mut_ptr().cast::<libc::c_void>();
    // SAFETY: the request fills a whole structure of that type when it succeeds
    unsafe { (libc::ptrace(libc::PTRACE_GETREGS, tid, none, to) == 0).then(|| registers.assume_init()) }
}

/// Whether a signal that does something is about to be delivered: then that has ended the call, too.
fn awaits_signal(tid: libc::pid_t) -> bool {
    let mut text = String::new();
    let read = File::open(format!("/proc/{tid}/status")).and_then(|mut file| file.read_to_string(&mut text));
    if read.is_err() {
        return true;
    }
    let [own, shared, blocked, ignored, caught] =
        ["SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"].map(|name| signals(&text, name));
    (own | shared) & !blocked & !ignored & !(IDLE_SIGNALS & !caught) != 0
}

fn signals(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::Holder;
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant};

    /// What a child ends with that makes `call`, while it is held for a moment in it.
    fn held_within(call: impl Fn() -> i32, disturb: Option<i32>) -> i32 {
        let mut holder = Holder::fork().unwrap();
        // SAFETY: the child makes system calls only, and never returns
        let pid = match unsafe { libc::fork() } {
            0 => unsafe { libc::_exit(call()) },
            pid => pid,
        };
        until_state(pid, 'S');
        let hold = holder.hold(pid as u32).unwrap();
        until_state(pid, 't');
        if let Some(signal) = disturb {
            // SAFETY: plain numbers; the child has not been waited for
            assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        }
        assert!(holder.let_go(hold));
        let mut status = 0;
        // SAFETY: waits for a child of this process
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        libc::WEXITSTATUS(status)
    }

    fn until_state(pid: i32, wanted: char) {
        let end = Instant::now() + Duration::from_secs(10);
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        while !state().contains(&format!(") {wanted} ")) {
            assert!(Instant::now() < end, "{}", state());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// 0 where it ended by itself, else the error.
    fn error_of(result: i64, expected: i32) -> i32 {
        // SAFETY: the address of this thread's own error number
        let error = if result < 0 {
            unsafe { *libc::__errno_location() }
        } else {
            0
        };
        i32::from(error != expected) * error
    }

    static MOMENT: libc::timespec = libc::timespec {
        tv_sec: 0,
        tv_nsec: 300_000_000,
    };

    // SAFETY of the calls: they are given memory of their own, which outlives them
    fn waits_for_events() -> i32 {
        unsafe {
            let epoll = libc::epoll_create1(0);
            let mut event: libc::epoll_event = std::mem::zeroed();
            error_of(libc::epoll_wait(epoll, &raw mut event, 1, 300).into(), 0)
        }
    }

    fn waits_for_a_semaphore() -> i32 {
        unsafe {
            let id = libc::semget(libc::IPC_PRIVATE, 1, 0o600);
            let mut take = libc::sembuf {
                sem_num: 0,
                sem_op: -1,
                sem_flg: 0,
            };
            let result = libc::syscall(libc::SYS_semtimedop, id, &raw mut take, 1, &raw const MOMENT);
            let error = error_of(result, libc::EAGAIN);
            libc::semctl(id, 0, libc::IPC_RMID);
            error
        }
    }

    fn waits_for_a_signal() -> i32 {
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut set, libc::SIGUSR2);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            let result = libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const MOMENT);
            error_of(result.into(), libc::EAGAIN)
        }
    }

    fn waits_for_a_message() -> i32 {
        let (own, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        own.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut byte = 0u8;
        unsafe {
            let result = libc::recv(own.as_raw_fd(), (&raw mut byte).cast(), 1, 0);
            error_of(result as i64, libc::EAGAIN)
        }
    }

    type Case = (&'static str, fn() -> i32);

    #[test]
    fn a_call_with_a_timeout_does_not_notice_that_its_thread_was_held() {
        let calls: [Case; 4] = [
            ("epoll_wait", waits_for_events),
            ("semtimedop", waits_for_a_semaphore),
            ("sigtimedwait", waits_for_a_signal),
            ("recv", waits_for_a_message),
        ];
        for (name, call) in calls {
            assert_eq!(held_within(call, None), 0, "{name}");
        }
    }

    extern "C" fn noted(_: libc::c_int) {}

    fn waits_with_a_handler() -> i32 {
        // SAFETY: the handler does nothing
        unsafe { libc::signal(libc::SIGUSR1, noted as *const () as libc::sighandler_t) };
        waits_for_events()
    }

    #[test]
    fn a_signal_that_somebody_did_send_ends_the_call_as_ever() {
        assert_eq!(held_within(waits_with_a_handler, Some(libc::SIGUSR1)), libc::EINTR);
        assert_eq!(held_within(waits_with_a_handler, Some(libc::SIGWINCH)), 0);
    }
}
