//! What is told beside calls: what happened to processes, and what was measured.

use super::activity::{OverheadKind, Waited, Why};
use crate::catalog::Class;
use std::rc::Rc;

/// What happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    Forked {
        parent: u32,
    },
    Executed,
    Exited,
    /// It was ended by a signal.
    Killed {
        signal: u32,
    },
}

/// What was measured beside calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// CLOCK_MONOTONIC ns; of what lasts, its begin.
    pub at: u64,
    /// 0: of several processes.
    pub pid: u32,
    /// 0: of no single thread.
    pub tid: u32,
    pub what: Measured,
}

/// See [`Measure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measured {
    /// Calls of a function since it was last told of, which become no lines.
    Count {
        layer: String,
        function: String,
        class: Class,
        calls: u64,
    },
    /// A number at a moment.
    Value { name: String, value: u64 },
    /// Nothing that was submitted was running. `why`: that was measured, and is the cause; `None`: it follows from calls.
    Idle { ns: u64, devices: Waited, why: Option<Why> },
    /// CUPTI or the driver took time for itself.
    Overhead { ns: u64, kind: OverheadKind },
    /// A sample of a thread outside CUDA, which stands for so long. The stack: as rows have it; empty: not known.
    Outside { ns: u64, running: bool, stack: Rc<str> },
    /// A look at it `ns` after a call, less than a millisecond.
    Between { ns: u64, stack: Rc<str> },
}
