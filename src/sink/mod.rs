//! One output format per file. A sink turns calls into bytes; where they go is the tracer's business.

pub mod json;
pub mod kernels;
pub mod memory;
pub mod quantity;
pub mod summary;
pub mod text;
pub mod work;

use crate::decode::Call;
use crate::model::frame::Frame;
use crate::model::order::Numbered;
use crate::model::summary::Summary;

/// A call with everything that its line needs.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub call: &'a Call<'a>,
    pub number: Numbered,
    /// Thread name, `?` when unknown.
    pub comm: &'a str,
    /// Label of the layer.
    pub layer: &'a str,
    /// The name of the kernel that it launches, where that is known.
    pub kernel: Option<&'a str>,
    /// Where it was called from, innermost first; `None`: not asked for, or not taken.
    pub stack: Option<&'a [Frame]>,
}

/// What happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    Forked { parent: u32 },
    Executed,
    Exited,
}

/// One output format.
pub trait Sink {
    /// Before anything else.
    fn start(&mut self, _out: &mut Vec<u8>) {}
    /// One completed call.
    fn call(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>);
    /// Something happened to process `pid` at `at` (CLOCK_MONOTONIC ns).
    fn process(&mut self, _pid: u32, _at: u64, _comm: &str, _what: Happening, _out: &mut Vec<u8>) {}
    /// `count` events of `function` did not fit into the ring between `from` and `to` (CLOCK_MONOTONIC ns).
    fn lost(&mut self, function: &str, count: u64, from: u64, to: u64, out: &mut Vec<u8>);
    /// After everything else.
    fn finish(&mut self, _summary: &Summary, _out: &mut Vec<u8>) {}
}

/// Where the clock of events stands in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// CLOCK_MONOTONIC at the start of the trace, ns.
    pub start_monotonic_ns: u64,
    /// The same moment, ns since 1970.
    pub start_unix_ns: u64,
}
