//! Who holds what, as plain data for any output.

use super::calls::CallTotals;
use super::process::{Ends, Process, Unseen};
use super::resource::Held;
use crate::driver::tables::ClassKind;

/// The driver's objects and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Those that live, by pid.
    pub processes: Vec<ProcessReport>,
    /// Calls of all processes, those that ended among them: by decoded name, longest total time first.
    pub calls: Vec<(String, CallTotals)>,
}

/// What a process holds. Bytes are those that the driver took, where it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReport {
    pub pid: u32,
    pub calls: CallTotals,
    pub clients: u64,
    pub devices: u64,
    pub channel_groups: u64,
    pub channels: u64,
    /// One for each CUDA context, as far as that was looked at.
    pub context_shares: u64,
    /// GPUs whose address space is under UVM.
    pub uvm_spaces: u64,
    pub vidmem: Held,
    /// The most bytes of `vidmem` at a time.
    pub vidmem_peak_bytes: u64,
    pub sysmem: Held,
    /// Imported, exported, fabric and other memory.
    pub memory: Held,
    /// Addresses under UVM.
    pub ranges: Held,
    /// Bytes of memory laid under them.
    pub mapped_bytes: u64,
    pub cpu_maps: Held,
    pub gpu_maps: Held,
    pub os_events: u64,
    pub ends: Ends,
    pub unseen: Unseen,
}

impl ProcessReport {
    pub(super) fn of(pid: u32, process: &Process) -> Self {
        let count = |kind| process.held(kind).count;
        let maps = process.maps();
        Self {
            pid,
            calls: process.calls(),
            clients: count(ClassKind::Client),
            devices: count(ClassKind::Device),
            channel_groups: count(ClassKind::ChannelGroup),
            channels: count(ClassKind::Channel),
            context_shares: count(ClassKind::ContextShare),
            uvm_spaces: maps.uvm_spaces(),
            vidmem: process.held(ClassKind::Vidmem),
            vidmem_peak_bytes: process.peak_bytes(ClassKind::Vidmem),
            sysmem: process.held(ClassKind::Sysmem),
            memory: process.held(ClassKind::Memory),
            ranges: maps.ranges(),
            mapped_bytes: maps.mapped_bytes(),
            cpu_maps: maps.cpu(),
            gpu_maps: maps.gpu(),
            os_events: maps.os_events(),
            ends: process.ends(),
            unseen: process.unseen(),
        }
    }
}
