//! What is known of each function that can be traced: its arguments, where
//! they lie at entry, and what the call means.
//!
//! The tables of `libcuda` and `libcudart` are built in; a user's file of the
//! same form adds libraries and functions to them.

mod arg;
mod class;
mod codes;
mod driver;
mod form;
pub mod hint;
mod hook;
mod id;
mod in_kernel;
mod kernel_groups;
mod kind;
mod launch;
mod location;
mod memory;
mod memory_kind;
mod named;
mod parse;
mod path;
mod pattern;
mod returns;
mod row;
mod site;
mod static_probe;
#[cfg(test)]
mod tests;
mod work;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::driver::DriverRows;

pub use arg::{Arg, Pass};
pub use class::{Class, Traffic};
pub(crate) use codes::{EnumTable, StructField, StructTable};
pub use hint::nearest;
pub(crate) use hook::{Aggregate, Comparison, Condition};
pub use hook::{Fold, Group, Number, Operand};
pub(crate) use id::EnumId;
pub use id::{LibraryId, RowId, StructId};
pub use in_kernel::{Arguments, InKernel, Named, OnlyValue, word_arg};
pub use kernel_groups::KERNEL_GROUPS;
pub use kind::Kind;
pub(crate) use launch::Launch;
pub use launch::Role;
pub(crate) use location::Convention;
pub use location::Loc;
pub(crate) use memory::Effect;
pub use memory::{Family, Holder, Part, Verb};
pub use memory_kind::{HostMemory, MemoryKind};
pub(crate) use parse::CatalogError;
pub use path::{CopyKind, Place};
pub(crate) use path::{Direction, Factor};
pub use pattern::glob_matches;
pub(crate) use returns::Returns;
pub use row::{Layer, Library, Row};
pub use site::SiteKind;
pub use work::{Step, Work, WorkPart};

const BUILTIN: [(&str, &str); 5] = [
    ("cuda_errors.toml", include_str!("../../catalog/cuda_errors.toml")),
    ("cuda_enums.toml", include_str!("../../catalog/cuda_enums.toml")),
    ("cuda_structs.toml", include_str!("../../catalog/cuda_structs.toml")),
    ("cuda_runtime.toml", include_str!("../../catalog/cuda_runtime.toml")),
    ("cuda_driver.toml", include_str!("../../catalog/cuda_driver.toml")),
];

/// Every library, function, enum and struct known to this run.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Libraries, in order of definition; indexed by [`LibraryId`].
    pub libraries: Vec<Library>,
    /// Functions, in order of definition; indexed by [`RowId`].
    pub rows: Vec<Row>,
    /// Named values; indexed by [`EnumId`].
    pub enums: Vec<EnumTable>,
    /// Struct layouts; indexed by [`StructId`].
    pub structs: Vec<StructTable>,
    symbols: Vec<HashMap<String, Vec<RowId>>>,
    globs: Vec<RowId>,
    /// Those of NVIDIA's kernel driver, once they were added.
    pub driver: Option<DriverRows>,
    /// By which arguments of the rows that are added have their places.
    convention: Convention,
    enum_names: HashMap<String, EnumId>,
    struct_names: HashMap<String, StructId>,
}

impl Catalog {
    /// The built-in tables of the CUDA runtime (`"runtime"`) and driver (`"driver"`).
    ///
    /// # Errors
    /// Only when a built-in table is wrong, which the tests rule out.
    pub fn builtin() -> Result<Self, CatalogError> {
        Self::builtin_by(Convention::HERE)
    }

    pub(crate) fn builtin_by(convention: Convention) -> Result<Self, CatalogError> {
        let mut catalog = Self {
            convention,
            ..Self::default()
        };
        for (label, text) in BUILTIN {
            parse::add(&mut catalog, label, text, parse::Origin::Builtin)?;
        }
        Ok(catalog)
    }

    /// Adds a group of functions of the kernel by its name; [`KERNEL_GROUPS`] has all.
    ///
    /// # Errors
    /// There is no such group.
    pub fn add_kernel_group(&mut self, name: &str) -> Result<(), String> {
        let found = KERNEL_GROUPS.iter().find(|group| group.name == name);
        let names = KERNEL_GROUPS.iter().map(|group| group.name);
        let group = found.ok_or_else(|| hint::unknown("group", name, names))?;
        parse::add(self, group.name, group.text, parse::Origin::Builtin).map_err(|error| error.to_string())
    }

    /// Adds a user's file; `label` is the file name that errors carry. Its rows
    /// win over earlier rows of the same library and symbol.
    ///
    /// # Errors
    /// Says `label:line: what was found; what was expected`. The catalog may
    /// then hold part of the file and should be dropped.
    pub fn add_hooks(&mut self, label: &str, text: &str) -> Result<(), CatalogError> {
        parse::add(self, label, text, parse::Origin::User)
    }

