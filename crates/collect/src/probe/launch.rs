//! Starts the command of `run`, held back until the probes are in place, as the user that it is to run as.

use super::environment::Environment;
use super::limits;
use crate::refusal::{NO_PROCESS, NO_THREAD};
use crate::user::User;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;

/// Why a command could not be started; `run` exits with the status that shells use.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{command:?}: command not found\nhint: give a path, or check $PATH")]
    NotFound { command: OsString },
    #[error("{command:?} cannot be executed: {source}")]
    NotExecutable { command: OsString, source: io::Error },
    #[error("failed to start {command:?}: {source}")]
    Other { command: OsString, source: io::Error },
}

impl StartError {
    /// What `source`, the answer to its start, says of a command.
    #[must_use]
    pub fn of(command: OsString, source: io::Error) -> StartError {
        match source.kind() {
            io::ErrorKind::NotFound => StartError::NotFound { command },
            io::ErrorKind::PermissionDenied => StartError::NotExecutable { command, source },
            _ if source.raw_os_error() == Some(libc::ENOEXEC) => StartError::NotExecutable { command, source },
            _ => StartError::Other { command, source },
        }
    }

    /// 127, 126 or 125.
    pub fn exit_status(&self) -> u8 {
        match self {
            StartError::NotFound { .. } => 127,
            StartError::NotExecutable { .. } => 126,
            StartError::Other { .. } => 125,
        }
    }
}

/// Somebody else than gpuscope, as whom a command runs.
#[derive(Clone, Debug)]
pub struct Runner {
    pub user: User,
    pub environment: Environment,
}

/// A process that exists but has not yet executed its command.
pub struct Held {
    pid: u32,
    gate: File,
    starter: JoinHandle<io::Result<Child>>,
    command: OsString,
}

impl Held {
    /// Forks; the child waits at a gate before it becomes `runner`, if there is one, and calls `execve`. `beside`: variables that
    /// its environment gets.
    ///
    /// # Errors
    /// No process or pipe could be made.
    pub fn fork(command: &[OsString], runner: Option<Runner>, beside: &[(OsString, OsString)]) -> Result<Held> {
        let Some((program, arguments)) = command.split_first() else {
            bail!("no command was given")
        };
        let (gate_read, gate_write) = pipe().context("failed to make a pipe")?;
        let (pid_read, pid_write) = pipe().context("failed to make a pipe")?;
        let mut child = Command::new(program);
        child.args(arguments);
        if let Some(runner) = &runner {
            child.env_clear().envs(&runner.environment);
        }
        child.envs(beside.iter().cloned());
        let (gate, pid, other) = (gate_read.as_raw_fd(), pid_write.as_raw_fd(), gate_write.as_raw_fd());
        let limit = limits::inherited();
        // SAFETY: the closure only makes async-signal-safe system calls, on descriptors that outlive it and on memory of
        // its own
        unsafe {
            child.pre_exec(move || {
                if let Some(limit) = limit {
                    libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
                }
                wait_at_gate(gate, pid, other)?;
                runner.as_ref().map_or(Ok(()), |runner| become_user(&runner.user))
            })
        };
        let start = move || {
            let started = child.spawn();
            drop((gate_read, pid_write));
            started
        };
        let starter = std::thread::Builder::new().spawn(start);
        let starter = starter.context(NO_THREAD)?;
        let mut bytes = [0; 4];
        if let Err(cut) = File::from(pid_read).read_exact(&mut bytes) {
            let failed = starter.join().ok().and_then(Result::err);
            return Err(failed.unwrap_or(cut)).context(NO_PROCESS);
        }
        let held = Held {
            pid: u32::from_ne_bytes(bytes),
            gate: File::from(gate_write),
            starter,
            command: program.clone(),
        };
        Ok(held)
    }

    /// Its process id, which stays the same after `execve`.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it execute.
    ///
    /// # Errors
    /// The command does not exist or cannot be executed.
    pub fn release(mut self) -> Result<Child, StartError> {
        // a child that is already gone shows in the result of its start
        let _ = self.gate.write_all(&[1]);
        let started = self
            .starter
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the starting thread failed")));
        started.map_err(|source| StartError::of(self.command, source))
    }
}

fn wait_at_gate(gate: i32, pid: i32, other_end: i32) -> io::Result<()> {
    let mut byte = 0u8;
    // SAFETY: plain system calls on inherited descriptors and local memory
    unsafe {
        libc::close(other_end);
        let own = libc::getpid().to_ne_bytes();
        if libc::write(pid, own.as_ptr().cast(), own.len()) != own.len() as isize {
            return Err(io::Error::last_os_error());
        }
        loop {
            match libc::read(gate, (&raw mut byte).cast(), 1) {
                1 => return Ok(()),
                // the tracer is gone before it was ready: do not run untraced
                0 => libc::_exit(125),
                _ if *libc::__errno_location() == libc::EINTR => {}
                _ => return Err(io::Error::last_os_error()),
            }
        }
    }
}

/// Becomes `user` for good. The calls are those of the kernel: those of a C library would tell other threads, which a
/// forked child does not have.
fn become_user(user: &User) -> io::Result<()> {
    let (uid, gid) = (user.uid as libc::c_long, user.gid as libc::c_long);
    let groups = (user.groups.len() as libc::c_long, user.groups.as_ptr() as libc::c_long);
    asked(libc::SYS_setgroups, [groups.0, groups.1, 0])?;
    asked(libc::SYS_setresgid, [gid, gid, gid])?;
    asked(libc::SYS_setresuid, [uid, uid, uid])?;
    drop_capabilities()?;
    match uid != 0 && asked(libc::SYS_setresuid, [0, 0, 0]).is_ok() {
        true => Err(io::Error::from_raw_os_error(libc::EPERM)),
        false => Ok(()),
    }
}

/// Also those that a user without any could hand on.
fn drop_capabilities() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3`, of this process; twice effective, permitted, inheritable.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    const NONE: [u32; 6] = [0; 6];
    // older kernels have no ambient ones
    let _ = asked(
        libc::SYS_prctl,
        [libc::PR_CAP_AMBIENT as _, libc::PR_CAP_AMBIENT_CLEAR_ALL as _, 0],
    );
    let (mut header, none) = (HEADER, NONE);
    asked(
        libc::SYS_capset,
        [header.as_mut_ptr() as libc::c_long, none.as_ptr() as libc::c_long, 0],
    )
}

fn asked(call: libc::c_long, [one, two, three]: [libc::c_long; 3]) -> io::Result<()> {
    // SAFETY: the callers pass numbers, and pointers to memory that is theirs
    match unsafe { libc::syscall(call, one, two, three, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for both descriptors, which nobody else owns
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// The exit status that a shell would report: the command's own, or 128 + signal.
pub fn shell_status(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(125);
    u8::try_from(code & 0xff).unwrap_or(125)
}
