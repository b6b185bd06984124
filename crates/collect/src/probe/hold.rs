//! Holds single threads of the traced program for the moment in which probes are put in place.
//!
//! Owns a small process of its own that does this with ptrace. It is another process so that no end of ours
//! leaves a thread held: when we are killed it lets go at once, and no thread stands longer than two seconds
//! (unless somebody wanted that), whatever we do. When it dies itself the kernel lets go. A thread that a debugger already follows cannot be
//! held. What is done meanwhile is [`super::gate`]'s business.

#[cfg(not(target_arch = "aarch64"))]
mod resume;

use crate::engine::Hold;
use crate::engine::poll::wait_readable;
use crate::foreign::{longest_hold, worker};
use crate::refusal::NO_PROCESS;
use anyhow::{Context, Result};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

/// Of the holding process, in lists of processes.
pub(super) const NAME: &CStr = c"gpuscope-hold";
/// How soon a thread is looked at again that is to go on but has not stopped yet.
const RETRY: Duration = Duration::from_millis(1);
const MOST_HELD: usize = 256;

/// What we ask of the holding process; where it cannot, it answers with a negative errno.
#[derive(Clone, Copy)]
enum Order {
    /// A thread; the answer is the number of its hold.
    Hold = 1,
    /// A hold, by its number.
    LetGo = 2,
}

/// Answers and errors share one number.
const MOST: u32 = i32::MAX as u32;

/// Who is held again later is so by another one.
fn next(hold: Hold) -> Hold {
    Hold(hold.0 % MOST + 1)
}

/// The holding process, seen from ours.
pub struct Holder {
    channel: File,
    pid: libc::pid_t,
}

impl Holder {
    /// Whether a thread that is held within a system call goes on with it: aarch64 does not say any more which it was, and
    /// threads are held at their dynamic linker alone.
    pub const RESUMES_CALLS: bool = cfg!(not(target_arch = "aarch64"));

