//! Activities added up, by process and device, and by kernel.

use super::busy::Busy;
use super::occupancy::{Limits, Shape};
use super::report::{CopyTotal, DeviceReport, KernelTotal};
use super::total::Total;
use super::windows::{Turn, Windows};
use super::{Activity, What};
use crate::catalog::CopyKind;
use crate::model::kernel_name::KernelName;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Kernels that are told apart by name, of one device of a process; the rest counts together.
const MOST_KERNELS: usize = 1 << 14;
/// Devices whose limits are kept.
const MOST_DEVICES: usize = 1 << 12;
/// Launches of a device that are told apart by kernel and shape until its limits are known; of more there is no occupancy.
const MOST_SHAPES: usize = 1 << 12;

/// Activities added up.
#[derive(Debug, Clone, Default)]
pub struct Account {
    devices: BTreeMap<(u32, u32), Device>,
    /// By process and device.
    limits: HashMap<(u32, u32), Limits>,
    /// By process, of those that are not recorded all the time.
    windows: HashMap<u32, Windows>,
}

#[derive(Debug, Clone, Default)]
struct Device {
    kernels: Total,
    /// Of these, parts of graphs' launches.
    in_graphs: u64,
    memsets: Total,
    /// As a whole.
    graphs: Total,
    copies: BTreeMap<Option<CopyKind>, CopyTotal>,
    /// By the address of the name, which each symbol has once; 0: without one.
    by_kernel: HashMap<usize, KernelTotal>,
    others: Total,
    /// Time by kernel and shape, of launches before the limits of the device were known.
    unfitted: HashMap<(usize, Shape), u64>,
    busy: Busy,
}

impl Account {
    /// Adds one.
    pub fn add(&mut self, activity: &Activity) {
        let key = (activity.pid, activity.device);
        let device = self.devices.entry(key).or_default();
        device.add(activity, self.limits.get(&key));
        if !activity.is_of_device() {
            return;
        }
        match self.windows.get(&activity.pid) {
            None => device.busy.add(activity.begin, activity.end),
            Some(windows) => windows
                .parts(activity.begin, activity.end)
                .for_each(|(begin, end)| device.busy.add(begin, end)),
        }
    }

    /// What the multiprocessors of a device have room for, as a process counts its devices.
    pub fn limit(&mut self, pid: u32, device: u32, limits: Limits) {
        if self.limits.len() < MOST_DEVICES {
            self.limits.insert((pid, device), limits);
        }
        if let Some(known) = self.devices.get_mut(&(pid, device)) {
            known.fit(&limits);
        }
    }

    /// Recording of a process begins, or ends for a while.
    pub fn turn(&mut self, pid: u32, turn: Turn) {
        self.windows.entry(pid).or_default().turn(turn);
        let own = self.devices.range_mut((pid, 0)..=(pid, u32::MAX));
        if let Turn::Closed(at) = turn {
            own.for_each(|(_, device)| device.busy.close(at));
        }
    }

    /// What there is so far, most time first.
    #[must_use]
    pub fn report(&self) -> Vec<DeviceReport> {
        let devices = self.devices.iter();
        devices
            .map(|((pid, number), device)| device.report(*pid, *number))
            .collect()
    }
}

impl Device {
    fn add(&mut self, activity: &Activity, limits: Option<&Limits>) {
        let ns = activity.ns();
        match &activity.what {
            What::Kernel {
                name,
                grid,
                block,
                registers,
                shared_bytes,
            } => {
                self.kernels.add(ns);
                self.in_graphs += u64::from(activity.graph.is_some());
                self.add_kernel(name.as_ref(), ns);
                let shape = Shape::new(*grid, *block, *registers, *shared_bytes);
                self.add_shape(key_of(name.as_ref()), shape, ns, limits);
            }
            What::Copy { direction, bytes, .. } => {
                let copies = self.copies.entry(*direction).or_default();
                copies.direction = *direction;
                copies.total.add(ns);
                copies.bytes = copies.bytes.saturating_add(*bytes);
            }
            What::Memset { .. } => self.memsets.add(ns),
            What::Graph => self.graphs.add(ns),
        }
    }

    fn add_kernel(&mut self, name: Option<&Arc<KernelName>>, ns: u64) {
        let key = key_of(name);
        let is_known = self.by_kernel.contains_key(&key);
        if !is_known && self.by_kernel.len() >= MOST_KERNELS {
            return self.others.add(ns);
        }
        let kernel = self.by_kernel.entry(key).or_default();
        if !is_known {
            kernel.name = name.cloned();
        }
        kernel.total.add(ns);
    }

    fn add_shape(&mut self, key: usize, shape: Shape, ns: u64, limits: Option<&Limits>) {
        let Some(limits) = limits else {
            let has_room = self.unfitted.len() < MOST_SHAPES || self.unfitted.contains_key(&(key, shape));
            if has_room {
                let sum = self.unfitted.entry((key, shape)).or_default();
                *sum = sum.saturating_add(ns);
            }
            return;
        };
        if let (Some(kernel), Some(occupancy)) = (self.by_kernel.get_mut(&key), limits.occupancy(&shape)) {
            kernel.occupied.add(ns, occupancy);
        }
    }

    fn fit(&mut self, limits: &Limits) {
        for ((key, shape), ns) in std::mem::take(&mut self.unfitted) {
            self.add_shape(key, shape, ns, Some(limits));
        }
    }

    fn report(&self, pid: u32, device: u32) -> DeviceReport {
        let symbol = |kernel: &KernelTotal| kernel.name.as_ref().map(|name| name.symbol.clone());
        let mut kernels: Vec<KernelTotal> = self.by_kernel.values().cloned().collect();
        kernels.sort_by_cached_key(|kernel| (std::cmp::Reverse(kernel.total.ns), symbol(kernel)));
        DeviceReport {
            pid,
            device,
            kernels: self.kernels,
            in_graphs: self.in_graphs,
            memsets: self.memsets,
            graphs: self.graphs,
            copies: self.copies.values().cloned().collect(),
            by_kernel: kernels,
            other_kernels: self.others,
            span: self.busy.span().unwrap_or_default(),
            causes: Vec::new(),
            steady: None,
        }
    }
}

/// See [`Device::by_kernel`].
fn key_of(name: Option<&Arc<KernelName>>) -> usize {
    name.map_or(0, |name| Arc::as_ptr(name) as usize)
}
