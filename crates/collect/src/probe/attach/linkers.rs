//! Hooks at the dynamic linkers, which tell of a library before its first function is called.

use super::probes::Probes;
use super::stay::Stay;
use super::traffic::Hooked;
use super::{Attacher, key_of};
use crate::discover::Mapping;
use crate::elf::ElfFile;
use crate::engine::Engine;
use crate::foreign::ForeignFile;
use crate::probe::lease;
use crate::processor::HERE;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Whether a file is a dynamic linker, by its name.
pub(super) fn is_linker(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld-") || name.starts_with("ld.so") || name.contains("ld-linux")
}

impl Attacher {
    /// Hooks the dynamic linker's notification, while a process maps it where `mapping` says that one does.
    pub(super) fn watch_linker(
        &mut self,
        engine: &dyn Engine,
        elf: &ElfFile,
        file: &ForeignFile,
        path: &Path,
        mapping: Option<&Mapping>,
    ) {
        let key = key_of(file);
        if let Some((_, known)) = self.linkers.get_mut(&key) {
            return known.stay.note(mapping);
        }
        let Ok(symbols) = elf.symbols_where(&|name| name == "_dl_debug_state") else {
            return;
        };
        let Some(symbol) = symbols.first() else {
            self.gap(format!(
                "{}: has no _dl_debug_state: libraries loaded later are noticed with a delay",
                path.display()
            ));
            return;
        };
        let probed = probe(engine, file, symbol.file_offset, mapping);
        match probed {
            Ok(probes) => {
                self.linkers.insert(key, (path.to_owned(), probes));
                if let Some(mapping) = mapping {
                    self.linkers_met += 1;
                    self.recent_linkers.note(mapping.name(), crate::clock::monotonic_ns());
                }
            }
            Err(error) => self.gap(format!(
                "{}: {error:#}: libraries loaded later are noticed with a delay",
                path.display()
            )),
        }
    }

    /// Hooks the dynamic linkers at the usual places, before any process maps them.
    pub fn watch_system_linkers(&mut self, engine: &dyn Engine) {
        for path in system_linkers() {
            let Ok(file) = ForeignFile::find(&path) else {
                continue;
            };
            if let Ok(elf) = ElfFile::of_foreign(&file) {
                self.watch_linker(engine, &elf, &file, &path, None);
            }
        }
    }
}

/// The dynamic linkers at the usual places.
pub(crate) fn system_linkers() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = HERE
        .linkers
        .iter()
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .collect();
    found.dedup();
    found
}

fn probe(engine: &dyn Engine, file: &ForeignFile, offset: u64, mapping: Option<&Mapping>) -> Result<Probes> {
    let mut guard = lease::guard(engine, file)?;
    guard.watch(file);
    file.touch(std::iter::once(offset))?;
    Ok(Probes {
        guard,
        hooked: Hooked::always(engine.attach_linker(&file.path(), offset)?),
        file: file.clone(),
        stay: Stay::for_mapping(mapping),
        original: Vec::new(),
    })
}
