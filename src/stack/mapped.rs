//! Names for addresses in one file that processes map.

use super::debug_info::{self, DebugInfo, TooLarge};
use super::demangle::demangle;
use super::merge::{Native, Part, part_of};
use super::names::short;
use crate::elf::ElfFile;
use crate::model::frame::{Frame, Language};
use crate::probe::discover::descriptor_path;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

/// A file that was mapped, or what the kernel maps in place of one.
pub struct Mapped {
    pub module: String,
    pub path: PathBuf,
    /// `None`: there is none, or it could not be opened.
    pub file: Option<File>,
    /// It is the kernel's, or code made at run time.
    pub fileless: bool,
}

impl Mapped {
    /// The functions at each of these offsets, innermost first, and what is to be noted of the file.
    pub fn functions(&self, offsets: &[u64], notes: &mut BTreeSet<String>) -> Vec<Native> {
        if self.fileless {
            return offsets.iter().map(|offset| self.fileless(*offset)).collect();
        }
        // through the open file: right whatever became of its name, in every mount namespace
        let elf = self
            .file
            .as_ref()
            .and_then(|file| ElfFile::open(descriptor_path(file)).ok());
        let named = elf.map_or_else(|| self.nameless(offsets), |elf| self.functions_of(&elf, offsets, notes));
        let part = |frames: &[Frame]| {
            frames
                .last()
                .map_or(Part::Other, |frame| part_of(&frame.function, &self.module))
        };
        named.into_iter().map(|frames| (part(&frames), frames)).collect()
    }

    fn functions_of(&self, elf: &ElfFile, offsets: &[u64], notes: &mut BTreeSet<String>) -> Vec<Vec<Frame>> {
        let mut bare: Vec<Frame> = self.nameless(offsets).into_iter().flatten().collect();
        for (frame, name) in bare.iter_mut().zip(elf.function_names(offsets)) {
            if let Some(name) = name {
                frame.function = short(&demangle(&name));
            }
        }
        let debug = DebugInfo::open(elf, &self.path).unwrap_or_else(|refused| {
            notes.insert(self.without_lines(refused));
            None
        });
        let told = |offset, bare: &Frame| debug.as_ref()?.frames(elf.address_of(offset)?, bare);
        let frames = bare.into_iter().zip(offsets);
        frames
            .map(|(bare, offset)| told(*offset, &bare).unwrap_or_else(|| vec![bare]))
            .collect()
    }

    fn without_lines(&self, refused: TooLarge) -> String {
        format!(
            "{}: {} MiB of debug information, of which at most {} MiB are read: source lines and inlined functions are not shown",
            self.module,
            refused.bytes >> 20,
            debug_info::MOST_BYTES >> 20
        )
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

/// A frame of which no more is known.
pub fn nameless(module: Option<&str>, offset: u64) -> Frame {
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
