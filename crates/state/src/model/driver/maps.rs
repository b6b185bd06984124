//! Addresses that a process has of the driver's memory, and descriptors that wait for the GPU.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::FileId;
use super::resource::Held;
use crate::driver::Act;

#[derive(Debug, Clone, Copy)]
struct Range {
    file: FileId,
    bytes: u64,
    mapped: u64,
}

/// The maps and events of a process.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    ranges: BTreeMap<u64, Range>,
    spaces: HashSet<(FileId, [u8; 16])>,
    events: HashMap<(u32, i32), FileId>,
    cpu: HashMap<(u32, u32), Vec<u64>>,
    gpu: HashMap<(u32, u32, u64), u64>,
}

impl Maps {
    /// Ranges of addresses under UVM.
    #[must_use]
    pub(crate) fn ranges(&self) -> Held {
        sum(self.ranges.values().map(|range| range.bytes))
    }

    /// Bytes of memory laid under the addresses of ranges; what is laid there twice counts twice.
    #[must_use]
    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.ranges
            .values()
            .fold(0, |sum, range| sum.saturating_add(range.mapped))
    }

    /// Pieces of objects that the program may mmap.
    #[must_use]
    pub(crate) fn cpu(&self) -> Held {
        sum(self.cpu.values().flatten().copied())
    }

    /// Addresses on the GPU that the resource manager gave.
    #[must_use]
    pub(crate) fn gpu(&self) -> Held {
        sum(self.gpu.values().copied())
    }

    /// Descriptors that wait for the GPU.
    #[must_use]
    pub(crate) fn os_events(&self) -> u64 {
        self.events.len() as u64
    }

    /// GPUs whose address space is under UVM.
    #[must_use]
    pub(crate) fn uvm_spaces(&self) -> u64 {
        self.spaces.len() as u64
    }

    /// Takes a change that concerns maps; false when it ends or uses what is not known.
    pub(super) fn apply(&mut self, file: FileId, act: Act) -> bool {
        match act {
            Act::MapCpu { client, object, bytes } => self.cpu.entry((client, object)).or_default().push(bytes),
            Act::UnmapCpu { client, object } => return self.unmap_cpu(client, object),
            Act::MapGpu {
                client,
                space,
                address,
                bytes,
            } => {
                self.gpu.insert((client, space, address), bytes);
            }
            Act::UnmapGpu { client, space, address } => return self.gpu.remove(&(client, space, address)).is_some(),
            Act::OpenEvent { client, descriptor } => {
                self.events.insert((client, descriptor), file);
            }
            Act::CloseEvent { client, descriptor } => return self.events.remove(&(client, descriptor)).is_some(),
            act => return self.address(file, act),
        }
        true
    }

    fn address(&mut self, file: FileId, act: Act) -> bool {
        match act {
            Act::OpenRange { base, bytes } => {
                self.ranges.insert(base, Range { file, bytes, mapped: 0 });
            }
            Act::CloseRange { base } => return self.ranges.remove(&base).is_some(),
            Act::MapRange { base, bytes } => return self.map_range(base, bytes),
            Act::OpenSpace { gpu } => {
                self.spaces.insert((file, gpu));
            }
            Act::CloseSpace { gpu } => return self.spaces.remove(&(file, gpu)),
            _ => {}
        }
        true
    }

    /// Memory may be laid under a part of a range.
    fn map_range(&mut self, base: u64, bytes: u64) -> bool {
        let Some((start, range)) = self.ranges.range_mut(..=base).next_back() else {
            return false;
        };
        let inside = base - start < range.bytes;
        if inside {
            range.mapped = range.mapped.saturating_add(bytes);
        }
        inside
    }

    /// An object may be mapped several times; which of these is unmapped makes no difference but for its size.
    fn unmap_cpu(&mut self, client: u32, object: u32) -> bool {
        let Some(maps) = self.cpu.get_mut(&(client, object)) else {
            return false;
        };
        let known = maps.pop().is_some();
        if maps.is_empty() {
            self.cpu.remove(&(client, object));
        }
        known
    }

    /// Ends the maps of a client's objects that live no more.
    pub(super) fn end_below(&mut self, client: u32, lives: impl Fn(u32) -> bool) {
        self.cpu.retain(|(of, object), _| *of != client || lives(*object));
        self.gpu.retain(|(of, space, _), _| *of != client || lives(*space));
    }

    /// Ends the events of a client that has ended.
    pub(super) fn end_client(&mut self, client: u32) {
        self.events.retain(|(of, _), _| *of != client);
    }

    /// Ends what was made through a file.
    pub(super) fn close(&mut self, file: FileId) {
        self.ranges.retain(|_, range| range.file != file);
        self.spaces.retain(|(of, _)| *of != file);
        self.events.retain(|_, of| *of != file);
    }
}

fn sum(bytes: impl Iterator<Item = u64>) -> Held {
    let mut held = Held::default();
    for bytes in bytes {
        held.add(Some(bytes));
    }
    held
}
