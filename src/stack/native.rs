//! Names for native addresses, from the files that processes map.

use super::merge::{Native, Part, part_of};
use super::names::short;
use super::regions::{FileId, Region, region_at};
use crate::model::frame::{Frame, Language};
use crate::probe::discover::descriptor_path;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use std::collections::HashMap;
use std::fs::File;

/// Files that are kept open, so that addresses can be named after their process has ended.
const MOST_OPEN: usize = 512;
/// Addresses whose names are kept.
const MOST_KNOWN: usize = 1 << 16;

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
    /// `None`: there is none, or it could not be opened.
    file: Option<File>,
    /// It is the kernel's, or code made at run time.
    fileless: bool,
}

/// Names addresses.
#[derive(Default)]
pub struct Natives {
    symbolizer: Symbolizer,
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

    /// The functions at a place, innermost first: more than one where some were inlined.
    pub fn name(&mut self, place: Place) -> Native {
        if let Some(known) = self.known.get(&place) {
            return known.clone();
        }
        let named = self.symbolize(place);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(place, named.clone());
        named
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
                    file: None,
                    fileless: true,
                });
            }
            return known;
        };
        let known = *self.files.entry(id).or_insert(next);
        if known == next {
            let (module, fileless) = (region.module(), false);
            self.mapped.push(Mapped {
                module,
                file: None,
                fileless,
            });
        }
        let mapped = &mut self.mapped[known as usize];
        if mapped.file.is_none() && self.open < MOST_OPEN {
            mapped.file = region.mapping().open(pid).ok();
            self.open += usize::from(mapped.file.is_some());
        }
        known
    }

    fn symbolize(&self, place: Place) -> Native {
        let Some(mapped) = place.file.and_then(|file| self.mapped.get(file as usize)) else {
            return (Part::Other, vec![nameless(None, place.offset)]);
        };
        if mapped.fileless {
            let function = mapped.module.clone();
            return (
                Part::Other,
                vec![Frame {
                    function,
                    ..nameless(None, place.offset)
                }],
            );
        }
        let named = mapped
            .file
            .as_ref()
            .and_then(|file| self.functions(file, mapped, place.offset));
        let frames = named.unwrap_or_else(|| vec![nameless(Some(&mapped.module), place.offset)]);
        let part = frames
            .last()
            .map_or(Part::Other, |frame| part_of(&frame.function, &mapped.module));
        (part, frames)
    }

    fn functions(&self, file: &File, mapped: &Mapped, offset: u64) -> Option<Vec<Frame>> {
        // through the open file: right whatever became of its name, in every mount namespace
        let source = Source::Elf(Elf::new(descriptor_path(file)));
        match self.symbolizer.symbolize_single(&source, Input::FileOffset(offset)) {
            Ok(Symbolized::Sym(symbol)) => Some(frames_of(&symbol, &mapped.module, offset)),
            _ => None,
        }
    }
}

const NO_FILE: &str = "[code without a file]";

fn frames_of(symbol: &Sym<'_>, module: &str, offset: u64) -> Vec<Frame> {
    let frame = |name: &str, place: Option<&CodeInfo<'_>>, inlined| Frame {
        function: short(name),
        file: place.map(|place| place.to_path().to_string_lossy().into_owned()),
        line: place.and_then(|place| place.line),
        inlined,
        ..nameless(Some(module), offset)
    };
    let inlined = symbol.inlined.iter().rev();
    let mut frames: Vec<Frame> = inlined
        .map(|function| frame(&function.name, function.code_info.as_ref(), true))
        .collect();
    frames.push(frame(&symbol.name, symbol.code_info.as_deref(), false));
    frames
}

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
