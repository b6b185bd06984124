//! What is shown of activities. Plain data, complete: outputs need nothing else.

use super::What;
use super::busy::Span;
use super::coverage::{Coverage, Sampled, part_words};
use super::occupancy::Occupied;
use super::overheads::OverheadTotal;
use super::sums::CauseTotal;
use super::total::Total;
use super::waiting::PartIdle;
use crate::catalog::CopyKind;
use crate::model::kernel_name::KernelName;
use crate::model::work::Certainty;
use std::sync::Arc;

/// What is shown of activities.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// By process and device.
    pub devices: Vec<DeviceReport>,
    /// Of each process that has started CUDA.
    pub coverage: Vec<Coverage>,
    /// Why nothing could be asked for, in words; `None`: it was.
    pub refused: Option<String>,
    /// Of the activities, those whose call was looked for, and found.
    pub matching: Matching,
    /// By process.
    pub overheads: Vec<OverheadTotal>,
    /// Most time first; of activities whose call came from a site that is known.
    pub by_site: Vec<SiteTotal>,
}

impl Report {
    /// Time of all activities, of what ran at the same time each.
    #[must_use]
    pub fn all_ns(&self) -> u64 {
        let devices = self.devices.iter();
        devices.map(DeviceReport::all_ns).fold(0, u64::saturating_add)
    }

    /// Whether all that a device did is in what is said of it.
    #[must_use]
    pub fn is_measured(&self, device: &DeviceReport) -> bool {
        // work that came too late to be sorted in makes it a bound, too
        device.span.late_ns == 0 && self.certainty(device.pid) == Certainty::Measured
    }

    /// Whether some of what devices did is missing, of those that have told of anything.
    #[must_use]
    pub fn misses_some(&self) -> bool {
        self.is_sampled() || self.devices.iter().any(|device| !self.is_measured(device))
    }

    /// Whether some processes were recorded in windows alone.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.coverage.iter().any(|coverage| coverage.windows.is_some())
    }

    /// How a process was recorded, where that was in windows alone.
    #[must_use]
    pub fn windows_of(&self, pid: u32) -> Option<&Sampled> {
        let mut own = self.coverage.iter().filter(|coverage| coverage.pid == pid);
        own.find_map(|coverage| coverage.windows.as_ref())
    }

    /// Which part of the time was recorded, of the process whose devices were seen for longest; `None`: all of it.
    #[must_use]
    pub fn part_words(&self) -> Option<String> {
        let parts = self.devices.iter();
        let parts = parts.filter_map(|device| Some((device.span.measured_ns(), self.windows_of(device.pid)?.of_ns)));
        let (part, of) = parts.max()?;
        Some(part_words(part, of))
    }

    /// How far what is said of a process can be relied on.
    #[must_use]
    pub fn certainty(&self, pid: u32) -> Certainty {
        let mut own = self.coverage.iter().filter(|coverage| coverage.pid == pid);
        match own.all(Coverage::is_whole) {
            true => Certainty::Measured,
            false => Certainty::Bound,
        }
    }
}

/// How many calls were found for activities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Matching {
    pub looked_for: u64,
    pub found: u64,
}

/// Of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyTotal {
    pub direction: Option<CopyKind>,
    pub total: Total,
    pub bytes: u64,
}

/// What devices did because of calls from one site, of one kernel, direction or fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteTotal {
    pub site: u64,
    /// One of them.
    pub what: What,
    pub total: Total,
}

/// Of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelTotal {
    /// `None`: of those without one.
    pub name: Option<Arc<KernelName>>,
    pub total: Total,
    pub occupied: Occupied,
}

/// What a device has done for a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceReport {
    pub pid: u32,
    /// As the process counts them.
    pub device: u32,
    pub kernels: Total,
    /// Of these, parts of graphs' launches.
    pub in_graphs: u64,
    pub memsets: Total,
    /// Launches of graphs that were told of as a whole.
    pub graphs: Total,
    pub copies: Vec<CopyTotal>,
    /// Most time first.
    pub by_kernel: Vec<KernelTotal>,
    /// Those that found no room there.
    pub other_kernels: Total,
    /// From the first begin to the last end.
    pub span: Span,
    /// Why nothing ran in between, most time first: they add up to the idle time. Empty: that was not looked for, or never was so.
    pub causes: Vec<CauseTotal>,
    /// The same of the part between start-up and end; `None`: that is nearly all, or not known.
    pub steady: Option<PartIdle>,
}

impl DeviceReport {
    fn all_ns(&self) -> u64 {
        let copies = self.copies.iter().map(|copies| copies.total.ns);
        let others = self
            .kernels
            .ns
            .saturating_add(self.memsets.ns)
            .saturating_add(self.graphs.ns);
        copies.fold(others, u64::saturating_add)
    }
}
