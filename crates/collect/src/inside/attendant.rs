//! The thread that attends to agents: it lets programs join at once, takes in those who wait for us, and sees who ends.

use super::arena::{ARENA_MAGIC, MESSAGE_CHILD, MESSAGE_LATE, MESSAGE_LIBRARIES, MESSAGE_PROGRAM, Message};
use super::members::{Fresh, Members};
use super::process::Process;
use super::run::Run;
use super::socket::{Caller, Listener};
use super::strangers::Strangers;
use super::switches;
use crate::clock::monotonic_ns;
use crate::discover;
use crate::engine::poll::{empty, event_descriptor, ring};
use crate::refusal::NO_THREAD;
use crate::wire::{self, COMM, Notice, OPEN, OpenCall};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
/// Whoever was within a hook when calls ceased to count is awaited for so long.
const LONGEST_COUNT: Duration = Duration::from_millis(200);
const COUNT_STEP: Duration = Duration::from_millis(1);
/// Threads that are looked at each second.
const MOST_THREADS: usize = 4096;
const MOST_ANCESTORS: usize = 64;

/// What both threads use.
pub(super) struct Shared {
    pub run: Run,
    members: Mutex<Members>,
    /// Whose processes may join, beside descendants of those that we watch.
    users: Mutex<Vec<u32>>,
    counting: AtomicBool,
    closing: AtomicBool,
    programs: AtomicU64,
    sequence: AtomicU64,
    /// Rung when something has arrived.
    pub bell: File,
    /// Rung when a ring fills up.
    pub full: File,
    elbow: File,
    /// Where we listen.
    pub socket: PathBuf,
    strangers: Mutex<Strangers>,
}

/// The thread; it ends when this is dropped.
pub(super) struct Attendant {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Shared {
    pub(super) fn new(run: Run, counting: bool, socket: PathBuf) -> Result<Shared> {
        Ok(Shared {
            run,
            members: Mutex::default(),
            // SAFETY: asks the kernel, and cannot fail
            users: Mutex::new(vec![unsafe { libc::geteuid() }]),
            counting: AtomicBool::new(counting),
            closing: AtomicBool::new(false),
            programs: AtomicU64::new(0),
            sequence: AtomicU64::new(0),
            bell: event_descriptor()?,
            full: event_descriptor()?,
            elbow: event_descriptor()?,
            socket,
            strangers: Mutex::default(),
        })
    }

    /// What uses CUDA without us, as far as that was found; looks for more.
    pub(super) fn strangers(&self) -> Vec<String> {
        let watched = self.members().targets.clone();
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        strangers.look(&watched);
        strangers.words()
    }

    pub(super) fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has calls of all programs count, or no longer: what counted until then has been told of, too.
    pub(super) fn count(&self, on: bool) {
        let members = self.members();
        self.counting.store(on, Ordering::SeqCst);
        members.living().iter().for_each(|process| process.count(on));
        drop(members);
        let (since, start) = (monotonic_ns(), Instant::now());
        while !on && self.is_being_counted(since) && start.elapsed() < LONGEST_COUNT {
            std::thread::sleep(COUNT_STEP);
        }
    }

    /// Whether a thread is within a hook that began before this time.
    fn is_being_counted(&self, before: u64) -> bool {
        let members = self.members();
        members
            .living()
            .iter()
            .any(|process| process.is_in_hook_from_before(before))
    }

    /// Processes of this user may join, too.
    pub(super) fn admit(&self, user: u32) {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).push(user);
    }

    /// Whether this process may take part.
    fn is_expected(&self, members: &Members, caller: &Caller) -> bool {
        let mut ancestors = std::iter::successors(Some(caller.pid), |pid| parent_of(*pid)).take(MOST_ANCESTORS);
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.contains(&caller.uid) || ancestors.any(|pid| is_known(members, pid))
    }

