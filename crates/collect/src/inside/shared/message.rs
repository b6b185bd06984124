//! What agents say: a program begins, or a thread waits until what it has mapped was looked at.

use super::{Shared, name_of};
use crate::discover::parent_of;
use crate::engine::poll::ring;
use crate::inside::arena::{MESSAGE_CHILD, MESSAGE_LATE, MESSAGE_LIBRARIES, MESSAGE_PROGRAM, Message};
use crate::inside::members::{Fresh, Members};
use crate::inside::process::Process;
use crate::inside::socket::Caller;
use crate::wire::{self, Notice, OPEN, OpenCall};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

const MOST_ANCESTORS: usize = 64;

impl Shared {
    /// Whether this process may take part.
    fn is_expected(&self, members: &Members, caller: &Caller) -> bool {
        let mut ancestors = std::iter::successors(Some(caller.pid), |pid| parent_of(*pid)).take(MOST_ANCESTORS);
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.contains(&caller.uid) || ancestors.any(|pid| is_known(members, pid))
    }

    /// Does what an agent asks for.
    pub(in crate::inside) fn hear(&self, caller: Caller, message: &Message) {
        let mut members = self.members();
        let is_expected = self.is_expected(&members, &caller);
        match message.kind {
            MESSAGE_PROGRAM | MESSAGE_CHILD if is_expected => self.let_in(&mut members, caller, message),
            // who was left to another gpuscope meanwhile is not ours
            MESSAGE_LATE if is_expected && members.stands_at(caller.pid) => self.let_in(&mut members, caller, message),
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
        let counting = self.is_counting();
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
            members.arrive(notice.into());
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
        members.arrive(notice.into());
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
