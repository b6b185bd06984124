//! Names for native addresses, from the files that processes map.

use super::mapped::Mapped;
use super::merge::{Native, Part};
use super::names::nameless;
use super::regions::{FileId, Region, region_at};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Files that are kept open, so that addresses can be named after their process has ended.
const MOST_OPEN: usize = 512;
/// Addresses whose names are kept, and are asked for at once.
pub(crate) const MOST_KNOWN: usize = 1 << 16;

/// An address that has outlived its process: which file it is in, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index of the file; `None`: nothing was mapped there.
    pub file: Option<u32>,
    pub offset: u64,
}

/// Names addresses.
#[derive(Default)]
pub(crate) struct Natives {
    mapped: Vec<Mapped>,
    files: HashMap<FileId, u32>,
    fileless: HashMap<String, u32>,
    known: HashMap<Place, Native>,
    open: usize,
    notes: BTreeSet<String>,
}

impl Natives {
    /// Opens the code that process `pid` maps, while it exists.
    pub(crate) fn keep_files(&mut self, pid: u32, regions: &[Region]) {
        for region in regions.iter().filter(|region| region.executable) {
            self.file(pid, region);
        }
    }

    /// Where `address` is, in what process `pid` maps.
    pub(crate) fn place(&mut self, pid: u32, regions: &[Region], address: u64) -> Place {
        let Some(region) = region_at(regions, address) else {
            return Place {
                file: None,
                offset: address,
            };
        };
        let offset = if region.inode == 0 {
            address
        } else {
            region.file_offset(address)
        };
        Place {
            file: Some(self.file(pid, region)),
            offset,
        }
    }

    /// The file of a place that has one, open if it could be.
    pub(crate) fn file_of(&self, place: Place) -> Option<&Mapped> {
        let mapped = self.mapped.get(place.file? as usize)?;
        (!mapped.fileless).then_some(mapped)
    }

    /// Finds the names of at most [`MOST_KNOWN`] places; each file is looked through once for all that are new.
    pub(crate) fn learn(&mut self, places: &[Place]) {
        let mut new = self.unknown(places);
        if self.known.len() + new.values().map(BTreeSet::len).sum::<usize>() > MOST_KNOWN {
            self.known.clear();
            new = self.unknown(places);
        }
        for (file, offsets) in new {
            let offsets: Vec<u64> = offsets.into_iter().collect();
            let named = self.symbolize(file, &offsets);
            let places = offsets.into_iter().map(|offset| Place { file, offset });
            self.known.extend(places.zip(named));
        }
    }

    /// The functions at a place that was learned, innermost first: more than one where some were inlined.
    pub(crate) fn name(&self, place: Place) -> Native {
        let known = self.known.get(&place).cloned();
        known.unwrap_or_else(|| (Part::Other, vec![nameless(None, place.offset)]))
    }

    fn unknown(&self, places: &[Place]) -> BTreeMap<Option<u32>, BTreeSet<u64>> {
        let mut unknown: BTreeMap<Option<u32>, BTreeSet<u64>> = BTreeMap::new();
        for place in places.iter().filter(|place| !self.known.contains_key(place)) {
            unknown.entry(place.file).or_default().insert(place.offset);
        }
        unknown
    }

    fn file(&mut self, pid: u32, region: &Region) -> u32 {
        let next = self.mapped.len() as u32;
        let Some(id) = region.file() else {
            let module = if region.name.is_empty() {
                NO_FILE.to_owned()
            } else {
                region.module()
            };
            let known = *self.fileless.entry(module.clone()).or_insert(next);
            if known == next {
                self.mapped.push(Mapped::new(module, None));
            }
            return known;
        };
        let known = *self.files.entry(id).or_insert(next);
        if known == next {
            self.mapped
                .push(Mapped::new(region.module(), Some(region.mapping().path)));
        }
        let mapped = &mut self.mapped[known as usize];
        if mapped.file.is_none() && self.open < MOST_OPEN {
            mapped.file = region.mapping().open(pid).ok();
            self.open += usize::from(mapped.file.is_some());
        }
        known
    }

    /// Whether files are open.
    pub(crate) fn keeps_files(&self) -> bool {
        self.open > 0
    }

    /// Closes files that no process maps. Their numbers may come again, for others.
    pub(crate) fn keep_only(&mut self, mapped: &HashSet<FileId>) {
        for (_, index) in self.files.extract_if(|id, _| !mapped.contains(id)) {
            let file = self
                .mapped
                .get_mut(index as usize)
                .and_then(|mapped| mapped.file.take());
            self.open -= usize::from(file.is_some());
        }
    }

    /// What cannot be told of files.
    pub(crate) fn take_notes(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.notes)
    }

    fn symbolize(&mut self, file: Option<u32>, offsets: &[u64]) -> Vec<Native> {
        match file.and_then(|file| self.mapped.get(file as usize)) {
            Some(mapped) => mapped.functions(offsets, &mut self.notes),
            None => offsets
                .iter()
                .map(|offset| (Part::Other, vec![nameless(None, *offset)]))
                .collect(),
        }
    }
}

const NO_FILE: &str = "[code without a file]";
