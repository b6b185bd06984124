//! The files that a library of a hook file stands for: opened first, and read later, when we have given up our rights.

use crate::catalog::Library;
use crate::cli::FunctionsArgs;
use crate::discover::{self, Mapping};
use crate::elf::{ElfError, ElfFile, Unread};
use crate::foreign::ForeignFile;
use crate::probe::ldcache;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A file that a library may stand for: as people or a process name it, and what it holds.
pub(super) type Source = (PathBuf, Result<ElfFile, ElfError>);

/// The same, of which nothing was read yet.
pub(super) enum Opened {
    /// By `--lib`, with its full path: what it calls itself says whether it is that library.
    Named(PathBuf, PathBuf, Unread),
    At(PathBuf, Result<Unread, ElfError>),
    Mapped(PathBuf, Result<ForeignFile, ElfError>),
}

impl Opened {
    fn at(path: PathBuf) -> Opened {
        let file = Unread::open(&path);
        Opened::At(path, file)
    }

    /// `None`: it is not that library.
    pub(super) fn read(self, library: &Library) -> Result<Option<Source>> {
        Ok(Some(match self {
            Opened::Named(path, full, file) => {
                let elf = file.read().with_context(|| failed(&path))?;
                let fits = library.matches(&full.to_string_lossy())
                    || library.matches(&path.to_string_lossy())
                    || elf.soname().is_some_and(|soname| library.matches(soname));
                return Ok(fits.then_some((path, Ok(elf))));
            }
            Opened::At(path, file) => (path, file.and_then(Unread::read)),
            Opened::Mapped(path, file) => (path, file.and_then(|file| ElfFile::of_foreign(&file))),
        }))
    }
}

fn failed(path: &Path) -> String {
    format!("failed to read {}", path.display())
}

/// The files that the library stands for.
pub(super) fn files_of(library: &Library, args: &FunctionsArgs) -> Result<Vec<Opened>> {
    if let Some(path) = &args.lib {
        let file = Unread::open(path).with_context(|| failed(path))?;
        let full = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        return Ok(vec![Opened::Named(path.clone(), full, file)]);
    }
    if let Some(pid) = args.pid {
        let mappings = discover::mappings(pid).with_context(|| format!("failed to look at process {pid}"))?;
        let wanted = mappings
            .into_iter()
            .filter(|mapping| library.matches(&mapping.path.to_string_lossy()));
        let open = |mapping: Mapping| {
            let file = mapping.open(pid).map_err(ElfError::from);
            Opened::Mapped(mapping.path, file)
        };
        return Ok(wanted.map(open).collect());
    }
    let named = PathBuf::from(&library.pattern);
    if named.is_absolute() && named.exists() {
        return Ok(vec![Opened::at(named)]);
    }
    let found = ldcache::find(&|name| library.matches(name));
    Ok(found.into_iter().map(Opened::at).collect())
}
