//! The thread that lets processes in: each gets memory of its own, at once, as CUDA's start waits for it.

use super::process::{Process, Report, Source, Wish};
use super::shared::{ACTIVITY_MAGIC, ActivityMessage, ActivityRecord};
use crate::engine::poll::{event_descriptor, ring, wait_readable};
use crate::inside::socket::{Caller, Listener};
use crate::refusal::NO_THREAD;
use anyhow::{Context, Result};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Processes that are let in; each takes some 17 MiB at most while it runs.
const MOST_PROCESSES: usize = 1024;

/// What both threads use.
pub(super) struct Shared {
    processes: Mutex<Vec<Process>>,
    /// Whose processes may come.
    users: Mutex<Vec<u32>>,
    wish: Wish,
    closing: AtomicBool,
    elbow: File,
}

/// The thread; it ends when this is dropped.
pub(super) struct Meeting {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Shared {
    pub(super) fn new(wish: Wish) -> Result<Shared> {
        Ok(Shared {
            processes: Mutex::default(),
            // SAFETY: asks the kernel, and cannot fail
            users: Mutex::new(vec![unsafe { libc::geteuid() }]),
            wish,
            closing: AtomicBool::new(false),
            elbow: event_descriptor()?,
        })
    }

    fn processes(&self) -> MutexGuard<'_, Vec<Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes of this user may come, too.
    pub(super) fn admit(&self, user: u32) {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).push(user);
    }

    pub(super) fn drain(&self, take: &mut dyn FnMut(&Source, &ActivityRecord)) {
        self.processes().iter_mut().for_each(|process| process.drain(take));
    }

    pub(super) fn reports(&self) -> Vec<Report> {
        self.processes().iter().map(Process::report).collect()
    }

    /// One that we have called.
    pub(super) fn add(&self, caller: Caller) -> Result<()> {
        let process = Process::meet(caller, self.wish)?;
        self.processes().push(process);
        Ok(())
    }

    /// A process begins, if it is one of those that are expected.
    fn let_in(&self, caller: Caller, message: &ActivityMessage) {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let mut processes = self.processes();
        let is_welcome = message.magic == ACTIVITY_MAGIC && users.contains(&caller.uid);
        if !is_welcome || processes.len() >= MOST_PROCESSES {
            return;
        }
        if let Ok(process) = Process::meet(caller, self.wish) {
            processes.push(process);
        }
    }
}

impl Meeting {
    pub(super) fn start(shared: Arc<Shared>, listener: Listener) -> Result<Meeting> {
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("gpuscope-cupti".to_owned())
            .spawn(move || meet(&seen, &listener))
            .context(NO_THREAD)?;
        Ok(Meeting {
            shared,
            thread: Some(thread),
        })
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        ring(&self.shared.elbow);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn meet(shared: &Shared, listener: &Listener) {
    while !shared.closing.load(Ordering::SeqCst) {
        wait_readable([listener.fd(), shared.elbow.as_raw_fd()], -1);
        while let Some((caller, message)) = listener.accept::<ActivityMessage>() {
            if let Some(message) = message {
                shared.let_in(caller, &message);
            }
        }
    }
}
