//! What is remembered of a process until it has an owner, and what was never known of it.

use crate::owner::Owner;
use crate::owner::cgroup::Place;
use crate::owner::label::{Label, Wanted};
use crate::owner::process::Portrait;
use std::sync::Arc;

/// Processes that were counted for owners without labels that they may have had, because they were gone before they
/// were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Where they ran: container, pod, unit, job.
    pub places: u64,
    /// What only the process itself tells: `exe`, `cmdline`, `env:NAME`, `user`, `program`, `rank`.
    pub programs: u64,
}

#[derive(Debug)]
pub(super) struct Process {
    /// When it began; `None`: never read, thus it can be any with this number.
    pub(super) start_ticks: Option<u64>,
    pub(super) ended: bool,
    /// What it is, or would be if it could not be read any more.
    pub(super) portrait: Arc<Portrait>,
    /// Where it runs is known, from itself, the kernel or its parent.
    pub(super) placed: bool,
    /// What the kernel has said of that.
    pub(super) told: Option<Place>,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) enum State {
    /// Began or executed a program since it was last read.
    Unread,
    Read,
    Owned(Arc<Owner>),
}

impl Unknown {
    /// Counts what a process lacks that is given an owner.
    pub(super) fn note(&mut self, wanted: &Wanted, process: &Process) {
        let labels = || wanted.labels().iter();
        let unplaced = !process.placed && labels().any(Label::is_of_place);
        let was_read = matches!(process.state, State::Read);
        // one that exits while it is read has lost its program first
        let silent = |label: &Label| label.is_never_empty() && process.portrait.value(label).is_empty();
        let unread = labels().any(|label| label.is_read_alone() && !was_read || silent(label));
        self.places += u64::from(unplaced);
        self.programs += u64::from(unread);
    }
}
