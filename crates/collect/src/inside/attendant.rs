//! The thread that attends to agents: it hears them at once, sees who ends, and keeps rings from running full.
//!
//! Owns when that is done; what a message does is `shared`'s business.

use super::alive::Alive;
use super::arena::{ARENA_MAGIC, Message};
use super::shared::Shared;
use super::socket::Listener;
use super::switches;
use crate::engine::poll::{empty, ring};
use crate::refusal::NO_THREAD;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it looks how full rings are, while a program runs, and otherwise; milliseconds.
const LOOK_MS: i32 = 5;
/// The same while one fills.
const LOOK_MS_WHILE_FILLING: i32 = 1;
/// Of a ring, in hundredths: it fills.
const FILLING: u64 = 5;
const IDLE_MS: i32 = 200;
/// Of a ring, in hundredths: the tracer is woken when it is as full.
const FULL_ENOUGH: u64 = 20;
/// How often those who stood by hear that we are there.
const BEAT: Duration = Duration::from_secs(1);
/// Threads that are looked at each second.
const MOST_THREADS: usize = 4096;

/// The thread; it ends when this is dropped.
pub(super) struct Attendant {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Attendant {
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(shared: Arc<Shared>, listener: Listener) -> Result<Attendant> {
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("gpuscope-agents".to_owned())
            .spawn(move || attend(&seen, &listener))
            .context(NO_THREAD)?;
        Ok(Attendant {
            shared,
            thread: Some(thread),
        })
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn attend(shared: &Shared, listener: &Listener) {
    let mut watched: HashMap<u32, Alive> = HashMap::new();
    let mut beaten = Instant::now();
    let mut look_ms = LOOK_MS;
    while !shared.is_closing() {
        let mut fds = vec![listener.fd(), shared.elbow.as_raw_fd()];
        fds.extend(watched.values().map(Alive::fd));
        let ready = wait(&fds, if watched.is_empty() { IDLE_MS } else { look_ms });
        empty(&shared.elbow);
        if ready.contains(&listener.fd()) {
            take_callers(shared, listener, &mut watched);
        }
        watched.retain(|pid, alive| {
            let may_have_ended = alive.fd() < 0 || ready.contains(&alive.fd());
            let has_ended = may_have_ended && alive.has_ended();
            if has_ended {
                shared.see_end(*pid);
            }
            !has_ended
        });
        if beaten.elapsed() >= BEAT {
            beaten = Instant::now();
            shared.members().beat(&shared.socket);
            shared.follow_programs();
            look_at_switches(shared);
        }
        shared.strangers();
        look_ms = match empty_full_rings(shared) {
            FILLING.. => LOOK_MS_WHILE_FILLING,
            _ => LOOK_MS,
        };
    }
}

/// Rings must not run full while the tracer is at work on what it has taken. How full the fullest was, in hundredths.
fn empty_full_rings(shared: &Shared) -> u64 {
    let mut members = shared.members();
    let fill = members.fill();
    if fill < FULL_ENOUGH {
        return fill;
    }
    if members.has_room() {
        members.take_in(shared.now());
    }
    drop(members);
    ring(&shared.full);
    fill
}

/// Asks the kernel while nobody waits for us.
fn look_at_switches(shared: &Shared) {
    let running = shared.members().switches.running();
    for (tgid, tid) in running.into_iter().take(MOST_THREADS) {
        let seen = switches::counts(tgid, tid);
        shared.members().switches.look(tid, seen);
    }
}

fn take_callers(shared: &Shared, listener: &Listener, watched: &mut HashMap<u32, Alive>) {
    while let Some((caller, message)) = listener.accept::<Message>() {
        let pid = caller.pid;
        // its number may have been another's, whose end comes first
        if watched.get(&pid).is_some_and(Alive::has_ended) {
            watched.remove(&pid);
            shared.see_end(pid);
            if caller.has_left() {
                continue;
            }
        }
        // it waits for an answer: later it may have ended, and another one have its number
        let alive = watched.remove(&pid).unwrap_or_else(|| Alive::of(pid));
        match message.filter(|message| message.magic == ARENA_MAGIC) {
            Some(message) => shared.hear(caller, &message),
            None => shared.members().malformed += 1,
        }
        if shared.members().targets.contains(&pid) {
            watched.insert(pid, alive);
        }
    }
}

/// Which of `fds` are readable, after `millis` at most.
fn wait(fds: &[RawFd], millis: i32) -> Vec<RawFd> {
    let polled = |fd: &RawFd| libc::pollfd {
        fd: *fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = fds.iter().map(polled).collect();
    // SAFETY: an array of initialised entries
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, millis) };
    let ready = polled.into_iter().filter(|entry| entry.fd >= 0 && entry.revents != 0);
    ready.map(|entry| entry.fd).collect()
}
