//! One output format per file. A sink turns calls into bytes; where they go is the tracer's business.

pub(crate) mod aggregate;
pub(crate) mod cost;
pub(crate) mod driver;
pub mod findings;
pub mod json;
pub(crate) mod kernels;
pub mod memory;
pub(crate) mod outside;
mod phases;
pub mod summary;
pub mod text;
pub(crate) mod totals;
pub(crate) mod work;
pub(crate) mod xid;

use crate::catalog::{Class, CopyKind};
use crate::decode::Call;
use crate::driver::{Device, Dialect, Ioctl, Record};
use crate::frame::Shown;
use crate::model::beside::{Happening, Measure};
use crate::model::order::Numbered;
use crate::model::summary::Summary;
use crate::model::work::HostMemory;
use crate::model::xid::Report;

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
    /// What was asked, of calls to the kernel driver.
    pub asked: Option<&'a Asked>,
    /// Where it was called from, innermost first; `None`: not asked for, or not taken.
    pub stack: Option<&'a Shown>,
    /// What the models know of it.
    pub facts: Facts,
}

/// What a call was about, as the models of memory and of work have followed it. `None`: not about such things, or not
/// known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Of a copy, by its addresses where the call does not say.
    pub direction: Option<CopyKind>,
    pub host: Option<HostMemory>,
    /// It waits for a device by its nature.
    pub blocking: bool,
    /// The driver's call within it does.
    pub around_blocking: bool,
    /// Handle; 0: the default stream of a context.
    pub stream: Option<u64>,
    /// Of memory that was allocated or freed.
    pub address: Option<u64>,
    /// Bytes of device memory that the process holds after the call.
    pub held: Option<u64>,
    /// Bytes that the call has given back.
    pub freed: Option<u64>,
    /// Of the call's time, ns: its thread stood still while probes were put into what it had loaded.
    pub standstill_ns: Option<u64>,
}

impl Entry<'_> {
    /// What was called; of the kernel driver, decoded.
    #[must_use]
    pub fn name(&self) -> &str {
        self.asked.map_or(&self.call.row.symbol, |asked| &asked.ioctl.name)
    }

    /// Bytes that it allocates, copies, fills or has given back.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.call.size().or(self.facts.freed)
    }

    /// Bytes a second of a copy that is as long as its call; `None`: it is not, or has failed.
    #[must_use]
    pub fn bandwidth(&self) -> Option<f64> {
        let (call, ns) = (self.call, self.call.header.duration);
        let timed = (self.facts.blocking || self.facts.around_blocking)
            && call.row.class == Class::Copy
            && call.returned()
            && !call.failed();
        let bytes = call.size().filter(|bytes| timed && ns > 0 && *bytes > 0)?;
        Some(bytes as f64 * 1e9 / ns as f64)
    }

    /// Whether its result or the driver's answer says that it failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.asked
            .map_or_else(|| self.call.failed(), |asked| asked.ioctl.failed())
    }
}

/// What a call has asked of the kernel driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `None`: one that could not be opened.
    pub device: Option<Device>,
    pub ioctl: Ioctl,
}

impl Asked {
    /// As the driver of `dialect` understands it.
    #[must_use]
    pub fn of(record: &Record, dialect: Dialect) -> Asked {
        Asked {
            device: record.device,
            ioctl: record.decode(dialect),
        }
    }
}

/// No line at all: of the calls only sums and findings are wanted.
#[derive(Debug, Clone, Copy)]
pub struct NoLines;

impl Sink for NoLines {
    fn call(&mut self, _: &Entry<'_>, _: &mut Vec<u8>) {}
    fn lost(&mut self, _: &str, _: u64, _: u64, _: u64, _: &mut Vec<u8>) {}
    fn shows(&self) -> bool {
        false
    }
}

/// One output format.
pub trait Sink {
    /// Before anything else.
    fn start(&mut self, _out: &mut Vec<u8>) {}
    /// One completed call.
    fn call(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>);
    /// A call has been open for `ns` up to now.
    fn open(&mut self, _entry: &Entry<'_>, _ns: u64, _out: &mut Vec<u8>) {}
    /// What was entered before `at` (CLOCK_MONOTONIC ns) has been written, but for calls that last longer than others.
    fn passed(&mut self, _at: u64, _out: &mut Vec<u8>) {}
    /// Something happened to process `pid` at `at` (CLOCK_MONOTONIC ns).
    fn process(&mut self, _pid: u32, _at: u64, _comm: &str, _what: Happening, _out: &mut Vec<u8>) {}
    /// The driver reported a fault.
    fn xid(&mut self, _report: &Report, _out: &mut Vec<u8>) {}
    /// `count` events of `function` did not fit into the ring between `from` and `to` (CLOCK_MONOTONIC ns).
    fn lost(&mut self, function: &str, count: u64, from: u64, to: u64, out: &mut Vec<u8>);
    /// Whether calls are shown: what only is counted is then worth a word.
    fn shows(&self) -> bool {
        true
    }
    /// Whether [`Self::measure`] and the facts of calls are of use.
    fn measures(&self) -> bool {
        false
    }
    /// Something was measured beside calls.
    fn measure(&mut self, _measure: &Measure, _out: &mut Vec<u8>) {}
    /// A second has passed.
    fn tick(&mut self, _out: &mut Vec<u8>) {}
    /// After everything else.
    fn finish(&mut self, _summary: &Summary, _out: &mut Vec<u8>) {}
}
