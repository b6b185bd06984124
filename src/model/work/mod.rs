//! What devices are given to do, and when it is known to be done.
//!
//! Pure: it is fed with the records of the ring of work, with memory calls and with the ends of processes, in the
//! order of their returns, and can be asked at any time. Only the driver layer counts.

mod call;
mod capture;
mod classify;
mod content;
mod copies;
mod graphs;
mod hidden;
mod name;
mod plans;
mod ranges;
mod report;
#[cfg(test)]
mod sample;
mod waits;

pub use call::Call;
pub use classify::{blocks, classify};
pub use copies::{Copies, CopyClass};
pub use graphs::Graphs;
pub use hidden::{CopyWait, HiddenWaits, SyncWait};
pub use name::Stream;
pub use ranges::{Kind, Ranges};
pub use report::{
    Bandwidth, Certainty, CopyReport, Created, GpuReport, GraphReport, HiddenKind, HiddenWait, HostMemory,
    ProcessReport, SIZE_BUCKETS, StreamReport, WaitReport,
};
pub use waits::{Wait, Waits};