    /// Starts the holding process. To be called while this process has a single thread.
    ///
    /// # Errors
    /// No process or channel could be made.
    pub fn fork() -> Result<Holder> {
        let (ours, theirs) = channel().context("failed to make a channel")?;
        let longest = longest_hold();
        // SAFETY: the child only makes system calls and touches its own memory, and never returns
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()).context(NO_PROCESS),
            0 => hold_for(theirs, longest),
            pid => Ok(Holder { channel: ours, pid }),
        }
    }

    /// Asks for thread `tid` to stop before its next instruction in user space. It stops by itself once it is
    /// out of the kernel; nothing waits for that here. It goes on by itself two seconds later; to hold it once more
    /// meanwhile does not change that.
    pub fn hold(&mut self, tid: u32) -> Option<Hold> {
        self.order(Order::Hold, tid).map(Hold)
    }

    /// Lets a thread go on, when nobody else wants it held; false: it went on by itself some time ago.
    pub fn let_go(&mut self, hold: Hold) -> bool {
        self.order(Order::LetGo, hold.0).is_some()
    }

    fn order(&mut self, order: Order, of: u32) -> Option<u32> {
        let mut answer = [0; 4];
        self.channel.write_all(&packet(order, of)).ok()?;
        self.channel.read_exact(&mut answer).ok()?;
        u32::try_from(i32::from_le_bytes(answer)).ok()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // SAFETY: a socket that we own; the end of its data is what ends the holding process
        unsafe {
            libc::shutdown(self.channel.as_raw_fd(), libc::SHUT_RDWR);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

fn packet(order: Order, of: u32) -> [u8; 8] {
    (u64::from(of) << 32 | order as u64).to_le_bytes()
}

fn channel() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for both descriptors, which nobody else owns
    unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

/// A thread that is followed.
struct HeldThread {
    hold: Hold,
    tid: libc::pid_t,
    /// Who wants it held; 0: it goes on as soon as it has stopped.
    holds: u32,
    deadline: Instant,
}

/// Those that are followed now, and the latest hold of all.
struct Held {
    threads: Vec<HeldThread>,
    longest: Duration,
    latest: Hold,
}

/// The holding process: obeys until the channel closes.
fn hold_for(channel: File, longest: Duration) -> ! {
    step_aside(channel.as_raw_fd());
    let mut held = Held {
        threads: Vec::with_capacity(MOST_HELD),
        longest,
        latest: Hold(0),
    };
    loop {
        let wait = let_go_of_unwanted(&mut held.threads);
        let millis = wait.map_or(-1, |wait| wait.as_millis() as i32 + 1);
        if !wait_readable([channel.as_raw_fd()], millis) {
            continue;
        }
        let mut bytes = [0; 8];
        let came = (&channel).read(&mut bytes);
        if !matches!(came, Ok(8)) {
            break;
        }
        let answer = held.obey(u64::from_le_bytes(bytes));
        if (&channel).write_all(&answer.to_le_bytes()).is_err() {
            break;
        }
    }
    for thread in held.threads {
        detached(thread.tid, 0);
    }
    // SAFETY: ends this process without running what the parent has registered for its own end
    unsafe { libc::_exit(0) }
}

/// Gives up everything inherited but the channel, and does not end with a terminal's Ctrl-C.
fn step_aside(channel: i32) {
    // SAFETY: plain system calls; the descriptors closed here are not used by this process
    unsafe {
        worker::ignore_ends_from_outside();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        let (below, above) = (channel as libc::c_uint, channel as libc::c_uint);
        if below > 0 {
            libc::syscall(libc::SYS_close_range, 0, below - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, above + 1, libc::c_uint::MAX, 0);
    }
}

/// Lets threads go that nobody wants held, or that are overdue; when to look again.
fn let_go_of_unwanted(held: &mut Vec<HeldThread>) -> Option<Duration> {
    let now = Instant::now();
    held.retain(|thread| {
        let wanted = thread.holds > 0 && thread.deadline > now;
        wanted || !detached(thread.tid, libc::WNOHANG)
    });
    let next = |thread: &HeldThread| match thread.deadline.checked_duration_since(now) {
        Some(rest) if thread.holds > 0 => rest.max(RETRY),
        _ => RETRY,
    };
    held.iter().map(next).min()
}

impl Held {
    /// Does what a packet says: the number of a hold, 0, or the reason why not.
    fn obey(&mut self, packet: u64) -> i32 {
        let of = (packet >> 32) as u32;
        let done = match packet as u32 {
            1 => self.hold(of as libc::pid_t),
            2 => self.let_go(Hold(of)),
            _ => Err(libc::EINVAL),
        };
        done.unwrap_or_else(|errno| -errno)
    }

    fn hold(&mut self, tid: libc::pid_t) -> Result<i32, i32> {
        if let Some(known) = self.threads.iter_mut().find(|thread| thread.tid == tid) {
            known.holds += 1;
            return Ok(known.hold.0 as i32);
        }
        if self.threads.len() == MOST_HELD {
            return Err(libc::EAGAIN);
        }
        let deadline = Instant::now() + self.longest;
        seize(tid)?;
        self.latest = next(self.latest);
        self.threads.push(HeldThread {
            hold: self.latest,
            tid,
            holds: 1,
            deadline,
        });
        Ok(self.latest.0 as i32)
    }

    fn let_go(&mut self, hold: Hold) -> Result<i32, i32> {
        let known = self.threads.iter_mut().find(|thread| thread.hold == hold);
        let thread = known.ok_or(libc::ESRCH)?;
        thread.holds = thread.holds.saturating_sub(1);
        Ok(0)
    }
}

fn seize(tid: libc::pid_t) -> Result<(), i32> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: ptrace requests that touch no memory of this process
    unsafe {
        if libc::ptrace(libc::PTRACE_SEIZE, tid, none, none) != 0 {
            return Err(*libc::__errno_location());
        }
        if libc::ptrace(libc::PTRACE_INTERRUPT, tid, none, none) != 0 {
            let error = *libc::__errno_location();
            detached(tid, 0);
            return Err(error);
        }
    }
    Ok(())
}

/// Ends the stop of a thread; false: it has not stopped yet. A signal that arrived meanwhile is passed on.
fn detached(tid: libc::pid_t, wait: i32) -> bool {
    let mut status = 0;
    // SAFETY: waits for a thread that we follow, then ends that; a thread that has ended is reaped
    unsafe {
        loop {
            match libc::waitpid(tid, &raw mut status, libc::__WALL | wait) {
                0 => return false,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                -1 => return true,
                _ => break,
            }
        }
        if libc::WIFSTOPPED(status) {
            let of_ptrace = status >> 16 != 0;
            let signal = if of_ptrace { 0 } else { libc::WSTOPSIG(status) };
            if of_ptrace {
                #[cfg(not(target_arch = "aarch64"))]
                resume::resume_call(tid);
            }
            let none = std::ptr::null_mut::<libc::c_void>();
            libc::ptrace(libc::PTRACE_DETACH, tid, none, signal as *mut libc::c_void);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn state(pid: u32) -> String {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("State:"));
        line.unwrap_or("State: gone").to_owned()
    }

    fn wait_for(pid: u32, wanted: char) {
        while !state(pid).contains(&format!("\t{wanted}")) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A process that has stopped because it is held.
    fn held_sleeper() -> (Holder, Child, Hold) {
        let mut holder = Holder::fork().unwrap();
        let child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
        let hold = holder.hold(child.id()).unwrap();
        wait_for(child.id(), 't');
        (holder, child, hold)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_held_thread_stands_still_until_it_is_let_go() {
        let (mut holder, child, hold) = held_sleeper();
        assert!(holder.let_go(hold));
        wait_for(child.id(), 'S');
        end(child);
    }

    #[test]
    fn the_end_of_the_holding_process_lets_everything_go() {
        let (holder, child, _) = held_sleeper();
        drop(holder);
        wait_for(child.id(), 'S');
        end(child);
    }

    #[test]
    fn a_thread_goes_on_by_itself_however_often_it_was_to_be_held() {
        let (mut holder, child, hold) = held_sleeper();
        while state(child.id()).contains("\tt") {
            let again = holder.hold(child.id()).unwrap();
            if again != hold {
                break; // it went on, and stands again
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(!holder.let_go(hold));
        end(child);
    }

    #[test]
    fn a_later_hold_is_another_one() {
        let (mut holder, child, hold) = held_sleeper();
        wait_for(child.id(), 'S');
        let later = holder.hold(child.id()).unwrap();
        wait_for(child.id(), 't');
        assert!(!holder.let_go(hold));
        assert!(state(child.id()).contains("\tt"));
        assert!(holder.let_go(later));
        wait_for(child.id(), 'S');
        end(child);
    }

    #[test]
    fn a_thread_that_does_not_exist_or_is_not_held_is_refused() {
        let mut holder = Holder::fork().unwrap();
        assert_eq!(holder.hold(0x3fff_fff0), None);
        assert!(!holder.let_go(Hold(1)));
    }

    #[test]
    fn a_held_process_that_is_killed_ends() {
        let (mut holder, mut child, hold) = held_sleeper();
        child.kill().unwrap();
        assert!(holder.let_go(hold));
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn numbers_of_holds_come_round_and_are_no_errors() {
        assert_eq!(next(Hold(0)), Hold(1));
        assert_eq!(next(Hold(MOST)), Hold(1));
    }
}
