//! Hooks at the dynamic linkers, which tell of a library before its first function is called.

use super::Attacher;
use super::unmapped::Stay;
use crate::elf::ElfFile;
use crate::probe::Session;
use crate::probe::discover::{self, Mapping, descriptor_path};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether a file is a dynamic linker, by its name.
pub(super) fn is_linker(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld-") || name.starts_with("ld.so") || name.contains("ld-linux")
}

impl Attacher {
    /// Hooks the dynamic linker's notification, while a process maps it where `mapping` says that one does.
    pub(super) fn watch_linker(
        &mut self,
        session: &Session,
        elf: &ElfFile,
        file: &File,
        path: &Path,
        mapping: Option<&Mapping>,
    ) {
        let Ok(metadata) = file.metadata() else {
            return;
        };
        let key = (metadata.dev(), metadata.ino());
        if let Some((_, stay)) = self.linkers.get_mut(&key) {
            return stay.note(mapping);
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
        match session.attach_linker(&descriptor_path(file), symbol.file_offset) {
            Ok(link) => drop(self.linkers.insert(key, (link, Stay::for_mapping(mapping)))),
            Err(error) => self.gap(format!(
                "{}: {error:#}: libraries loaded later are noticed with a delay",
                path.display()
            )),
        }
    }

    /// Hooks the dynamic linkers at the usual places, before any process maps them.
    pub fn watch_system_linkers(&mut self, session: &Session) {
        for path in [
            "/lib64/ld-linux-x86-64.so.2",
            "/lib/ld-linux-x86-64.so.2",
            "/lib/ld-musl-x86_64.so.1",
        ] {
            let Ok(path) = std::fs::canonicalize(path) else {
                continue;
            };
            let Ok(file) = discover::open_readable(&path) else {
                continue;
            };
            if let Ok(elf) = ElfFile::open(descriptor_path(&file)) {
                self.watch_linker(session, &elf, &file, &path, None);
            }
        }
    }
}
