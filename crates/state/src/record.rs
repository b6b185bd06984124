//! What happened at a time: one record, live or read from a file, and who takes them. Plain data; borrows its texts.
//!
//! [`making`] makes records of what is being traced, [`json`] writes their arguments. What records mean is the business of
//! `findings` and `report`; how they are kept, of `trace`; how they look, of `sink` and `export`.

mod causes;
mod counting;
mod crop;
pub mod json;
mod making;
mod traced;
pub mod xid;

pub use causes::Causes;
pub(crate) use counting::Counting;
pub use crop::Crop;
pub use making::Maker;
pub use traced::{Asked, Facts, Traced};

use crate::catalog::{Class, CopyKind, HostMemory};
use crate::clock::Clock;
use crate::model::activity::Activity;
use crate::model::order::Numbered;
use crate::model::range::Range;
use crate::model::xid::Report;

macro_rules! kinds {
    ($($variant:ident $name:literal $doc:literal),+ $(,)?) => {
        /// What a row tells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind { $(#[doc = $doc] $variant),+ }

        impl Kind {
            /// All, in order.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),+];

            /// The word in the column `type`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name),+ }
            }

            /// The kind of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Kind> {
                Kind::ALL.iter().copied().find(|kind| kind.name() == name)
            }
        }
    };
}

kinds! {
    Call "userspace" "A call of a library.",
    Open "open" "A call that has not returned for `ns` now. Of a recording: by its end.",
    Kernel "kernel" "A call of the kernel driver, or of a function of the kernel.",
    Gpu "gpu" "A device has run a kernel, copied or filled.",
    Range "range" "A phase as the program calls it (NVTX), from its begin to its end.",
    Mark "mark" "A moment that the program has marked (NVTX).",
    ThreadName "thread-name" "The program calls the thread so (NVTX): its `name`.",
    Process "process" "A process was forked, executed a program, or exited: its `name`.",
    Lost "lost" "`count` calls of the function `name` have no row.",
    Xid "xid" "The driver reported a fault.",
    Count "count" "`count` calls of the function `name` since the last such row, which have none of their own.",
    Sample "sample" "A measure of a process or thread at this moment: `name`, and its value in `bytes`.",
    Idle "idle" "Nothing that the process submitted was running. Measured: its `name` is the cause; without one it follows from calls.",
    DeviceIdle "device-idle" "The same of one device of a process that uses several, in `args`, whatever the others did. Measured alone.",
    Overhead "overhead" "CUPTI itself, or the driver, took time that CUPTI tells of: its `name`.",
    Step "step" "An iteration of a program, `name`d by its number, which is its `count`. No recording has it: it is found in others.",
    Snapshot "snapshot" "The exact totals up to this moment, in `args`. Of recordings alone, whose readers keep them.",
    Summary "summary" "The exact totals of the run, in `args`.",
}

/// One row. Times are CLOCK_MONOTONIC ns since the start of the trace; what began before is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record<'a> {
    pub kind: Kind,
    pub at: i64,
    /// From entry to return; `None`: seen at entry only. Of a count the sum, of an idle gap its length.
    pub ns: Option<u64>,
    pub pid: u32,
    pub tid: u32,
    /// Thread name.
    pub comm: &'a str,
    /// Label of the library.
    pub layer: &'a str,
    /// Symbol as exported.
    pub name: &'a str,
    pub class: Class,
    /// Calls of the same thread around it.
    pub depth: u8,
    /// Calls that the row stands for.
    pub count: u64,
    /// How long before it the call around it was entered, ns.
    pub since_caller: Option<u64>,
    /// Result, of those that return one.
    pub result: Option<i64>,
    /// Name of the result, where it is a code.
    pub error: Option<&'a str>,
    /// Whether the result says that the call failed.
    pub failed: bool,
    pub bytes: Option<u64>,
    pub direction: Option<CopyKind>,
    /// Host memory at one end of a copy; `None`: there is none, or it is not known.
    pub host: Option<HostMemory>,
    /// Whether the call waits for a device by its nature.
    pub blocking: bool,
    /// Handle; 0: the default stream of a context.
    pub stream: Option<u64>,
    /// Of memory that is allocated or freed.
    pub address: Option<u64>,
    /// Bytes of device memory that the process holds after the call.
    pub held: Option<u64>,
    /// Short name of the kernel that is launched.
    pub kernel: Option<&'a str>,
    /// JSON array of frames, innermost first, as docs/output.md has them.
    pub stack: Option<&'a str>,
    /// JSON object.
    pub args: Option<&'a str>,
    /// What follows is known while a trace runs, and of no row of a recording: the number of a call and its caller's.
    pub number: Option<Numbered>,
    /// Documented name, where it is not the symbol.
    pub api: Option<&'a str>,
    /// Bytes that the call has given back.
    pub freed: Option<u64>,
    /// Of the call's time, ns: its thread stood still while probes were put into what it had loaded.
    pub standstill_ns: Option<u64>,
    /// The call itself, for who shows its values in words.
    pub traced: Option<&'a Traced<'a>>,
    /// The fault itself.
    pub fault: Option<&'a Report>,
    /// What a device has done.
    pub activity: Option<&'a Activity>,
    /// What the program calls a phase of its own.
    pub range: Option<&'a Range>,
}