    fn hear(&self, caller: Caller, message: &Message) {
        let mut members = self.members();
        let is_expected = self.is_expected(&members, &caller);
        match message.kind {
            MESSAGE_PROGRAM | MESSAGE_CHILD | MESSAGE_LATE if is_expected => self.let_in(&mut members, caller, message),
            // what measures for us has nothing that we would look at, and we may be waiting for it
            MESSAGE_LIBRARIES if is_ourselves(caller.pid) => drop(caller.answer(true, None)),
            MESSAGE_LIBRARIES if members.targets.contains(&caller.pid) => self.let_wait(&mut members, caller, message),
            _ => {
                members.malformed += 1;
                drop(caller);
            }
        }
        drop(members);
        ring(&self.bell);
    }

    /// A program, or a forked child, gets its memory.
    fn let_in(&self, members: &mut Members, caller: Caller, message: &Message) {
        let number = self.programs.fetch_add(1, Ordering::SeqCst) + 1;
        let counting = self.counting.load(Ordering::SeqCst);
        let mut notice = notice_of(message, caller.pid);
        let made = Process::make(caller.pid, notice.comm, number, self.run.room(), counting);
        let files = made.and_then(|process| Ok((self.run.memory.read_only()?, process)));
        let Ok((run, mut process)) = files else {
            members.unanswered += 1;
            return;
        };
        notice.kind = match message.kind {
            MESSAGE_CHILD => wire::NOTICE_FORK,
            _ => wire::NOTICE_EXEC,
        };
        notice.at = notice.at.wrapping_add_signed(process.clock_ahead.wrapping_neg());
        members.tell_python(&process);
        if message.kind == MESSAGE_LATE {
            process.wanted = self.run.patches();
        }
        if !caller.answer(true, Some([process.memory.file(), run.as_fd()])) {
            members.unanswered += 1;
            return;
        }
        members.join(process);
        // a program that is woken has begun long ago
        if message.kind != MESSAGE_LATE {
            members.arrive(notice);
        }
    }

    /// A thread waits until what it has mapped was looked at.
    fn let_wait(&self, members: &mut Members, caller: Caller, message: &Message) {
        let sequence = self.sequence.fetch_add(1, Ordering::SeqCst) + 1;
        let mut notice = notice_of(message, caller.pid);
        notice.kind = wire::NOTICE_LIBRARY;
        notice.waits = wire::WAITS_HERE;
        notice.sequence = sequence;
        let files = message.file.iter().zip(message.address);
        let fresh = files.take(message.files as usize).map(|(file, address)| Fresh {
            file: *file,
            sequence,
            address,
        });
        members.fresh.extend(fresh);
        members.waiting.insert(sequence, caller);
        members.arrive(notice);
    }

    /// Sees who has ended already.
    pub(super) fn see_ended(&self) {
        let living: Vec<u32> = self.members().living().iter().map(|process| process.tgid).collect();
        let ended = living.into_iter().filter(|pid| discover::has_ended(*pid));
        ended.for_each(|pid| self.see_end(pid));
    }

    /// The program of a process has ended.
    fn see_end(&self, pid: u32) {
        let mut members = self.members();
        if !members.targets.contains(&pid) {
            return;
        }
        let began_as = members.end(pid);
        members.forget_target(pid);
        let notice = Notice {
            kind: wire::NOTICE_EXIT,
            tgid: pid,
            tid: pid,
            at: monotonic_ns(),
            parent: signal_of(pid),
            // nobody else asks for its status meanwhile, mostly
            comm: name_of(pid).or(began_as).unwrap_or_default(),
            ..Notice::default()
        };
        members.arrive(notice);
        drop(members);
        ring(&self.bell);
    }
}

/// Whether a process runs this program.
fn is_ourselves(pid: u32) -> bool {
    let file = |pid: &str| std::fs::metadata(format!("/proc/{pid}/exe")).map(|facts| (facts.dev(), facts.ino()));
    let own = file("self");
    own.is_ok_and(|own| file(&pid.to_string()).is_ok_and(|other| other == own))
}

