//! A flight recorder: rows stay in memory, and the last of them go to a file when something happens.

use super::segment::{Ended, Segment};
use super::stream::{Group, Stream, Texts, joined};
use super::{Keeper, Kept, beside};
use crate::output::file::{Target, create_failed};
use crate::refusal::message;
use crate::text::quantity;
use crate::trace::schema::Piece;
use crate::trace::trigger::{Cause, Trigger};
use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is kept, and when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// For how long rows are kept.
    pub time: Duration,
    /// Most bytes in memory, as they would take on disk.
    pub bytes: u64,
    /// Whether a failed call has it written.
    pub on_error: bool,
    /// Whether a fault that the driver reports has.
    pub on_xid: bool,
    /// Whether the end of the trace has.
    pub on_exit: bool,
}

impl Ring {
    fn wants(&self, cause: Cause) -> bool {
        match cause {
            Cause::Error => self.on_error,
            Cause::Xid => self.on_xid,
            Cause::Signal => true,
            Cause::Exit => self.on_exit,
        }
    }
}

/// How long rows may be on their way here.
const UNDER_WAY: Duration = Duration::from_millis(1500);

/// A flight recorder.
pub(super) struct Dumps {
    path: PathBuf,
    ring: Ring,
    budget: u64,
    groups: VecDeque<(Instant, Group)>,
    bytes: u64,
    /// When the last batch came that is forgotten, CLOCK_MONOTONIC ns: whatever was entered later is kept.
    from: Option<u64>,
    /// Those that the oldest batch refers to and does not bring along.
    texts: Texts,
    pending: Option<Pending>,
    /// When the next file may be written that nobody asked for.
    next: Option<Instant>,
    number: u32,
    files: VecDeque<Ended>,
    deleted: u64,
    /// Of the end, until somebody asks.
    said: Option<String>,
}

struct Pending {
    cause: Cause,
    since: Instant,
    /// Its row has come.
    here: bool,
}

fn dump_path(path: &Path, number: u32) -> PathBuf {
    beside(path, &format!("dump-{number:04}"))
}

/// The first name from that number on which nothing has.
fn free(path: &Path, from: u32) -> Result<(u32, Target)> {
    let mut number = from;
    loop {
        let target = Target::of(&dump_path(path, number))?;
        if !target.is_taken() {
            return Ok((number, target));
        }
        number += 1;
    }
}

impl Dumps {
    /// Looks whether a file could be made.
    ///
    /// # Errors
    /// It could not.
    pub(super) fn create(path: &Path, ring: Ring, budget: Option<u64>) -> Result<Dumps> {
        let first = free(path, 1)?.1;
        first.create_new().with_context(|| create_failed(first.path()))?;
        first.remove().with_context(|| create_failed(first.path()))?;
        Ok(Dumps {
            path: path.to_owned(),
            ring,
            budget: budget.unwrap_or(u64::MAX),
            groups: VecDeque::new(),
            bytes: 0,
            from: None,
            texts: Texts::new(),
            pending: None,
            next: None,
            number: 0,
            files: VecDeque::new(),
            deleted: 0,
            said: None,
        })
    }

    /// Forgets what is too old or too much.
    fn forget(&mut self) {
        let is_old = |at: &Instant| at.elapsed() > self.ring.time;
        while let Some((at, group)) = self
            .groups
            .pop_front_if(|(at, _)| is_old(at) || self.bytes > self.ring.bytes)
        {
            let ago = u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.from = Some(crate::clock::monotonic_ns().saturating_sub(ago));
            self.bytes -= size(&group);
            self.texts.extend(group.changed);
        }
    }

