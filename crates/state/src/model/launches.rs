//! Launches by kernel: exact totals of the counting plane, grouped by the name of what was launched.
//!
//! Owns which id is which kernel. Counts only what the driver was asked for: a launch of the runtime is one of its.

use super::kernel_name::KernelName;
use super::quantile::quantile_ns;
use super::work::GraphKernel;
use crate::wire::{self, KernelEvent, KernelStream, ShapeKey, Total, TotalKey};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Bytes of names that are kept, of all kernels.
const NAME_BYTES: usize = 64 << 20;
/// Kernels that are told apart by name.
const MOST_KERNELS: usize = 65_536;
/// Kernels of living processes.
const MOST_IDS: usize = 1 << 18;
/// Shapes of one kernel that are told apart.
const MOST_SHAPES: usize = 1024;
/// Shapes in a report.
const TOP_SHAPES: usize = 3;

/// Grid, block and dynamic shared memory of a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
}

/// What is known of one kernel, in all processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// `None`: see `reason`.
    pub name: Option<Arc<KernelName>>,
    /// Where the function of the host lies that launches it, if it is known by that alone.
    pub place: Option<Arc<str>>,
    /// Why it has no name.
    pub reason: Option<&'static str>,
    /// That succeeded; where results are not seen, all.
    pub launches: u64,
    pub failed: u64,
    /// Of those whose shape the call says.
    pub threads: u64,
    /// Time in the launching calls, as the next three.
    pub total_ns: u64,
    pub max_ns: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    /// False: seen at entry only.
    pub timed: bool,
    /// The most frequent ones.
    pub shapes: Vec<(Shape, u64)>,
    /// Different ones.
    pub shape_count: usize,
    pub stream: Streams,
    pub processes: usize,
    /// Of the launches, those that were recorded into a graph instead of being run.
    pub captured: u64,
    /// Runs by launches of graphs, beside them; of graphs whose making was seen.
    pub in_graphs: u64,
}

