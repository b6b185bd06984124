//! What is shown of a process's work. Plain data, complete: outputs need nothing else.

use crate::catalog::{CopyKind, HostMemory};
use crate::model::kind::HiddenKind;
use crate::model::memory::Origin;
use crate::model::reason::Reasons;
use crate::wire::WorkLoss;
use std::collections::BTreeMap;

/// Sizes are counted by power of two: bucket `n` holds those of 2^n bytes up to twice as many; none is in bucket 0.
pub const SIZE_BUCKETS: usize = 48;

/// How far a number can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Read off a clock, or counted.
    Measured,
    /// The truth lies on one side of it.
    Bound,
    /// Follows from what is usual, not from what was seen.
    Inferred,
}

impl Certainty {
    /// The word in outputs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Measured => "measured",
            Certainty::Bound => "bound",
            Certainty::Inferred => "inferred",
        }
    }
}

/// Work of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessReport {
    pub pid: u32,
    /// Name of its main thread, as last seen; empty: not known.
    pub comm: String,
    pub origin: Origin,
    /// CLOCK_MONOTONIC ns of the first record, and of its end if it has ended.
    pub first_at: u64,
    pub ended_at: Option<u64>,
    /// Most bytes first.
    pub copies: Vec<CopyReport>,
    /// Most submissions first.
    pub streams: Vec<StreamReport>,
    pub created: Created,
    /// Most time first.
    pub waits: Vec<WaitReport>,
    /// The same.
    pub hidden: Vec<HiddenWait>,
    pub gpu: GpuReport,
    pub graphs: GraphReport,
    pub lost: WorkLoss,
}

/// Copies of one direction, host memory and manner.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyReport {
    /// `None`: neither the call nor the addresses say.
    pub direction: Option<CopyKind>,
    /// `None`: no end lies in host memory.
    pub host: Option<HostMemory>,
    /// The call returns when the copy is done, or its bytes are staged.
    pub blocking: bool,
    pub count: u64,
    pub bytes: u64,
    /// Of these, copies whose size no argument says.
    pub unsized_count: u64,
    /// Time in the calls.
    pub call_ns: u64,
    pub sizes: [u64; SIZE_BUCKETS],
    pub bandwidth: Option<Bandwidth>,
}

/// Bytes in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth {
    pub bytes: u64,
    pub ns: u64,
    /// [`Certainty::Bound`]: it was at least as fast.
    pub certainty: Certainty,
}

impl Bandwidth {
    /// Bytes a second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.ns.max(1) as f64
    }
}

/// One stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamReport {
    /// Handle; 0: the default stream of a context, 2: of a thread.
    pub stream: u64,
    /// 0: not known.
    pub context: u64,
    /// Of a thread's own default stream.
    pub tid: Option<u32>,
    /// `None`: its creation was not seen.
    pub priority: Option<i32>,
    pub nonblocking: Option<bool>,
    /// Calls that put something into it.
    pub submissions: u64,
    /// Bytes by direction.
    pub copied: BTreeMap<CopyKind, u64>,
    /// Time in which it may have had work.
    pub busy_at_most_ns: u64,
    /// Most calls whose work may have been waiting at one time.
    pub depth_at_most: u64,
    /// Time that threads waited for it.
    pub blocked_ns: u64,
    /// Not destroyed.
    pub alive: bool,
}

/// What came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Created {
    pub streams: u64,
    pub streams_destroyed: u64,
    pub events: u64,
    pub events_destroyed: u64,
}

/// Time that threads waited in one function, for one stream, called from one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitReport {
    pub row: u32,
    pub function: String,
    /// `None`: for a context, or one of too many to be told apart.
    pub stream: Option<u64>,
    /// Names the stack; 0: not taken.
    pub site: u64,
    pub count: u64,
    pub total_ns: u64,
    pub max_ns: u64,
}

/// Waits of one kind from one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenWait {
    pub kind: HiddenKind,
    pub site: u64,
    pub count: u64,
    /// Time in the calls.
    pub total_ns: u64,
    /// Whether that time was spent waiting.
    pub certainty: Certainty,
}

/// When the devices of a process may have worked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuReport {
    /// From the first submission to the last thing that is known. The next two add up to it.
    pub window_ns: u64,
    pub busy_at_most_ns: u64,
    pub idle_at_least_ns: u64,
    /// What that adds up of, as far as calls tell.
    pub idle_reasons: Reasons,
    /// Idle time if streams that were given nothing for a second or more are done: inferred. At least the bound.
    pub idle_likely_ns: u64,
    /// Limits of the window, CLOCK_MONOTONIC ns.
    pub from_at: u64,
    pub until_at: u64,
    /// Pieces of the bound.
    pub idle_gaps: u64,
    pub longest_idle_ns: u64,
    /// What makes these less than bounds, or wide; one sentence each.
    pub notes: Vec<String>,
    /// Notes that make them less than bounds.
    pub inferred: bool,
    /// Times between events that the program itself has measured.
    pub elapsed_count: u64,
    pub elapsed_ns: u64,
    /// Submissions that took long while much may have been waiting.
    pub slow_submissions: u64,
    pub slow_submission_ns: u64,
    pub slow_depth_at_most: u64,
}

/// Graphs that ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GraphReport {
    pub launches: u64,
    /// Of these, of graphs whose making was seen.
    pub known_launches: u64,
    /// Kernels, copies and memsets that these ran.
    pub kernels: u64,
    pub copies: u64,
    pub memsets: u64,
    /// Launches that were recorded into graphs instead of being run.
    pub captured: u64,
}