fn is_known(members: &Members, pid: u32) -> bool {
    members.targets.contains(&pid)
}

/// The name of a process.
fn name_of(pid: u32) -> Option<[u8; COMM]> {
    let name = discover::comm(pid, pid).filter(|name| !name.is_empty())?;
    let mut comm = [0; COMM];
    for (to, from) in comm[..COMM - 1].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    Some(comm)
}

fn notice_of(message: &Message, pid: u32) -> Notice {
    let mut notice = Notice {
        tgid: pid,
        tid: message.tid,
        parent: message.parent,
        at: message.at,
        ..Notice::default()
    };
    notice.comm = name_of(pid).unwrap_or_default();
    for (index, open) in notice
        .open
        .iter_mut()
        .enumerate()
        .take(OPEN.min(message.open_row.len()))
    {
        *open = OpenCall {
            entered: message.open_entered[index],
            row: message.open_row[index] as u32,
            pad: 0,
        };
    }
    notice
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
        self.shared.closing.store(true, Ordering::SeqCst);
        ring(&self.shared.elbow);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn attend(shared: &Shared, listener: &Listener) {
    let mut watched: HashMap<u32, Option<OwnedFd>> = HashMap::new();
    let mut beaten = Instant::now();
    let mut look_ms = LOOK_MS;
    while !shared.closing.load(Ordering::SeqCst) {
        let pids: Vec<u32> = watched.keys().copied().collect();
        let ended = |pid: &u32| watched.get(pid).and_then(Option::as_ref).map_or(-1, AsRawFd::as_raw_fd);
        let mut fds = vec![listener.fd(), shared.elbow.as_raw_fd()];
        fds.extend(pids.iter().map(ended));
        let ready = wait(&fds, if pids.is_empty() { IDLE_MS } else { look_ms });
        empty(&shared.elbow);
        if ready.contains(&listener.fd()) {
            take_callers(shared, listener, &mut watched);
        }
        for pid in pids {
            let has_ended = match &watched[&pid] {
                Some(file) => ready.contains(&file.as_raw_fd()),
                None => discover::has_ended(pid),
            };
            if has_ended {
                watched.remove(&pid);
                shared.see_end(pid);
            }
        }
        if beaten.elapsed() >= BEAT {
            beaten = Instant::now();
            shared.members().beat(&shared.socket);
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
        members.take_in(monotonic_ns());
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

fn take_callers(shared: &Shared, listener: &Listener, watched: &mut HashMap<u32, Option<OwnedFd>>) {
    while let Some((caller, message)) = listener.accept::<Message>() {
        let pid = caller.pid;
        match message.filter(|message| message.magic == ARENA_MAGIC) {
            Some(message) => shared.hear(caller, &message),
            None => shared.members().malformed += 1,
        }
        if shared.members().targets.contains(&pid) {
            watched.entry(pid).or_insert_with(|| process_file(pid));
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

/// What becomes readable when a process ends; `None`: this kernel has nothing of the kind.
fn process_file(pid: u32) -> Option<OwnedFd> {
    // SAFETY: makes a descriptor that nobody else owns
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        i32::try_from(fd)
            .ok()
            .filter(|fd| *fd >= 0)
            .map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// The signal that has ended a child of ours; 0: none has, or it is somebody else's.
fn signal_of(pid: u32) -> u32 {
    // SAFETY: all zero is one, and the call fills it
    let found = unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid, &raw mut found, how);
        found
    };
    let killed = matches!(found.si_code, libc::CLD_KILLED | libc::CLD_DUMPED);
    // SAFETY: what the call fills in of a child
    let status = unsafe { found.si_status() };
    u32::try_from(status).ok().filter(|_| killed).unwrap_or(0)
}

pub(super) fn parent_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = status.rsplit_once(')')?;
    rest.split_whitespace()
        .nth(1)?
        .parse()
        .ok()
        .filter(|parent| *parent != 0)
}