impl<'a> Record<'a> {
    /// A row of `kind` of a process, that says nothing yet.
    #[must_use]
    pub fn new(kind: Kind, at: i64, pid: u32) -> Record<'static> {
        Record {
            kind,
            at,
            ns: None,
            pid,
            tid: pid,
            comm: "",
            layer: "",
            name: "",
            class: Class::Other,
            depth: 0,
            count: 1,
            since_caller: None,
            result: None,
            error: None,
            failed: false,
            bytes: None,
            direction: None,
            host: None,
            blocking: false,
            stream: None,
            address: None,
            held: None,
            kernel: None,
            stack: None,
            args: None,
            number: None,
            api: None,
            freed: None,
            standstill_ns: None,
            traced: None,
            fault: None,
            activity: None,
            range: None,
        }
    }

    /// `count` calls of `function` between `from` and `to` have no records.
    #[must_use]
    pub fn lost(function: &str, count: u64, from: i64, to: i64) -> Record<'_> {
        Record {
            name: function,
            count,
            ns: Some(to.saturating_sub(from).max(0) as u64),
            ..Record::new(Kind::Lost, from, 0)
        }
    }

    /// Bytes that it allocates, copies, fills or has given back.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.bytes.or(self.freed)
    }

    /// When it was over.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.at.saturating_add_unsigned(self.ns.unwrap_or(0))
    }
}

/// What is known of a trace before its first row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub clock: Clock,
    /// The traced command; empty: none was started.
    pub command: Vec<String>,
    /// How functions were hooked.
    pub tier: String,
    pub host: String,
    /// Of gpuscope that recorded it.
    pub tool: String,
}

impl Meta {
    /// Of a trace that begins now, on this machine.
    #[must_use]
    pub fn here(clock: Clock, command: Vec<String>, tier: String) -> Meta {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Meta {
            clock,
            command,
            tier,
            host: host.trim_end().to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Whoever takes records, in the order in which calls were entered as far as the reorder window goes.
pub trait Taker {
    /// Before all records.
    fn start(&mut self, _meta: &Meta) {}
    /// One record.
    fn take(&mut self, record: &Record<'_>);
    /// Totals of everything up to `at`, ns after the start, as a summary has them. Most go by the last of them alone.
    fn totals(&mut self, _at: i64, _totals: &str) {}
}

/// How the records ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending<'a> {
    /// The exact totals, as docs/output.md has them.
    pub summary: Option<&'a str>,
    /// Why there are no more records, if that was not the end of the trace.
    pub cut: Option<&'a str>,
}

impl<'a> Ending<'a> {
    /// The totals as the last record, `at` ns after the start; `None`: there are none.
    #[must_use]
    pub fn totals(&self, at: i64) -> Option<Record<'a>> {
        self.summary.map(|summary| Record {
            args: Some(summary),
            ..Record::new(Kind::Summary, at, 0)
        })
    }
}

/// One format: records into bytes, of a trace that runs or of a recording. What it appends to `out` may go to its
/// destination at once; where that is it does not know.
pub trait Encoder {
    /// Before all records.
    fn start(&mut self, _meta: &Meta, _out: &mut Vec<u8>) {}
    /// One record, but for the summary.
    fn take(&mut self, record: &Record<'_>, out: &mut Vec<u8>);
    /// What was entered before `at` has come, but for calls that last longer than others.
    fn passed(&mut self, _at: i64, _out: &mut Vec<u8>) {}
    /// A second has passed.
    fn tick(&mut self, _out: &mut Vec<u8>) {}
    /// Before the end: a call that has not returned, [`Kind::Open`], whether it was taken as such before or not.
    fn take_unreturned(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.take(record, out);
    }
    /// After all records.
    fn finish(&mut self, _ending: &Ending<'_>, _out: &mut Vec<u8>) {}
    /// What went wrong, if anything did.
    fn failure(&self) -> Option<String> {
        None
    }
    /// What is worth a word to who asked for it, now that all is written.
    fn note(&self) -> Option<String> {
        None
    }
    /// Whether calls are shown: what only is counted is then worth a word.
    fn shows(&self) -> bool {
        true
    }
    /// Whether arguments as JSON are of use.
    fn keeps(&self) -> bool {
        true
    }
    /// Whether what is measured beside calls is: samples, counts, idle times.
    fn measures(&self) -> bool {
        self.keeps()
    }
    /// Whether totals are kept while the trace runs, and there is room for some now: then it takes [`Kind::Snapshot`].
    fn has_room_for_totals(&self) -> bool {
        false
    }
}

impl Encoder for Box<dyn Encoder> {
    fn start(&mut self, meta: &Meta, out: &mut Vec<u8>) {
        self.as_mut().start(meta, out);
    }

    fn take(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.as_mut().take(record, out);
    }

    fn passed(&mut self, at: i64, out: &mut Vec<u8>) {
        self.as_mut().passed(at, out);
    }

    fn tick(&mut self, out: &mut Vec<u8>) {
        self.as_mut().tick(out);
    }

    fn take_unreturned(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.as_mut().take_unreturned(record, out);
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        self.as_mut().finish(ending, out);
    }

    fn failure(&self) -> Option<String> {
        self.as_ref().failure()
    }

    fn note(&self) -> Option<String> {
        self.as_ref().note()
    }

    fn shows(&self) -> bool {
        self.as_ref().shows()
    }

    fn keeps(&self) -> bool {
        self.as_ref().keeps()
    }

    fn measures(&self) -> bool {
        self.as_ref().measures()
    }

    fn has_room_for_totals(&self) -> bool {
        self.as_ref().has_room_for_totals()
    }
}
