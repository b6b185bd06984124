//! The rules by which CUDA reads `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`.
//!
//! Documented are: indices or UUIDs, abbreviated ones too; an entry that fits no device ends the list; empty hides
//! all. The rest was seen of driver 580: an entry that names a device for a second time, and an order of another
//! name, make `cuInit` fail, so that no device is visible; numbers are read as C's `strtoul` does, whatever follows
//! them; digits of a UUID may be in either case and without dashes, `GPU-` may not; the first entry decides whether
//! indices or UUIDs are meant.

use super::identifier::{digits, number, of_uuid};
use super::{Device, MigDevice};

/// What one entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick<'a> {
    Gpu(&'a Device),
    Part(&'a MigDevice),
}

impl<'a> Pick<'a> {
    pub(super) fn uuid(self) -> &'a str {
        match self {
            Pick::Gpu(device) => &device.uuid,
            Pick::Part(part) => &part.uuid,
        }
    }
}

/// What a list of visible devices comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice<'a> {
    pub picks: Vec<Pick<'a>>,
    /// Whether the devices' order in CUDA plays a part.
    pub by_index: bool,
    /// Why there is nothing, or less than was asked for.
    pub problem: Option<String>,
}

/// Reads a list; `devices` are in CUDA's order.
pub(super) fn choose<'a>(list: Option<&str>, devices: &[&'a Device]) -> Choice<'a> {
    let Some(list) = list else {
        return choice(devices.iter().map(|device| Pick::Gpu(device)).collect(), true, None);
    };
    if list.is_empty() {
        return choice(
            Vec::new(),
            false,
            Some("CUDA_VISIBLE_DEVICES is empty: no device is visible".to_owned()),
        );
    }
    let kind = Kind::of(list);
    let mut picks: Vec<Pick> = Vec::new();
    for entry in list.split(',') {
        let Some(pick) = kind.find(entry, devices) else {
            // A last comma is no mistake that anyone would want to hear of.
            let problem = (!entry.is_empty() || picks.is_empty())
                .then(|| format!("{entry:?} in CUDA_VISIBLE_DEVICES fits no device and ends the list"));
            return choice(picks, kind == Kind::Index, problem);
        };
        if picks.contains(&pick) {
            let problem =
                format!("{entry:?} in CUDA_VISIBLE_DEVICES names a device for a second time: no device is visible");
            return choice(Vec::new(), false, Some(problem));
        }
        picks.push(pick);
    }
    choice(picks, kind == Kind::Index, None)
}

fn choice(picks: Vec<Pick>, by_index: bool, problem: Option<String>) -> Choice {
    Choice {
        picks,
        by_index,
        problem,
    }
}

/// What the entries of a list are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Index,
    Gpu,
    Mig,
}

impl Kind {
    fn of(list: &str) -> Kind {
        match list.get(..4) {
            Some("GPU-") => Kind::Gpu,
            Some("MIG-") => Kind::Mig,
            _ => Kind::Index,
        }
    }

    fn find<'a>(self, entry: &str, devices: &[&'a Device]) -> Option<Pick<'a>> {
        match self {
            Kind::Index => devices.get(number(entry)? as usize).map(|device| Pick::Gpu(device)),
            Kind::Gpu => gpu(entry.strip_prefix("GPU-")?, devices),
            Kind::Mig => part(entry, devices),
        }
    }
}

fn gpu<'a>(entry: &str, devices: &[&'a Device]) -> Option<Pick<'a>> {
    let wanted = digits(entry)?;
    only(
        devices
            .iter()
            .filter(|device| begins(&device.uuid, &wanted))
            .map(|device| Pick::Gpu(device)),
    )
}

/// `MIG-UUID`, or `MIG-GPU-UUID/GI/CI` as drivers before 470 had it. A GPU's own digits after `MIG-` name the GPU.
fn part<'a>(entry: &str, devices: &[&'a Device]) -> Option<Pick<'a>> {
    let rest = entry.strip_prefix("MIG-")?;
    if let Some(rest) = rest.strip_prefix("GPU-") {
        return old_part(rest, devices);
    }
    let wanted = digits(rest)?;
    let parts = parts(devices)
        .filter(|part| begins(&part.uuid, &wanted))
        .map(Pick::Part);
    let gpus = devices
        .iter()
        .filter(|device| begins(&device.uuid, &wanted))
        .map(|device| Pick::Gpu(device));
    only(parts.chain(gpus))
}

fn old_part<'a>(rest: &str, devices: &[&'a Device]) -> Option<Pick<'a>> {
    let mut words = rest.split('/');
    let (wanted, instance, compute) = (digits(words.next()?)?, number(words.next()?)?, number(words.next()?)?);
    let is_it = |part: &&MigDevice| {
        begins(&part.parent, &wanted) && (part.gpu_instance, part.compute_instance) == (instance, compute)
    };
    only(parts(devices).filter(is_it).map(Pick::Part))
}

fn parts<'a>(devices: &[&'a Device]) -> impl Iterator<Item = &'a MigDevice> {
    devices.iter().flat_map(|device| device.parts())
}

fn begins(uuid: &str, digits: &str) -> bool {
    of_uuid(uuid).is_some_and(|uuid| uuid.starts_with(digits))
}

/// An abbreviation that fits two devices fits none.
fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// In which order CUDA counts devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    FastestFirst,
    PciBusId,
}

impl Order {
    /// `None`: CUDA refuses to start.
    pub(super) fn parse(text: Option<&str>) -> Option<Order> {
        match text {
            None | Some("FASTEST_FIRST") => Some(Order::FastestFirst),
            Some("PCI_BUS_ID") => Some(Order::PciBusId),
            Some(_) => None,
        }
    }
}

/// By bus; as text, which has leading zeros, except that drivers write domains of four and of eight digits.
pub(super) fn by_bus(devices: &[Device]) -> Vec<&Device> {
    let mut sorted: Vec<&Device> = devices.iter().collect();
    sorted.sort_by_key(|device| (format!("{:0>16}", device.pci_bus_id.to_ascii_lowercase()), device.index));
    sorted
}
