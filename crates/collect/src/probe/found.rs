//! A function, static probe or place, as it is found in a file.

use crate::catalog::{Catalog, LibraryId, RowId};
use crate::elf::{ElfFile, SiteRefusal, StaticProbe, Symbol, place_site, probe_site};

/// A function or static probe as it is found in a file.
pub struct Found {
    pub name: String,
    pub offset: u64,
    /// Not a function.
    pub probe: Option<StaticProbe>,
    /// A row's offset rather than a symbol.
    pub(crate) is_place: bool,
}

impl Found {
    pub(super) fn function(name: String, offset: u64) -> Found {
        Found {
            name,
            offset,
            probe: None,
            is_place: false,
        }
    }

    pub(crate) fn place(name: String, offset: u64) -> Found {
        Found {
            is_place: true,
            ..Found::function(name, offset)
        }
    }

    /// The row that describes it.
    pub fn row(&self, catalog: &Catalog, library: LibraryId, elf: &ElfFile) -> Option<RowId> {
        let major = elf.soname_major();
        match self.probe {
            Some(_) => catalog.find_probe(library, &self.name, major),
            None => catalog.find(library, &self.name, major),
        }
    }

    /// Why no probe can be there.
    pub fn refusal(&self, elf: &ElfFile) -> Option<SiteRefusal> {
        match &self.probe {
            Some(probe) => probe.site(elf).err(),
            None if self.is_place => place_site(elf, self.offset).err(),
            None => probe_site(elf, self.offset).err(),
        }
    }
}

impl From<Symbol> for Found {
    fn from(symbol: Symbol) -> Found {
        Found::function(symbol.name, symbol.file_offset)
    }
}