impl Kernel {
    /// How it is called in text.
    #[must_use]
    pub fn shown(&self, full: bool) -> &str {
        match &self.name {
            Some(name) if full => &name.full,
            Some(name) => &name.short,
            None => self.place.as_deref().unwrap_or("?"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Symbol(Arc<str>),
    Place(Arc<str>),
    /// A reason of `wire::KERNEL_…`.
    Unknown(u64),
}

/// What an id stands for.
#[derive(Debug, Clone)]
enum Known {
    Name(Arc<KernelName>),
    /// A function of the host without a name.
    Place(Arc<str>),
    /// What should be a name is none.
    Nothing,
    /// It could not be read: a reason of `wire::KERNEL_…`.
    Unreadable(u64),
}

/// Where a kernel was launched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Streams {
    #[default]
    Unknown,
    /// On this stream of this process alone.
    One(u32, u64),
    Several,
}

#[derive(Debug, Clone, Default)]
struct Sum {
    name: Option<Arc<KernelName>>,
    total: Option<Box<Total>>,
    shapes: HashMap<Shape, u64>,
    stream: Streams,
    processes: HashSet<u32>,
    captured: u64,
    in_graphs: u64,
}

/// Launches by kernel.
#[derive(Debug, Clone, Default)]
pub struct Launches {
    /// By id, of processes that live.
    ids: HashMap<u64, (u32, Known)>,
    names: HashMap<Vec<u8>, Option<Arc<KernelName>>>,
    /// Short names that are taken.
    shorts: HashSet<String>,
    name_bytes: usize,
    sums: BTreeMap<Key, Sum>,
}

impl Launches {
    /// A process launches a kernel for the first time.
    pub fn learn(&mut self, event: &KernelEvent<'_>) {
        let known = self.names.get(event.name).cloned();
        let name = match known {
            Some(name) => name,
            None if self.name_bytes + event.name.len() > NAME_BYTES => return,
            None => self.read(event.name, event.cut),
        };
        self.know(event.tgid, event.id, name.map_or(Known::Nothing, Known::Name));
    }

    /// What the kernel of that symbol is called, as launches have it. `None`: it is no name, or there is no room for more.
    pub fn named(&mut self, (symbol, cut): (&[u8], bool)) -> Option<Arc<KernelName>> {
        let longest = wire::KERNEL_NAME - 1;
        let (name, cut) = (symbol.get(..longest).unwrap_or(symbol), cut || symbol.len() >= longest);
        match self.names.get(name) {
            Some(known) => known.clone(),
            None if self.name_bytes + name.len() > NAME_BYTES => None,
            None => self.read(name, cut),
        }
    }

    /// A function of the host launches the kernel of that name.
    pub fn name_stub(&mut self, tgid: u32, id: u64, name: &[u8]) {
        self.learn(&KernelEvent {
            tgid,
            id,
            handle: 0,
            tag: wire::KERNEL_STUB,
            name,
            cut: name.len() >= wire::KERNEL_NAME - 1,
        });
    }

    /// A function of the host at `place` launches a kernel whose name is not to be found.
    pub fn place(&mut self, tgid: u32, id: u64, place: &str) {
        self.know(tgid, id, Known::Place(place.into()));
    }

    /// The name of a kernel cannot be read, for a reason of `wire::KERNEL_…`.
    pub fn give_up(&mut self, tgid: u32, id: u64, why: u64) {
        self.know(tgid, id, Known::Unreadable(why));
    }

    fn know(&mut self, tgid: u32, id: u64, known: Known) {
        if self.ids.len() < MOST_IDS || self.ids.contains_key(&id) {
            self.ids.insert(id, (tgid, known));
        }
    }

    fn read(&mut self, symbol: &[u8], cut: bool) -> Option<Arc<KernelName>> {
        let name = KernelName::read(symbol, cut).map(|name| match self.shorts.contains(&name.short) {
            true => name.told_apart(|short| self.shorts.contains(short)),
            false => name,
        });
        let name = name.map(Arc::new);
        self.shorts.extend(name.iter().map(|name| name.short.clone()));
        let text = name.as_ref().map_or(0, |name| name.full.len() + 2 * name.short.len());
        self.name_bytes += 2 * symbol.len() + text;
        self.names.insert(symbol.to_vec(), name.clone());
        name
    }

    /// The kernel with that id.
    #[must_use]
    pub fn name(&self, id: u64) -> Option<&Arc<KernelName>> {
        match &self.ids.get(&id)?.1 {
            Known::Name(name) => Some(name),
            Known::Place(_) | Known::Nothing | Known::Unreadable(_) => None,
        }
    }

    /// The short name of the kernel with that id, or else the place of what launches it, if that is the same in other
    /// processes.
    #[must_use]
    pub fn label(&self, id: u64) -> Option<Arc<str>> {
        match &self.ids.get(&id)?.1 {
            Known::Name(name) => Some(name.short.as_str().into()),
            // an address without its file
            Known::Place(place) if place.starts_with("0x") => None,
            Known::Place(place) => Some(Arc::clone(place)),
            Known::Nothing | Known::Unreadable(_) => None,
        }
    }

    /// Adds one entry of the counting plane, of a row that launches.
    pub fn add(&mut self, key: &TotalKey, total: &Total) {
        let sum = self.sum_of(key.variant);
        sum.processes.insert(key.tgid);
        match sum.total.as_mut() {
            Some(known) => known.add(total),
            None => sum.total = Some(Box::new(*total)),
        }
    }

    /// Adds one entry of the table of shapes.
    pub(crate) fn add_shape(&mut self, key: &ShapeKey, count: u64) {
        let [gx, gy, gz, bx, by, bz, shared_bytes] = key.number;
        let shape = Shape {
            grid: [gx, gy, gz],
            block: [bx, by, bz],
            shared_bytes,
        };
        let shapes = &mut self.sum_of(key.kernel).shapes;
        if shapes.len() < MOST_SHAPES || shapes.contains_key(&shape) {
            *shapes.entry(shape).or_default() += count;
        }
    }

    /// Graphs ran a kernel, and recorded launches of it.
    pub fn add_graph_kernel(&mut self, kernel: &GraphKernel) {
        let sum = self.sum_of(kernel.id);
        sum.in_graphs += kernel.runs;
        sum.captured += kernel.captured;
    }

    /// Adds shapes with their counts, and streams.
    pub fn add_launched(&mut self, shapes: &[(ShapeKey, u64)], streams: &[KernelStream]) {
        for (key, count) in shapes {
            self.add_shape(key, *count);
        }
        for launched in streams {
            let known = &mut self.sum_of(launched.kernel).stream;
            let this = (launched.tgid, launched.stream);
            *known = match *known {
                Streams::Unknown if !launched.several => Streams::One(this.0, this.1),
                Streams::One(tgid, stream) if (tgid, stream) == this && !launched.several => *known,
                _ => Streams::Several,
            };
        }
    }

    fn sum_of(&mut self, id: u64) -> &mut Sum {
        let name = self.name(id).cloned();
        let key = match &name {
            Some(name) => Key::Symbol(name.symbol.as_str().into()),
            None if id < wire::KERNEL_FIRST_ID => Key::Unknown(id),
            None => match self.ids.get(&id) {
                Some((_, Known::Place(place))) => Key::Place(Arc::clone(place)),
                Some((_, Known::Unreadable(why))) => Key::Unknown(*why),
                Some(_) => Key::Unknown(wire::KERNEL_FOREIGN),
                None => Key::Unknown(LOST),
            },
        };
        let full = self.sums.len() >= MOST_KERNELS && !self.sums.contains_key(&key);
        let key = if full { Key::Unknown(wire::KERNEL_FULL) } else { key };
        let sum = self.sums.entry(key).or_default();
        sum.name = name.filter(|_| !full).or(sum.name.take());
        sum
    }

    /// Processes have ended, and all their totals were added.
    pub fn forget(&mut self, ended: &dyn Fn(u32) -> bool) {
        self.ids.retain(|_, (tgid, _)| !ended(*tgid));
    }

    /// Whether a process has launched a kernel by name.
    #[must_use]
    pub fn knows_any(&self, of: &dyn Fn(u32) -> bool) -> bool {
        self.ids.values().any(|(tgid, _)| of(*tgid))
    }

    /// Everything, most launches first.
    #[must_use]
    pub fn report(&self) -> Vec<Kernel> {
        let mut kernels: Vec<Kernel> = self.sums.iter().filter_map(|(key, sum)| sum.report(key)).collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse((kernel.launches, kernel.total_ns)));
        kernels
    }
}

impl Sum {
    fn report(&self, key: &Key) -> Option<Kernel> {
        let ran = self.total.is_some() || self.in_graphs > 0;
        let total = self.total.as_deref().unwrap_or(&Total::NONE);
        let mut shapes: Vec<(Shape, u64)> = self.shapes.iter().map(|(shape, count)| (*shape, *count)).collect();
        shapes.sort_by_key(|(shape, count)| (std::cmp::Reverse(*count), *shape));
        let shape_count = shapes.len();
        shapes.truncate(TOP_SHAPES);
        let reason = match key {
            Key::Symbol(_) => None,
            Key::Place(_) => Some(NO_STUB),
            Key::Unknown(reason) => Some(why(*reason)),
        };
        ran.then_some(Kernel {
            name: self.name.clone(),
            place: match key {
                Key::Place(place) => Some(Arc::clone(place)),
                Key::Symbol(_) | Key::Unknown(_) => None,
            },
            reason,
            launches: total.calls() - total.errors.min(total.calls()),
            failed: total.errors,
            threads: total.bytes,
            total_ns: total.total_ns,
            max_ns: total.max_ns,
            p50_ns: quantile_ns(total, 0.5),
            p99_ns: quantile_ns(total, 0.99),
            timed: total.untimed == 0,
            shapes,
            shape_count,
            stream: self.stream,
            processes: self.processes.len(),
            captured: self.captured,
            in_graphs: self.in_graphs,
        })
    }
}

/// An id whose name has not come.
const LOST: u64 = 0;

const NO_STUB: &str =
    "the function of the program that launches it is neither registered by its file's code nor has it a symbol";

fn why(reason: u64) -> &'static str {
    match reason {
        LOST => "the name did not fit into its ring or table",
        wire::KERNEL_NO_ARGS => "the arguments of the call were not kept",
        wire::KERNEL_UNREADABLE => "the handle could not be read",
        wire::KERNEL_FOREIGN => "the handle leads to no name: a driver that keeps it elsewhere, or no kernel",
        wire::KERNEL_NO_NAME => "the name could not be read",
        _ => "more kernels than there is room for",
    }
}

#[cfg(test)]
#[path = "launches_tests.rs"]
mod tests;
