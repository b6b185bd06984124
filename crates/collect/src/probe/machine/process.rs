//! What `/proc` says of one process, as far as it decides whether the process can be traced.

use crate::probe::hold;
use anyhow::{Context, Result, bail};
use std::fs;

/// `PF_KTHREAD` in the kernel's `sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Fields of `/proc/PID/stat` between the thread's name and the flags.
const FIELDS_BEFORE_FLAGS: usize = 6;

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its name; not escaped.
    pub comm: String,
    /// It is one of the kernel's own.
    pub kernel_thread: bool,
    /// Its parent has not asked for its status yet.
    pub ended: bool,
    /// Its system calls are filtered.
    pub seccomp: bool,
    /// Its return addresses are kept twice.
    pub shadow_stack: bool,
    /// Who follows it, as a debugger does.
    pub traced_by: Option<u32>,
    /// Its number in its own PID namespace, where that differs.
    pub inner_pid: Option<u32>,
    /// The file system view of its own.
    pub mount_namespace_differs: bool,
}

/// Whether that is the number of a process.
///
/// # Errors
/// It is one of its threads'; whose.
pub fn check_is_process(pid: u32) -> Result<()> {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    check_leads(pid, &String::from_utf8_lossy(&status))
}

fn check_leads(pid: u32, status: &str) -> Result<()> {
    let owner = number(status, "Tgid").unwrap_or(pid);
    if owner != pid {
        bail!("no process {pid}: it is a thread of process {owner}\nhint: -p {owner}");
    }
    Ok(())
}

/// Reads process `pid`.
///
/// # Errors
/// When there is none, or when the number is that of a thread.
pub(super) fn read(pid: u32) -> Result<Process> {
    let path = format!("/proc/{pid}/status");
    let status = match fs::read(&path) {
        Ok(status) => String::from_utf8_lossy(&status).into_owned(),
        Err(error) if is_gone(&error) => {
            bail!("no process {pid}: it has ended, or lives in another PID namespace\nhint: pgrep -a python")
        }
        Err(error) => return Err(error).with_context(|| format!("failed to read {path}")),
    };
    check_leads(pid, &status)?;
    Ok(Process {
        comm: comm(pid),
        mount_namespace_differs: mount_namespace_differs(pid),
        ..of_texts(pid, &status, &fs::read(format!("/proc/{pid}/stat")).unwrap_or_default())
    })
}

fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// What the texts of its `status` and `stat` say.
#[must_use]
pub fn of_texts(pid: u32, status: &str, stat: &[u8]) -> Process {
    Process {
        kernel_thread: is_kernel_thread(stat),
        ..from_status(pid, status)
    }
}

fn from_status(pid: u32, status: &str) -> Process {
    let inner_pid = value(status, "NSpid").and_then(|pids| pids.split_whitespace().last()?.parse().ok());
    Process {
        ended: value(status, "State").is_some_and(|state| state.starts_with(['Z', 'X'])),
        seccomp: number(status, "Seccomp").is_some_and(|mode| mode != 0),
        shadow_stack: value(status, "x86_Thread_features").is_some_and(|features| features.contains("shstk")),
        traced_by: number(status, "TracerPid").filter(|tracer| *tracer != 0),
        inner_pid: inner_pid.filter(|inner| *inner != pid),
        ..Process::default()
    }
}

fn value<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let after = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    status.lines().find_map(after).map(str::trim)
}

fn number(status: &str, name: &str) -> Option<u32> {
    value(status, name)?.parse().ok()
}

/// What is to be known where a debugger follows a process that is traced; `None`: nobody follows it, or another gpuscope
/// holds it for a moment.
#[must_use]
pub fn debugger_of(pid: u32) -> Option<String> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let process = from_status(pid, &String::from_utf8_lossy(&status));
    debugger(pid, process.traced_by?)
}

/// As [`debugger_of`], where it is known who follows.
pub(super) fn debugger(pid: u32, traced_by: u32) -> Option<String> {
    let tracer = comm(traced_by);
    (tracer.as_bytes() != hold::NAME.to_bytes()).then(|| {
        format!(
            "process {pid} ({}) is followed by {tracer} ({traced_by}): where that has a breakpoint at a traced function, \
             whoever leaves first breaks the other's: calls are missed, or the program ends with SIGTRAP; \
             hint: remove such breakpoints, and end {tracer} before gpuscope",
            comm(pid)
        )
    })
}

fn comm(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    String::from_utf8_lossy(name).into_owned()
}

/// The name in `stat` may hold spaces and parentheses; the last parenthesis ends it.
fn is_kernel_thread(stat: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stat);
    let flags = text
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(FIELDS_BEFORE_FLAGS));
    flags
        .and_then(|flags| flags.parse::<u64>().ok())
        .is_some_and(|flags| flags & KERNEL_THREAD != 0)
}

/// A namespace that may not be looked at counts as the same.
fn mount_namespace_differs(pid: u32) -> bool {
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let other = fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    other.is_some() && other != own
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn a_kernel_thread_is_known_by_its_flags() {
        assert!(is_kernel_thread(b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0"));
        assert!(!is_kernel_thread(b"9 (a) S 0 0 0 0) R 1 9 9 0 -1 4194560 0 0"));
        assert!(!is_kernel_thread(b""));
    }

    #[test]
    fn a_status_is_read() {
        let status = "Name:\tx\nTracerPid:\t9\nState:\tZ (zombie)\nTgid:\t40\nNSpid:\t40\t7\nSeccomp:\t2\nx86_Thread_features:\tshstk \n";
        let process = from_status(40, status);
        assert!(process.ended && process.seccomp && process.shadow_stack);
        assert_eq!((process.inner_pid, process.traced_by), (Some(7), Some(9)));
        let plain = from_status(
            40,
            "State:\tS (sleeping)\nTracerPid:\t0\nNSpid:\t40\nSeccomp:\t0\nx86_Thread_features:\t\n",
        );
        assert_eq!(plain, Process::default());
    }

    #[test]
    fn who_holds_for_a_gpuscope_is_no_debugger() {
        let folder = tempfile::tempdir().expect("a folder");
        let holder = folder.path().join(hold::NAME.to_str().expect("UTF-8"));
        std::os::unix::fs::symlink("/bin/sleep", &holder).expect("a link");
        for (program, is_debugger) in [(holder.as_path(), false), (Path::new("/bin/sleep"), true)] {
            let mut follower = Command::new(program).arg("60").spawn().expect("it starts");
            let name = program.file_name().and_then(|name| name.to_str()).expect("a name");
            // it goes by its parent's until the kernel has set up all of it
            while comm(follower.id()) != name {
                std::thread::yield_now();
            }
            assert_eq!(debugger(std::process::id(), follower.id()).is_some(), is_debugger);
            follower.kill().expect("a child");
            follower.wait().expect("a child");
        }
    }

    #[test]
    fn this_process_is_found_and_an_impossible_one_is_not() {
        let own = read(std::process::id()).expect("this process");
        assert!(!own.comm.is_empty() && !own.kernel_thread && !own.mount_namespace_differs);
        let error = read(u32::MAX).expect_err("no such process").to_string();
        assert!(error.starts_with("no process 4294967295: "), "{error}");
    }
}
