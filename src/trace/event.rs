//! One row of a trace, live or recorded. Plain data; borrows its texts.

use crate::catalog::{Class, CopyKind};
use crate::clock::Clock;
use crate::model::work::HostMemory;

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
    Kernel "kernel" "A call of the kernel driver, or of a function of the kernel.",
    Process "process" "A process was forked, executed a program, or exited: its `name`.",
    Lost "lost" "`count` calls of the function `name` have no row.",
    Xid "xid" "The driver reported a fault.",
    Count "count" "`count` calls of the function `name` since the last such row, which have none of their own.",
    Sample "sample" "A measure of a process or thread at this moment: `name`, and its value in `bytes`.",
    Idle "idle" "Nothing that the process submitted can have been running.",
    Summary "summary" "The exact totals of the run, in `args`.",
}

/// One row. Times are CLOCK_MONOTONIC ns since the start of the trace; what began before is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'a> {
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
}

impl Event<'_> {
    /// A row of `kind` of a process, that says nothing yet.
    #[must_use]
    pub fn new(kind: Kind, at: i64, pid: u32) -> Event<'static> {
        Event {
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
        }
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

/// Whoever takes rows, in the order in which calls were entered as far as the reorder window goes.
pub trait Taker {
    /// Before all rows.
    fn start(&mut self, _meta: &Meta) {}
    /// One row.
    fn take(&mut self, event: &Event<'_>);
}
