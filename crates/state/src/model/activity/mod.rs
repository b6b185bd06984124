//! What devices have executed, as CUPTI has told it: activities, and what they add up to by process and device.
//!
//! Owns when a device was busy, and why it was not. Where activities come from is `collect::activity`'s business.

mod account;
mod along;
mod busy;
mod by_site;
mod causes;
mod coverage;
mod gaps;
mod matching;
mod occupancy;
mod overheads;
mod report;
mod sums;
#[cfg(test)]
mod tests;
mod threads;
mod total;
mod waiting;
mod windows;

pub use account::Account;
pub use busy::{Busy, Span};
pub use by_site::Sites;
pub use causes::{Waits, Why};
pub use coverage::{
    BROKEN_OFF, Coverage, Sampled, Seen, locked_out_words, missing_words, part_words, untold_words, windows_words,
};
pub use matching::{Given, Matcher};
pub use occupancy::{LimitedBy, Limits};
pub(crate) use overheads::OverheadKind;
pub use overheads::{Overhead, OverheadSums, OverheadTotal};
pub use report::{CopyTotal, DeviceReport, KernelTotal, Matching, Report, SiteTotal};
pub use sums::CauseTotal;
pub use threads::{Called, Does, Stay};
pub use total::Total;
pub use waiting::{Idle, PartIdle, Waited, Waiting};
pub use windows::Turn;

use crate::activity::Source;
use crate::activity::shared::{ACTIVITY_COPY, ACTIVITY_GRAPH, ACTIVITY_KERNEL, ACTIVITY_MEMSET, ActivityRecord};
use crate::catalog::{CopyKind, HostMemory};
use crate::model::kernel_name::KernelName;
use crate::model::launches::Launches;
use std::sync::Arc;

/// Something that a device has done. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    pub pid: u32,
    pub begin: u64,
    pub end: u64,
    /// As the process counts its devices.
    pub device: u32,
    /// CUPTI's numbers.
    pub context: u32,
    pub stream: u32,
    /// Number of the graph whose launch it is part of, and which part.
    pub graph: Option<(u32, u64)>,
    /// The call that has caused it, by the order on its stream.
    pub call: Option<Cause>,
    pub what: What,
}

/// A call by what it keeps wherever it is shown: its thread, and when it was entered, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    pub tid: u32,
    pub entered: u64,
    /// Where it was called from; `None`: that was not looked for.
    pub site: Option<u64>,
    /// What its stream had been told to wait for before it.
    pub waits: Option<Waits>,
}

/// See [`Activity`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Kernel {
        /// `None`: it could not be told.
        name: Option<Arc<KernelName>>,
        grid: [u32; 3],
        block: [u32; 3],
        registers: u16,
        /// Of shared memory, static and dynamic.
        shared_bytes: u64,
    },
    Copy {
        direction: Option<CopyKind>,
        /// At one end; `None`: there is none.
        host: Option<HostMemory>,
        bytes: u64,
    },
    Memset {
        bytes: u64,
    },
    /// The launch of a graph as a whole: which parts it had was not told.
    Graph,
}

const COPY: &str = "copy";
const MEMSET: &str = "memset";

impl What {
    /// What it is called: a kernel's name, a direction.
    #[must_use]
    pub fn name(&self, full: bool) -> &str {
        match self {
            What::Kernel { name: None, .. } => "?",
            What::Kernel { name: Some(name), .. } if full => &name.full,
            What::Kernel { name: Some(name), .. } => &name.short,
            What::Copy { direction, .. } => direction.map_or(COPY, CopyKind::name),
            What::Memset { .. } => MEMSET,
            What::Graph => "graph",
        }
    }

    /// Whether [`Self::name`] calls copies or fills so, and not what was launched.
    #[must_use]
    pub fn is_transfer(name: &str) -> bool {
        name == COPY || name == MEMSET || CopyKind::ALL.iter().any(|kind| kind.name() == name)
    }
}

/// CUPTI's kinds of memory.
const PAGEABLE: u8 = 1;
const PINNED: u8 = 2;
const MANAGED: [u8; 2] = [5, 7];

impl Activity {
    /// What `record` of `source` says; `None`: nothing has run.
    #[must_use]
    pub fn of(source: &Source, record: &ActivityRecord, names: &mut Launches) -> Option<Activity> {
        let what = match record.kind {
            ACTIVITY_KERNEL => What::Kernel {
                name: source.name(record).and_then(|name| names.named(name)),
                grid: record.grid,
                block: record.block,
                registers: record.registers,
                shared_bytes: u64::from(record.shared_static) + u64::from(record.shared_dynamic),
            },
            ACTIVITY_COPY => What::Copy {
                direction: direction(record.copy),
                host: host(record.from, record.to),
                bytes: record.bytes,
            },
            ACTIVITY_MEMSET => What::Memset { bytes: record.bytes },
            ACTIVITY_GRAPH => What::Graph,
            _ => return None,
        };
        Some(Activity {
            pid: source.pid,
            begin: record.begin,
            end: record.end,
            device: record.device,
            context: record.context,
            stream: record.stream,
            graph: (record.graph != 0).then_some((record.graph, record.node)),
            call: None,
            what,
        })
    }

    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// What it is called: a kernel's name, a direction.
    #[must_use]
    pub fn name(&self, full: bool) -> &str {
        self.what.name(full)
    }

    /// Copied or filled.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match &self.what {
            What::Kernel { .. } | What::Graph => None,
            What::Copy { bytes, .. } | What::Memset { bytes } => Some(*bytes),
        }
    }

    /// Whether a device has done it: copies within the host are none of its work.
    #[must_use]
    pub(crate) fn is_of_device(&self) -> bool {
        !matches!(
            self.what,
            What::Copy {
                direction: Some(CopyKind::HtoH),
                ..
            }
        )
    }
}

/// Of CUPTI's kind; an array lies on the device.
fn direction(kind: u8) -> Option<CopyKind> {
    Some(match kind {
        1 | 3 => CopyKind::HtoD,
        2 | 4 => CopyKind::DtoH,
        5..=8 => CopyKind::DtoD,
        9 => CopyKind::HtoH,
        10 => CopyKind::PtoP,
        _ => return None,
    })
}

/// The worse of two.
fn host(from: u8, to: u8) -> Option<HostMemory> {
    let both = [from, to];
    if both.contains(&PAGEABLE) {
        Some(HostMemory::Pageable)
    } else if both.contains(&PINNED) {
        Some(HostMemory::Pinned)
    } else {
        both.iter()
            .any(|kind| MANAGED.contains(kind))
            .then_some(HostMemory::Managed)
    }
}
