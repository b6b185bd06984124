//! Names for native addresses, from the files that processes map.

use super::debug_info::DebugInfo;
use super::demangle::demangle;
use super::merge::{Native, Part, part_of};
use super::names::short;
use super::regions::{FileId, Region, region_at};
use crate::elf::ElfFile;
use crate::model::frame::{Frame, Language};
use crate::probe::discover::descriptor_path;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::PathBuf;

/// Files that are kept open, so that addresses can be named after their process has ended.
const MOST_OPEN: usize = 512;
/// Addresses whose names are kept, and are asked for at once.
pub const MOST_KNOWN: usize = 1 << 16;

/// An address that has outlived its process: which file it is in, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index of the file; `None`: nothing was mapped there.
    file: Option<u32>,
    offset: u64,
}

/// A file that was mapped, or what the kernel maps in place of one.
struct Mapped {
    module: String,
    path: PathBuf,
    /// `None`: there is none, or it could not be opened.
    file: Option<File>,
    /// It is the kernel's, or code made at run time.
    fileless: bool,
}

/// Names addresses.
#[derive(Default)]
pub struct Natives {
    mapped: Vec<Mapped>,
    files: HashMap<FileId, u32>,
    fileless: HashMap<String, u32>,
    known: HashMap<Place, Native>,
    open: usize,
}

impl Natives {
    /// Opens the code that process `pid` maps, while it exists.
    pub fn keep_files(&mut self, pid: u32, regions: &[Region]) {
        for region in regions.iter().filter(|region| region.executable) {
            self.file(pid, region);
        }
    }

    /// Where `address` is, in what process `pid` maps.
    pub fn place(&mut self, pid: u32, regions: &[Region], address: u64) -> Place {
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

    /// Finds the names of at most [`MOST_KNOWN`] places; each file is looked through once for all that are new.
    pub fn learn(&mut self, places: &[Place]) {
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
    pub fn name(&self, place: Place) -> Native {
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
                self.mapped.push(Mapped {
                    module,
                    path: PathBuf::new(),
                    file: None,
                    fileless: true,
                });
            }
            return known;
        };
        let known = *self.files.entry(id).or_insert(next);
        if known == next {
            self.mapped.push(Mapped {
                module: region.module(),
                path: region.mapping().path,
                file: None,
                fileless: false,
            });
        }
        let mapped = &mut self.mapped[known as usize];
        if mapped.file.is_none() && self.open < MOST_OPEN {
            mapped.file = region.mapping().open(pid).ok();
            self.open += usize::from(mapped.file.is_some());
        }
        known
    }

    fn symbolize(&self, file: Option<u32>, offsets: &[u64]) -> Vec<Native> {
        match file.and_then(|file| self.mapped.get(file as usize)) {
            Some(mapped) => mapped.functions(offsets),
            None => offsets
                .iter()
                .map(|offset| (Part::Other, vec![nameless(None, *offset)]))
                .collect(),
        }
    }
}

impl Mapped {
    fn functions(&self, offsets: &[u64]) -> Vec<Native> {
        if self.fileless {
            return offsets.iter().map(|offset| self.fileless(*offset)).collect();
        }
        // through the open file: right whatever became of its name, in every mount namespace
        let elf = self
            .file
            .as_ref()
            .and_then(|file| ElfFile::open(descriptor_path(file)).ok());
        let named = elf.map_or_else(|| self.nameless(offsets), |elf| self.functions_of(&elf, offsets));
        let part = |frames: &[Frame]| {
            frames
                .last()
                .map_or(Part::Other, |frame| part_of(&frame.function, &self.module))
        };
        named.into_iter().map(|frames| (part(&frames), frames)).collect()
    }

    fn functions_of(&self, elf: &ElfFile, offsets: &[u64]) -> Vec<Vec<Frame>> {
        let mut bare: Vec<Frame> = self.nameless(offsets).into_iter().flatten().collect();
        for (frame, name) in bare.iter_mut().zip(elf.function_names(offsets)) {
            if let Some(name) = name {
                frame.function = short(&demangle(&name));
            }
        }
        let debug = DebugInfo::open(elf, &self.path);
        let told = |offset, bare: &Frame| debug.as_ref()?.frames(elf.address_of(offset)?, bare);
        let frames = bare.into_iter().zip(offsets);
        frames
            .map(|(bare, offset)| told(*offset, &bare).unwrap_or_else(|| vec![bare]))
            .collect()
    }

    fn nameless(&self, offsets: &[u64]) -> Vec<Vec<Frame>> {
        let frame = |offset: &u64| vec![nameless(Some(&self.module), *offset)];
        offsets.iter().map(frame).collect()
    }

    fn fileless(&self, offset: u64) -> Native {
        let function = self.module.clone();
        let frame = Frame {
            function,
            ..nameless(None, offset)
        };
        (Part::Other, vec![frame])
    }
}

const NO_FILE: &str = "[code without a file]";

fn nameless(module: Option<&str>, offset: u64) -> Frame {
    Frame {
        function: format!("{offset:#x}"),
        module: module.map(str::to_owned),
        offset: Some(offset),
        file: None,
        line: None,
        language: Language::Native,
        inlined: false,
    }
}
