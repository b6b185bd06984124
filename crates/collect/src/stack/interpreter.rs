//! Whether a process runs Python, which version, and where its frames begin.

use super::layout::{Layout, PUBLISHED_BYTES, Version, published_version, version_of};
use super::memory::Memory;
use super::regions::{FileId, Region};
use super::wire::Python;
use crate::elf::ElfFile;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

/// A process's interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    pub layout: Layout,
    /// Address of `_PyRuntime`.
    pub runtime: u64,
    /// The file that holds it.
    pub file: FileId,
}

impl Interpreter {
    /// What the kernel programs need to know.
    pub fn wire(&self) -> Python {
        Python {
            runtime: self.runtime,
            ..self.layout.python
        }
    }
}

/// What was found in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No Python, as far as can be told.
    Nothing,
    Interpreter(Box<Interpreter>),
    /// Python whose frames cannot be read, and why.
    Unusable(String),
}

/// What a file says about the interpreter in it, at addresses as linked.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    runtime: Option<u64>,
    version: Option<u64>,
}

/// Looks for interpreters, opening each file once.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    known: HashMap<FileId, Option<Facts>>,
}

impl Finder {
    /// Looks for an interpreter in what process `pid` maps; `program` is its executable.
    pub(crate) fn find(&mut self, memory: &impl Memory, pid: u32, program: &Path, regions: &[Region]) -> Found {
        let mut unusable = Found::Nothing;
        for region in candidates(program, regions) {
            let Some(file) = region.file() else { continue };
            let name = region.module();
            let Some(facts) = self.facts(pid, region) else { continue };
            let Some(runtime) = facts.runtime.and_then(|address| self.address(pid, region, address)) else {
                if named_version(&name).is_some() && unusable == Found::Nothing && !is_stub(regions, &name) {
                    unusable = Found::Unusable(format!("{name}: has no symbol _PyRuntime: Python frames are not seen"));
                }
                continue;
            };
            let stated = facts.version.and_then(|address| self.address(pid, region, address));
            match layout(memory, runtime, stated, &name) {
                Ok(layout) => {
                    return Found::Interpreter(Box::new(Interpreter { layout, runtime, file }));
                }
                Err(why) => unusable = Found::Unusable(format!("{name}: {why}: Python frames are not seen")),
            }
        }
        unusable
    }

    fn facts(&mut self, pid: u32, region: &Region) -> Option<Facts> {
        let file = region.file()?;
        if let Some(known) = self.known.get(&file) {
            return *known;
        }
        let facts = open(pid, region).and_then(|elf| facts_of(&elf));
        self.known.insert(file, facts);
        facts
    }

    /// Where a process has what is linked at `address` of the file that `region` maps first.
    fn address(&self, pid: u32, region: &Region, address: u64) -> Option<u64> {
        let bias = open(pid, region)?.bias(region.start, region.offset)?;
        Some(bias.wrapping_add(address))
    }
}

fn open(pid: u32, region: &Region) -> Option<ElfFile> {
    ElfFile::of_foreign(&region.mapping().open(pid).ok()?).ok()
}

fn facts_of(elf: &ElfFile) -> Option<Facts> {
    let runtime = elf.variable("_PyRuntime").ok().flatten();
    Some(Facts {
        // what it is in has a section of its own, which stripping leaves
        runtime: runtime.or_else(|| elf.section_address(".PyRuntime")),
        version: elf.variable("Py_Version").ok().flatten(),
    })
}

/// The first mapping of each file that may hold an interpreter: by its name, or because it is the program.
fn candidates<'a>(program: &Path, regions: &'a [Region]) -> Vec<&'a Region> {
    let mut found: Vec<&Region> = Vec::new();
    for region in regions.iter().filter(|region| region.inode != 0) {
        let path = Path::new(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&region.name));
        let name = region.module();
        let likely = path == program || name.starts_with("libpython") || name.starts_with("python");
        if likely && found.iter().all(|other| other.file() != region.file()) {
            found.push(region);
        }
    }
    found
}

/// A program `python3.N` that gets all from `libpython3.N.so`, which is mapped as well.
fn is_stub(regions: &[Region], name: &str) -> bool {
    !name.starts_with("lib") && regions.iter().any(|region| region.module().starts_with("libpython"))
}

fn layout(memory: &impl Memory, runtime: u64, stated: Option<u64>, name: &str) -> Result<Layout, String> {
    let published = memory
        .bytes(runtime, PUBLISHED_BYTES as u64, PUBLISHED_BYTES)
        .or_else(|| memory.bytes(runtime, 672, PUBLISHED_BYTES)) // all that 3.10 has
        .ok_or_else(|| "the interpreter's memory cannot be read".to_owned())?;
    if let Some(version) = published_version(&published) {
        return Layout::published(&published).ok_or_else(|| unknown(version));
    }
    let stated = stated.and_then(|address| memory.word(address)).map(version_of);
    let version = stated.or_else(|| named_version(name));
    let version = version.ok_or_else(|| "a Python whose version it does not tell".to_owned())?;
    Layout::of(version).ok_or_else(|| unknown(version))
}

fn unknown((major, minor): Version) -> String {
    format!("Python {major}.{minor}, whose frames are not known (3.10 to 3.15 are)")
}

/// The version in a file's name: `libpython3.10.so.1.0`, `python3.11`.
fn named_version(name: &str) -> Option<Version> {
    let name = name.strip_prefix("lib").unwrap_or(name);
    let (major, rest) = name.strip_prefix("python")?.split_once('.')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    Some((major.parse().ok()?, rest[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::regions::parse;

    #[test]
    fn file_names_tell_versions() {
        assert_eq!(named_version("libpython3.10.so.1.0"), Some((3, 10)));
        assert_eq!(named_version("python3.11"), Some((3, 11)));
        assert_eq!(named_version("libpython3.13t.so"), Some((3, 13)));
        assert_eq!(named_version("python3"), None);
        assert_eq!(named_version("libpython.so"), None);
        assert_eq!(named_version("python3.x"), None);
    }

    #[test]
    fn the_program_and_files_named_after_python_are_looked_at_once() {
        let regions = parse(
            b"1000-2000 r--p 00000000 fe:00 1 /opt/app\n2000-3000 r-xp 00001000 fe:00 1 /opt/app\n\
              3000-4000 r--p 00000000 fe:00 2 /usr/lib/libpython3.12.so.1.0\n\
              5000-6000 r--p 00000000 fe:00 3 /usr/lib/_x.cpython-312.so\n6000-7000 rw-p 00000000 00:00 0 [heap]\n",
        );
        let found: Vec<u64> = candidates(Path::new("/opt/app"), &regions)
            .iter()
            .map(|r| r.start)
            .collect();
        assert_eq!(found, [0x1000, 0x3000]);
    }
}