    /// What calls of a row with that variant of the totals are called.
    #[must_use]
    pub fn name_of(&self, row: u32, variant: u64) -> Cow<'_, str> {
        let symbol = self.rows.get(row as usize).map_or("?", |row| row.symbol.as_str());
        match self.driver.filter(|driver| driver.contains(row)) {
            Some(driver) => driver.name(row, symbol, variant),
            None => Cow::Borrowed(symbol),
        }
    }

    /// The library of that `name`.
    #[must_use]
    pub fn library(&self, name: &str) -> Option<LibraryId> {
        let at = self.libraries.iter().position(|library| library.name == name)?;
        u16::try_from(at).ok().map(LibraryId)
    }

    /// The library of rows of the kernel that name none.
    fn kernel(&mut self) -> Result<LibraryId, String> {
        if let Some(known) = self.library(in_kernel::LIBRARY) {
            return Ok(known);
        }
        let id = u16::try_from(self.libraries.len()).map(LibraryId);
        self.libraries.push(Library {
            name: in_kernel::LIBRARY.to_owned(),
            pattern: "/".to_owned(), // no file
            errors: None,
            ended: None,
            layer: Layer::Custom,
        });
        self.symbols.push(HashMap::new());
        id.map_err(|_| "too many definitions".to_owned())
    }

    /// The row of a symbol (without `@VERSION`) as exported by a library whose
    /// soname ends in `major`; `None` stands for the newest. Exact names come
    /// before globs, later definitions before earlier ones.
    #[must_use]
    pub fn find(&self, library: LibraryId, symbol: &str, major: Option<u32>) -> Option<RowId> {
        self.find_among(SiteKind::Function, library, symbol, major)
    }

    /// The row of a static probe, `PROVIDER:NAME`, in the same order.
    #[must_use]
    pub fn find_probe(&self, library: LibraryId, name: &str, major: Option<u32>) -> Option<RowId> {
        self.find_among(SiteKind::StaticProbe, library, name, major)
    }

    fn find_among(&self, site: SiteKind, library: LibraryId, symbol: &str, major: Option<u32>) -> Option<RowId> {
        let kind = |id: &RowId| self.row(*id).is_some_and(|row| row.site == site);
        let newest = |ids: &mut dyn Iterator<Item = RowId>| {
            let last = |id: &RowId| self.row(*id).map(|row| row.majors.last);
            let fits = |id: &RowId| self.row(*id).is_some_and(|row| row.majors.contains(major));
            match major {
                Some(_) => ids.filter(fits).last(),
                None => ids.max_by_key(last),
            }
        };
        let exact = self.symbols.get(usize::from(library.0))?.get(symbol);
        let exact = exact.and_then(|ids| newest(&mut ids.iter().copied().filter(kind)));
        let matches = |id: &RowId| {
            self.row(*id)
                .is_some_and(|row| row.library == library && pattern::glob_matches(&row.symbol, symbol))
        };
        exact.or_else(|| newest(&mut self.globs.iter().copied().filter(kind).filter(matches)))
    }

    /// The row behind an id.
    #[must_use]
    pub fn row(&self, id: RowId) -> Option<&Row> {
        self.rows.get(usize::try_from(id.0).ok()?)
    }

    /// The name of an enum's value. Values wider than 31 bits match whether
    /// they were read as signed or as unsigned.
    #[must_use]
    pub fn enum_name(&self, id: EnumId, value: i64) -> Option<&str> {
        self.enums.get(usize::from(id.0))?.name_of(value)
    }

    /// The layout of a struct in a library of soname major `major` (`None`: newest).
    #[must_use]
    pub fn layout(&self, id: StructId, major: Option<u32>) -> Option<&StructTable> {
        let first = self.structs.get(usize::from(id.0))?;
        if first.majors.contains(major) {
            return Some(first);
        }
        let same = |table: &&StructTable| table.name == first.name && table.majors.contains(major);
        self.structs.iter().find(same).or(Some(first))
    }

    /// A library by its number.
    #[must_use]
    pub fn library_with(&self, id: LibraryId) -> Option<&Library> {
        self.libraries.get(usize::from(id.0))
    }

    /// The name of what a call returned, when its library has an error type.
    #[must_use]
    pub fn error_name(&self, row: &Row, ret: i64) -> Option<&str> {
        if row.returns != Returns::Error {
            return None;
        }
        let errors = self.library_with(row.library)?.errors?;
        self.enum_name(errors, status(ret.cast_unsigned()).into())
    }

    /// Whether the value in `rax` at return says that the call failed. A row of
    /// class `error` never fails: what it returns is an earlier call's status. What a library refuses because it is
    /// being unloaded has not failed: every program's end calls some of that.
    #[must_use]
    pub fn is_failure(&self, row: &Row, ret: u64) -> bool {
        self.is_refusal(row, ret)
            && self.library_with(row.library).and_then(|library| library.ended) != Some(status(ret))
    }

    /// Whether that value says that the call had no effect: it failed, or its library is being unloaded.
    #[must_use]
    pub fn is_refusal(&self, row: &Row, ret: u64) -> bool {
        let library = self.library_with(row.library);
        let judged = row.returns == Returns::Error && row.class != Class::Error;
        judged
            && library.is_some_and(|library| library.errors.is_some())
            && status(ret) != 0
            && !row.ok.contains(&status(ret))
    }
}

/// The status in `rax`, of which 32 bits are defined.
fn status(ret: u64) -> i32 {
    let [a, b, c, d, ..] = ret.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}
