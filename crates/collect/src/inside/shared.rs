//! What the threads of a run use together: its memory, who takes part, whether calls count, and what wakes whom.
//!
//! Owns who may join and who has ended. When agents are heard is the attendant's business.

mod message;

use super::door::{Door, has_executed};
use super::members::Members;
use super::run::Run;
use super::strangers::Strangers;
use crate::clock::monotonic_ns;
use crate::discover;
use crate::engine::Arrival;
use crate::engine::poll::{event_descriptor, ring};
use crate::wire::{self, COMM, Notice};
use anyhow::Result;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whoever was within a hook when calls ceased to count is awaited for so long.
const LONGEST_COUNT: Duration = Duration::from_millis(200);
const COUNT_STEP: Duration = Duration::from_millis(1);

/// What the threads of a run use together.
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
    /// Rung when the attendant is to end.
    pub elbow: File,
    /// Where we listen.
    pub socket: PathBuf,
    strangers: Mutex<Strangers>,
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

    /// Whether calls count.
    pub(super) fn is_counting(&self) -> bool {
        self.counting.load(Ordering::SeqCst)
    }

    /// The time, as of [`Rings::take`](super::ring::Rings::take): once calls do not count any more nobody submits older records than
    /// those that are there.
    pub(super) fn now(&self) -> Option<u64> {
        self.is_counting().then(monotonic_ns)
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

    /// The attendant is to end.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        ring(&self.elbow);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Sees who has ended already.
    pub(super) fn see_ended(&self) {
        let living: Vec<u32> = self.members().living().iter().map(|process| process.tgid).collect();
        let ended = living.into_iter().filter(|pid| discover::has_ended(*pid));
        ended.for_each(|pid| self.see_end(pid));
    }

    /// Follows processes that stood by into the programs that they execute: those have doors of their own.
    pub(super) fn follow_programs(&self) {
        let members = self.members();
        let doors = members.doors.iter();
        let doors: Vec<(u32, u64)> = doors.filter_map(|door| Some((door.pid, door.inode()?))).collect();
        let doorless = members.doorless.clone();
        drop(members);
        for (pid, _) in doors.into_iter().filter(|(pid, inode)| has_executed(*pid, *inode)) {
            self.see_program(pid);
        }
        for pid in doorless {
            // another gpuscope may stand there: then it is that one's
            let Ok(Some(door)) = Door::of(pid) else { continue };
            let mut members = self.members();
            // one that cannot be reached is tried again
            if members.doorless.contains(&pid) && self.stand_at(&mut members, door).is_ok() {
                members.doorless.remove(&pid);
            }
        }
    }

    /// Stands at a door, and knocks if calls count.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub(super) fn stand_at(&self, members: &mut Members, mut door: Door) -> Result<()> {
        if self.is_counting() {
            door.knock(&self.socket)?;
        }
        members.doors.push(door);
        Ok(())
    }

    fn see_program(&self, pid: u32) {
        let mut members = self.members();
        members.end(pid);
        members.leave_old_door(pid);
        let notice = Notice {
            comm: name_of(pid).unwrap_or_default(),
            ..notice_of(wire::NOTICE_EXEC, pid)
        };
        members.arrive(notice.into());
        drop(members);
        ring(&self.bell);
    }

    /// The program of a process has ended, or is another gpuscope's business from now on.
    pub(super) fn see_end(&self, pid: u32) {
        let mut members = self.members();
        if !members.targets.contains(&pid) {
            return;
        }
        let (began_as, within) = members.end(pid).map(|last| (last.comm, last.within)).unzip();
        members.forget_target(pid);
        let notice = Notice {
            parent: signal_of(pid),
            comm: last_name_of(pid).or(began_as).unwrap_or_default(),
            ..notice_of(wire::NOTICE_EXIT, pid)
        };
        members.arrive(Arrival {
            within,
            ..notice.into()
        });
        drop(members);
        ring(&self.bell);
    }
}

/// Something that happens to a process now.
fn notice_of(kind: u32, pid: u32) -> Notice {
    Notice {
        kind,
        tgid: pid,
        tid: pid,
        at: monotonic_ns(),
        ..Notice::default()
    }
}

/// The name of a process that has ended, while its parent has not asked for its status.
fn last_name_of(pid: u32) -> Option<[u8; COMM]> {
    name_of(pid).filter(|_| discover::has_ended(pid))
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

/// The signal that has ended a child of ours; 0: none has, or it is somebody else's.
fn signal_of(pid: u32) -> u32 {
    let status = discover::ended(pid).ok().flatten();
    let signal = status.and_then(|status| status.signal());
    signal.and_then(|signal| u32::try_from(signal).ok()).unwrap_or(0)
}
