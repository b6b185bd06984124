//! When the devices of a process had nothing to do, by what they told of all that they did.
//!
//! Owns the gaps between activities, however short, where rows of idle time tell of the longer ones alone. Whether all that devices did
//! was told of is known to who reads the end of a trace.

use crate::catalog::CopyKind;
use crate::findings::table::Bounded;
use crate::record::{Kind, Record};

/// Processes that are told apart.
const PROCESSES: usize = 4096;
/// Gaps that are kept until it is known what steps are cut at: 12 MiB.
const KEPT: usize = 1 << 19;

/// Nothing ran for a process, for so long; no time at all before its first activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dry {
    pub(super) pid: u32,
    pub(super) at: i64,
    pub(super) end: i64,
}

/// Makes them of activities, in the order in which these began.
#[derive(Debug)]
pub(super) struct Devices {
    /// Until when something ran.
    reach: Bounded<Option<i64>>,
    /// All so far; `None`: they were too many.
    first: Option<Vec<Dry>>,
}

impl Default for Devices {
    fn default() -> Devices {
        Devices {
            reach: Bounded::new(PROCESSES),
            first: Some(Vec::new()),
        }
    }
}

impl Devices {
    /// `None`: the row is no activity, or one that follows another without a gap.
    pub(super) fn take(&mut self, event: &Record<'_>) -> Option<Dry> {
        // a copy from host to host is no device's work
        if event.kind != Kind::Gpu || event.direction == Some(CopyKind::HtoH) {
            return None;
        }
        let reach = self.reach.entry(u64::from(event.pid))?;
        let before = reach.unwrap_or(event.at);
        let is_first = reach.is_none();
        *reach = Some(before.max(event.end()));
        (is_first || event.at > before).then_some(Dry {
            pid: event.pid,
            at: before,
            end: event.at,
        })
    }

    /// Keeps one for who begins to cut later.
    pub(super) fn keep(&mut self, dry: Dry) {
        if self.first.as_ref().is_some_and(|first| first.len() == KEPT) {
            self.first = None;
        }
        if let Some(first) = &mut self.first {
            first.push(dry);
        }
    }

    /// None are asked for any more.
    pub(super) fn forget(&mut self) {
        self.first = None;
    }

    /// All so far, of all processes; `None`: they are not known any more.
    pub(super) fn kept(&self) -> Option<&[Dry]> {
        self.first.as_deref()
    }
}