    /// Writes what is kept; what there is to be said of it.
    fn dump(&mut self, stream: &Stream, cause: Cause) -> io::Result<String> {
        self.next = Some(Instant::now() + self.ring.time);
        let path = self.free_path()?;
        let mut bytes = stream.header(Piece::Dump, self.from)?;
        bytes.extend(joined(&self.texts, &[]));
        let mut rows = 0;
        for (_, group) in &self.groups {
            bytes.extend(group.bytes());
            rows += group.rows;
        }
        self.make_room(bytes.len() as u64)?;
        let mut segment = Segment::create(&path, &[])?;
        segment
            .write(&bytes, rows)
            .and_then(|()| segment.end())
            .inspect_err(|_| {
                let _ = std::fs::remove_file(&path);
            })?;
        let said = format!(
            "{}: the last {} are in {} ({})",
            cause.words(),
            quantity::plural(rows, "row"),
            path.display(),
            quantity::bytes(segment.bytes)
        );
        self.files.push_back(segment.into_ended());
        Ok(said)
    }

    /// The next name that nobody has.
    fn free_path(&mut self) -> io::Result<PathBuf> {
        let free = free(&self.path, self.number + 1).map_err(|error| io::Error::other(message(&error)))?;
        self.number = free.0;
        Ok(free.1.path().to_owned())
    }

    fn make_room(&mut self, more: u64) -> io::Result<()> {
        let used = |files: &VecDeque<Ended>| files.iter().map(|file| file.bytes).sum::<u64>();
        while used(&self.files).saturating_add(more) > self.budget {
            let Some(oldest) = self.files.pop_front() else {
                break;
            };
            oldest.delete()?;
            self.deleted += 1;
        }
        Ok(())
    }

    fn note(&mut self, cause: Option<Cause>) {
        let Some(cause) = cause.filter(|cause| self.ring.wants(*cause)) else {
            return;
        };
        let before = self.pending.take().filter(|before| before.cause >= cause);
        self.pending = before.or(Some(Pending {
            cause,
            since: Instant::now(),
            here: false,
        }));
    }

    /// What is to be written now.
    fn due(&mut self) -> Option<Cause> {
        let asked = |cause| cause == Cause::Signal || cause == Cause::Exit;
        let pending = self.pending.as_ref()?;
        let may = asked(pending.cause) || self.next.is_none_or(|next| Instant::now() >= next);
        let here = pending.here || pending.since.elapsed() > UNDER_WAY;
        let cause = (may && here).then_some(pending.cause)?;
        self.pending = None;
        Some(cause)
    }
}

fn size(group: &Group) -> u64 {
    let texts: usize = group.changed.values().map(Vec::len).sum();
    (texts + group.batch.len()) as u64
}

impl Keeper for Dumps {
    fn begin(&mut self, _stream: &Stream) -> io::Result<()> {
        Ok(())
    }

    fn take(&mut self, _stream: &Stream, group: &Group) -> io::Result<()> {
        self.bytes += size(group);
        self.groups.push_back((Instant::now(), group.clone()));
        if let Some(pending) = self.pending.as_mut() {
            pending.here = true;
        }
        self.forget();
        Ok(())
    }

    fn end(&mut self, stream: &Stream, trigger: &Trigger) -> io::Result<()> {
        self.note(trigger.take());
        let cause = self.pending.take().map(|pending| pending.cause);
        let exit = self.ring.on_exit.then_some(Cause::Exit);
        if let Some(cause) = cause.or(exit) {
            self.said = Some(self.dump(stream, cause)?);
        }
        Ok(())
    }

    fn turn(&mut self, stream: &Stream, trigger: &Trigger) -> io::Result<Option<String>> {
        if let Some(said) = self.said.take() {
            return Ok(Some(said));
        }
        self.note(trigger.take());
        self.due().map(|cause| self.dump(stream, cause)).transpose()
    }

    fn kept(&self) -> Kept {
        Kept {
            files: self.files.iter().map(|file| file.path.clone()).collect(),
            bytes: self.files.iter().map(|file| file.bytes).sum(),
            rows: self.files.iter().map(|file| file.rows).sum(),
            deleted: self.deleted,
            full: false,
        }
    }
}
