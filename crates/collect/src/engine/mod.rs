//! What collects: where calls are taken from, as bytes that [`crate::wire`] describes.
//!
//! Owns the seam: streams of records, tables of totals, words that both sides share, and the hooks. What bytes mean is
//! read here once for all engines ([`totals`] and its neighbours), how they come about is an engine's business:
//! [`crate::probe::Session`] has programs in the kernel, [`crate::engine::replay`] a tape that another engine was recorded on.

mod aggregates;
mod arrivals;
mod files;
mod point;
pub(crate) mod poll;
mod records;
pub mod replay;
pub(crate) mod samples;
mod sites;
mod tape;
pub mod totals;

pub(crate) use arrivals::Hold;
pub use arrivals::{Arrival, Arrivals, Keep};
pub use files::Fresh;
pub(crate) use point::KernelPoint;
pub use point::Point;
pub use records::{Events, RecordInbox, Records};
pub(crate) use samples::Seen;
pub use samples::{Sample, TICK_NS};
pub use tape::{Tape, Taped};

use crate::stack::wire::SiteCounters;
use crate::wire::{self, Plain};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::Path;

/// Records that come in, each kind in its own order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Calls to be shown: [`wire::CallHeader`] and words.
    Calls,
    /// What changes who holds memory, and what such records refer to: sites, names of kernels.
    Memory,
    /// What has to do with the work of a device.
    Work,
    /// System calls on the devices of NVIDIA's kernel driver.
    Driver,
    /// Faults that the driver reports.
    Xids,
    /// Stacks of threads outside CUDA.
    Samples,
    /// Phases as programs call them (NVTX): [`wire::RangeRecord`] and texts.
    Ranges,
}

/// Tables of keys and values, which [`crate::wire`] describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    // what an engine is told
    Specs,
    ProbeSites,
    KernelSites,
    Targets,
    Pythons,
    // what it counts
    Totals,
    Failures,
    Shapes,
    Kernels,
    NamedHandles,
    Aggregates,
    AggregateTexts,
    Lanes,
    Flows,
    WorkLosses,
    MemoryLosses,
    DriverShares,
    // what it remembers
    Places,
    KnownSites,
    FreshFiles,
    KnownFiles,
}

/// Takes records out of a stream, one by one.
pub type Take = Box<dyn FnMut(&[u8])>;

/// A stream that was opened.
pub trait Feed {
    /// Becomes readable when something urgent is in it; -1: never.
    fn bell(&self) -> RawFd;
    /// Hands all that has come to whoever has opened it.
    fn drain(&self);
}

/// A hook that sits where it was put, for as long as this lives.
pub trait Hook: Send {}

impl<T: Send> Hook for T {}

/// Hooks; dropping them takes them away.
pub type Hooks = Vec<Box<dyn Hook>>;

/// What is lost, missed or over, up to now. Each number is a counter of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Library loads that did not wait until their probes were in place.
    pub waits_expired: u64,
    pub notices_lost: u64,
    pub events_lost: u64,
    /// Calls counted without their process, because the table of processes was full.
    pub totals_overflowed: u64,
    pub memory_lost: u64,
    pub work_lost: u64,
    pub driver_lost: u64,
    pub xids_lost: u64,
    pub samples_lost: u64,
    /// Launches whose shape found no room.
    pub shapes_lost: u64,
    /// Of the time of functions, spells in the driver that found no room.
    pub shares_lost: u64,
    /// Threads that have ended and had called, and their context switches from the first call on.
    pub threads_ended: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    /// Of those threads, the ones that were last looked at some time before their end.
    pub threads_unsure: u64,
    /// What was looked at is known as long as this does not change.
    pub known_files: u64,
    /// Calls that found no room for their group among the sums of users' rows, or for the text that it is.
    pub sums_full: u64,
    /// Calls whose number may be missing among the smallest and largest.
    pub sums_raced: u64,
    /// Phases of programs that have no record.
    pub ranges_lost: u64,
}

/// What agents have done in their processes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Functions patched, and those that could not be.
    pub patched: u64,
    pub refused: u64,
    /// Calls that found nowhere to be counted, also those from within a hook.
    pub unseen: u64,
    /// Programs that could not map what is shared with them.
    pub dormant: u64,
    /// Programs that went on before they were answered, or could not be given any memory.
    pub unanswered: u64,
    /// Times that a program went on untraced, because we had stood still.
    pub left: u64,
    /// How often threads waited for room for what happened to memory, and how long in all.
    pub waits: u64,
    pub waited_ns: u64,
}

