//! Source lines and inlined functions of addresses, for files that come with debug information of a bearable size.

use super::demangle::demangle;
use super::names::short;
use crate::elf::{DebugFile, DebugSections, ElfFile};
use crate::foreign::handle::descriptor_path;
use crate::frame::{Frame, Language};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::{AsFd, FromRawFd};
use std::path::{Path, PathBuf};

/// Debug sections of one file that are read: measured, reading them takes as much memory and a fifth more while it lasts.
pub(crate) const MOST_BYTES: u64 = 64 << 20;
const PACKAGES: &str = "/usr/lib/debug";

/// The debug information of one file.
pub(crate) struct DebugInfo {
    symbolizer: Symbolizer,
    copy: File,
}

/// Opens a file that may hold what was stripped from another.
pub(crate) type Find<'a> = &'a dyn Fn(&Path) -> Option<DebugFile>;

/// Why lines that could be known are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge {
    pub bytes: u64,
}

impl DebugInfo {
    /// Of `elf`, which is or was at `path`: its own, else that of a file which belongs to it, which `find` opens. `None`:
    /// there is none.
    ///
    /// # Errors
    /// There is too much of it.
    pub(crate) fn open(elf: &ElfFile, path: &Path, find: Find<'_>) -> Result<Option<DebugInfo>, TooLarge> {
        if let Some(sections) = elf.debug_sections() {
            return DebugInfo::of(&sections);
        }
        let apart = file_apart(elf, path, find);
        let sections = apart.as_ref().and_then(DebugFile::debug_sections);
        sections.map_or(Ok(None), |sections| DebugInfo::of(&sections))
    }

    fn of(sections: &DebugSections<'_>) -> Result<Option<DebugInfo>, TooLarge> {
        let bytes = sections.bytes();
        if bytes > MOST_BYTES {
            return Err(TooLarge { bytes });
        }
        Ok(DebugInfo::copy(sections))
    }

    /// Of a copy: a file that is mapped and cut off meanwhile would end this process.
    fn copy(sections: &DebugSections<'_>) -> Option<DebugInfo> {
        let copy = anonymous_file().ok()?;
        let mut writer = BufWriter::new(&copy);
        sections.write(&mut writer).ok()?;
        writer.into_inner().ok()?;
        let symbolizer = Symbolizer::builder()
            .enable_demangling(false)
            .set_debug_dirs(None::<[PathBuf; 0]>)
            .build();
        Some(DebugInfo { symbolizer, copy })
    }

    /// The functions at an address as linked, innermost first: more than one where some were inlined. `bare` is what is
    /// known of it otherwise.
    pub(crate) fn frames(&self, vaddr: u64, bare: &Frame) -> Option<Vec<Frame>> {
        let source = Source::Elf(Elf::new(descriptor_path(self.copy.as_fd())));
        match self.symbolizer.symbolize_single(&source, Input::VirtOffset(vaddr)) {
            Ok(Symbolized::Sym(symbol)) => Some(frames_of(&symbol, bare)),
            _ => None,
        }
    }
}

/// The file that holds what was stripped from `elf`.
fn file_apart(elf: &ElfFile, path: &Path, find: Find<'_>) -> Option<DebugFile> {
    let id = elf.build_id()?;
    // what has another build-id describes another program
    let belongs = |file: &DebugFile| file.build_id().as_deref() == Some(id) && file.debug_sections().is_some();
    let mut candidates = candidates(id, elf.debug_link().as_deref(), path).into_iter();
    candidates.find_map(|path| find(&path).filter(belongs))
}

/// Whether `candidate` may be asked for on behalf of a file that was at `path`.
pub(crate) fn may_belong(candidate: &Path, path: &Path) -> bool {
    let goes_up = candidate
        .components()
        .any(|part| part == std::path::Component::ParentDir);
    let folder = path.parent();
    let beside = candidate.parent();
    let near =
        folder.is_some() && (beside == folder || beside == folder.map(|folder| folder.join(".debug")).as_deref());
    !goes_up && (near || candidate.starts_with(PACKAGES))
}

/// Where it may lie.
fn candidates(id: &str, link: Option<&str>, path: &Path) -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    if let Some((first, rest)) = id.split_at_checked(2) {
        candidates.push(
            Path::new(PACKAGES)
                .join(".build-id")
                .join(first)
                .join(format!("{rest}.debug")),
        );
    }
    if let (Some(link), Some(folder)) = (link, path.parent()) {
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        let folders = [
            folder.to_owned(),
            folder.join(".debug"),
            Path::new(PACKAGES).join(inside),
        ];
        candidates.extend(folders.map(|folder| folder.join(link)));
    }
    candidates
}

fn frames_of(symbol: &Sym<'_>, bare: &Frame) -> Vec<Frame> {
    let frame = |name: &str, place: Option<&CodeInfo<'_>>, inlined| Frame {
        function: if name.is_empty() {
            bare.function.clone()
        } else {
            short(&demangle(name))
        },
        file: place.map(|place| place.to_path().to_string_lossy().into_owned()),
        line: place.and_then(|place| place.line),
        language: Language::Native,
        inlined,
        ..bare.clone()
    };
    let inlined = symbol.inlined.iter().rev();
    let mut frames: Vec<Frame> = inlined
        .map(|function| frame(&function.name, function.code_info.as_ref(), true))
        .collect();
    frames.push(frame(&symbol.name, symbol.code_info.as_deref(), false));
    frames
}

fn anonymous_file() -> io::Result<File> {
    // SAFETY: the name is a constant with a NUL at its end
    let descriptor = unsafe { libc::memfd_create(c"debug sections".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made just now, and nobody else knows it
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_beside_the_stripped_one_and_those_of_packages_may_belong_to_it() {
        let may = |candidate: &str| may_belong(Path::new(candidate), Path::new("/opt/lib/libx.so"));
        assert!(may("/opt/lib/libx.debug") && may("/opt/lib/.debug/libx.so"));
        assert!(may("/usr/lib/debug/.build-id/ab/cdef.debug") && may("/usr/lib/debug/opt/lib/libx.so"));
        assert!(!may("/etc/shadow") && !may("/opt/lib/../../etc/shadow") && !may("/usr/lib/debug/../../../etc/shadow"));
        assert!(!may("libx.debug"));
    }
}