/// What collects: where calls are taken from.
pub trait Engine: 'static {
    /// What some engines alone can do is asked of them by their own type.
    fn inner(&self) -> &dyn Any;

    /// The one that writes down what it says; `None`: nobody wants that.
    fn taped(&self) -> Option<&Taped> {
        None
    }

    /// The name of the way in which functions are hooked.
    fn way(&self) -> &'static str;

    /// Whether each function takes an event of its own, of which a process may have only so many.
    fn makes_single_events(&self) -> bool {
        false
    }

    /// Rows that it can tell apart.
    fn rows(&self) -> usize;

    /// Opens a stream, each of whose records goes to `take`.
    ///
    /// # Errors
    /// There is no memory for it.
    fn open(&self, stream: Stream, take: Take) -> Result<Box<dyn Feed>>;

    /// Opens the stream of what happens to processes.
    ///
    /// # Errors
    /// There is no memory, or no thread, for it.
    fn arrivals(&self) -> Result<Box<dyn Arrivals>>;

    /// Hooks `points` of the file behind `path`, which should be a descriptor's path.
    ///
    /// # Errors
    /// It is refused; why.
    fn attach(&self, path: &Path, points: &[Point]) -> Result<Hooks>;

    /// Rows that the last attachment did not hook, and why.
    fn unhooked(&self) -> Vec<(u32, String)> {
        Vec::new()
    }

    /// What a program has to be started with, by variable, where `preloaded` is what its environment loads already, and
    /// `user` is somebody else as whom it is started.
    ///
    /// # Errors
    /// It could not reach us.
    fn environment(&self, preloaded: Option<OsString>, user: Option<u32>) -> Result<Vec<(OsString, OsString)>> {
        let _ = (preloaded, user);
        Ok(Vec::new())
    }

    /// What is remembered of a thread between its calls, as the body of a call has it; `None`: nothing is.
    fn thread(&self, tid: u32) -> Option<Vec<u8>> {
        let _ = tid;
        None
    }

    /// Processes that run now and carry an agent, whether they have called or not.
    fn carriers(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Programs that were to carry an agent and do not, in words.
    fn strangers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Processes that were asked to carry on under our eyes, and have not made a call since.
    fn awaited(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Has nothing more to do with process `tgid`, which runs on: another gpuscope may trace it now. It is told of as if it had
    /// ended. Only agents serve one of us at a time.
    fn let_go(&self, tgid: u32) {
        let _ = tgid;
    }

    /// What agents have done in processes; `None`: it has none.
    fn is_inside(&self) -> Option<Done> {
        None
    }

    /// Has a dynamic linker tell of the libraries that it maps, at `offset` of the file behind `path`.
    ///
    /// # Errors
    /// It is refused; why.
    fn attach_linker(&self, path: &Path, offset: u64) -> Result<Hooks>;

    /// Has births, new programs and ends of processes told.
    ///
    /// # Errors
    /// It is refused; why.
    fn attach_lifecycle(&self) -> Result<Hooks>;

    /// Has where threads are while they are outside of CUDA told, as [`Sample`]s. Without [`crate::probe::Setup::samples`]
    /// there is nothing to attach.
    ///
    /// # Errors
    /// It is refused; why.
    fn attach_samples(&self) -> Result<Hooks> {
        bail!("this way of tracing does not tell")
    }

    /// Has that told of thread `tid` while it runs, too.
    ///
    /// # Errors
    /// The thread is gone, or it is refused.
    fn attach_clock(&self, tid: u32) -> Result<Box<dyn Hook>> {
        bail!("nothing looks at thread {tid}")
    }

    /// The stack that thread `tid` was seen with last. `None`: none was taken, or nobody can tell of that thread.
    fn last_stack(&self, tid: u32) -> Option<Seen> {
        let _ = tid;
        None
    }

    /// What of threads could not be looked at, not said yet.
    fn unsampled(&self) -> Vec<String> {
        Vec::new()
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// The table is full, or cannot be written.
    fn store(&self, table: Table, key: &[u8], value: &[u8]) -> Result<()>;

    /// The value of a key; `None`: there is none.
    fn look_up(&self, table: Table, key: &[u8]) -> Option<Vec<u8>>;

    /// Calls `each` with all keys and values. What comes or goes meanwhile is seen or is not.
    ///
    /// # Errors
    /// The table cannot be read.
    fn read(&self, table: Table, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;

    /// Takes a key out of a table, where it is there.
    ///
    /// # Errors
    /// It is not there, or the table cannot be written.
    fn delete(&self, table: Table, key: &[u8]) -> Result<()>;

    /// How many places table `table` has for numbers that share them.
    fn slots(&self, table: Table) -> u32;

    /// What one row has counted beside totals.
    ///
    /// # Errors
    /// It cannot be read.
    fn counter(&self, row: u32) -> Result<wire::RowCounter>;

    /// Those of the first `rows` rows.
    ///
    /// # Errors
    /// They cannot be read.
    fn first_counters(&self, rows: u32) -> Result<Vec<wire::RowCounter>> {
        (0..rows).map(|row| self.counter(row)).collect()
    }

    /// What is lost, missed or over.
    fn counters(&self) -> Counters;

    /// What has become of call sites.
    fn site_counters(&self) -> SiteCounters;

    /// Has calls count from now on, or no longer, everywhere at the same moment. A call counts that is entered and returns
    /// in between.
    fn count_calls(&self, on: bool);

    /// A sign of life at `now`, CLOCK_MONOTONIC ns: without one, nobody waits for us.
    fn alive(&self, now: u64);

    /// There is room for so many more kernels among the totals.
    fn free_kernel_totals(&self, count: u64);

    /// To be called before probes are taken out of a file: whoever maps it again has to wait.
    fn forget_files(&self);
}

/// A plain structure out of bytes; `None`: they are not so many.
pub(crate) fn value_of<T: Plain>(bytes: &[u8]) -> Option<T> {
    wire::read(bytes).filter(|_| bytes.len() == size_of::<T>())
}
