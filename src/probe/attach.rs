//! Finds the functions to probe in the files that processes map, and attaches to each file once.
//!
//! Owns the attached files. Knows files by device and inode, and by their pages, so that a library reached by
//! several paths, namespaces or processes is never probed twice.

use super::discover::{self, Mapping, descriptor_path};
use super::kernel::KernelHooks;
use super::links::detach;
use super::machine::ldcache;
use super::place::{places_of, readable_inside, site_at};
use super::static_probe::{Sites, static_probes_of};
use super::{Point, Session, identity, lease, returns};
use crate::catalog::{Arg, Catalog, Layer, Library, LibraryId, Row, RowId, SiteKind, glob_matches};
use crate::elf::{Cost, ElfFile, Method, SiteRefusal, StaticProbe, Symbol, find_runtime, is_trampoline, probe_site};
use crate::filter::Filter;
use anyhow::{Context, Result};
use libbpf_rs::Link;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Larger files without a fat binary are not searched for an embedded runtime.
const SEARCHED_BYTES: u64 = 64 << 20;

/// A file that is probed.
pub struct Attached {
    /// As the first process that mapped it names it.
    pub path: PathBuf,
    pub layer: Layer,
    /// Functions probed.
    pub functions: usize,
    /// How the functions were found, where the file does not export them.
    pub embedded: Option<Method>,
    /// Functions whose probe has to single-step an instruction, several times as expensive.
    pub single_stepped: usize,
    links: Vec<Link>,
    file: File,
    leased: bool,
}

/// A function or static probe as it is found in a file.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) offset: u64,
    /// Not a function.
    pub(super) probe: Option<StaticProbe>,
    /// A row's offset rather than a symbol.
    pub(super) is_place: bool,
}

impl Found {
    fn function(name: String, offset: u64) -> Found {
        Found {
            name,
            offset,
            probe: None,
            is_place: false,
        }
    }

    pub(super) fn place(name: String, offset: u64) -> Found {
        Found {
            is_place: true,
            ..Found::function(name, offset)
        }
    }

    /// The row that describes it.
    pub(super) fn row(&self, catalog: &Catalog, library: LibraryId, elf: &ElfFile) -> Option<RowId> {
        let major = elf.soname_major();
        match self.probe {
            Some(_) => catalog.find_probe(library, &self.name, major),
            None => catalog.find(library, &self.name, major),
        }
    }

    /// Why no probe can be there.
    pub(super) fn refusal(&self, elf: &ElfFile) -> Option<SiteRefusal> {
        match &self.probe {
            Some(probe) => probe.site(elf).err(),
            None if self.is_place => site_at(elf, self.offset).err(),
            None => probe_site(elf, self.offset).err(),
        }
    }
}

/// Something that is not seen, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap(pub String);

/// The code that a process maps.
pub struct News {
    /// What was not looked at before.
    pub mappings: Vec<Mapping>,
    /// Whether a library of the catalogue is mapped, new or not.
    pub has_library: bool,
}

/// Decides for new rows and files; implemented by whoever owns the catalogue's plans.
pub trait Rows {
    fn catalog(&self) -> &Catalog;
    fn filter(&self) -> &Filter;
    /// Whether calls of this row get a return probe.
    fn returns(&self, row: RowId) -> bool;
    /// From now on calls of this row are seen at entry only.
    fn see_entry_only(&mut self, row: RowId);
    /// Adds a row for a symbol that only a glob, or nothing, describes. `None`: no room left.
    fn add(&mut self, library: LibraryId, symbol: &str, like: Option<RowId>) -> Option<RowId>;
    /// A row's arguments, now that the kernel has told them.
    fn set_args(&mut self, row: RowId, args: Vec<Arg>);
    /// Tells the kernel side about the rows added since the last time.
    ///
    /// # Errors
    /// The kernel refuses.
    fn publish(&mut self, session: &Session) -> Result<()>;
}

/// Files that are remembered as looked at: more than a machine's processes map at a time.
const MOST_LOOKED_AT: usize = 1 << 16;
/// Sentences about what is not seen.
const MOST_GAPS: usize = 1000;

/// All attached files.
#[derive(Default)]
pub struct Attacher {
    attached: HashMap<(u64, u64), Attached>,
    linkers: HashMap<(u64, u64), Link>,
    /// Mappings already looked at, so that a process's hundreds of files are opened once.
    looked_at: HashSet<(String, u64)>,
    sites: Sites,
    kernel: KernelHooks,
    gaps: BTreeSet<Gap>,
    blind: bool,
}

impl Attacher {
    /// The files probed now.
    pub fn attached(&self) -> impl Iterator<Item = &Attached> {
        self.attached.values()
    }

    /// What is known to be unseen.
    pub fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.gaps.iter()
    }

    /// What process `pid` maps, in one look.
    ///
    /// # Errors
    /// The process is gone or may not be looked at.
    pub fn news(&mut self, catalog: &Catalog, pid: u32) -> std::io::Result<News> {
        let mut mappings = discover::mappings(pid)?;
        let is_library = |mapping: &Mapping| {
            let path = mapping.path.to_string_lossy();
            catalog.libraries.iter().any(|library| library.matches(&path))
        };
        let has_library = mappings.iter().any(is_library);
        if self.looked_at.len() > MOST_LOOKED_AT {
            self.looked_at.clear(); // what is attached is known all the same
        }
        mappings.retain(|mapping| self.looked_at.insert((mapping.device.clone(), mapping.inode)));
        Ok(News { mappings, has_library })
    }

    /// Attaches to what process `pid` maps at `mapping`, if that holds functions of the catalogue.
    pub fn consider(&mut self, session: &Session, rows: &mut dyn Rows, pid: u32, mapping: &Mapping) {
        let attached = match mapping.open(pid) {
            Ok(file) => self.attach_file(session, rows, file, mapping.path.clone()),
            Err(error) => {
                // another process that maps it may let us in
                self.looked_at.remove(&(mapping.device.clone(), mapping.inode));
                Err(error).context("cannot be opened")
            }
        };
        // a process maps many files that nobody asked for: those are no loss
        let path = mapping.path.to_string_lossy();
        let wanted = rows.catalog().libraries.iter().any(|library| library.matches(&path));
        if let (Err(error), true) = (attached, wanted) {
            self.gap(format!("{}: {error:#}", mapping.path.display()));
            self.blind = true;
        }
    }

    /// Attaches to `file` if it holds functions of the catalogue.
    ///
    /// # Errors
    /// The file is no usable ELF file, or the kernel refuses.
    pub fn attach_file(&mut self, session: &Session, rows: &mut dyn Rows, file: File, path: PathBuf) -> Result<bool> {
        let metadata = file.metadata().context("failed to look at the file")?;
        let key = (metadata.dev(), metadata.ino());
        let known = |other: &Attached| identity::is_same(&other.file, &file);
        if self.attached.contains_key(&key) || self.attached.values().any(known) {
            return Ok(false);
        }
        let through_fd = descriptor_path(&file);
        let elf = ElfFile::open(&through_fd)?;
        self.watch_linker(session, &elf, &file, &path, key);
        let Some((library, found, embedded)) = functions_of(rows.catalog(), &elf, &path)? else {
            return Ok(false);
        };
        for what in missing(rows, &elf, library, &found) {
            self.gap(format!("{}: has no {what}", path.display()));
        }
        let (points, single_stepped) = self.points(session, rows, &elf, library, &found, &path);
        if points.is_empty() {
            return Ok(false);
        }
        rows.publish(session)?;
        let links = session.attach(&through_fd, &points)?;
        let leased = lease::take(&file);
        let layer = rows.catalog().libraries[usize::from(library.0)].layer;
        let attached = Attached {
            path,
            layer,
            functions: points.len(),
            embedded,
            single_stepped,
            links,
            file,
            leased,
        };
        self.attached.insert(key, attached);
        Ok(true)
    }

    /// Hooks the dynamic linker's notification, if the file is one.
    fn watch_linker(&mut self, session: &Session, elf: &ElfFile, file: &File, path: &Path, key: (u64, u64)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !(name.starts_with("ld-") || name.starts_with("ld.so") || name.contains("ld-linux"))
            || self.linkers.contains_key(&key)
        {
            return;
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
            Ok(link) => drop(self.linkers.insert(key, link)),
            Err(error) => self.gap(format!(
                "{}: {error:#}: libraries loaded later are noticed with a delay",
                path.display()
            )),
        }
    }

    /// Attaches to the libraries that programs of this machine would find, before any process maps them.
    pub fn attach_installed(&mut self, session: &Session, rows: &mut dyn Rows) {
        let libraries = rows.catalog().libraries.iter();
        let patterns: Vec<Library> = libraries.cloned().collect();
        for path in ldcache::find(&|name| patterns.iter().any(|library| library.matches(name))) {
            let attached = discover::open_readable(&path)
                .map_err(anyhow::Error::from)
                .and_then(|file| self.attach_file(session, rows, file, path.clone()));
            if let Err(error) = attached {
                self.gap(format!("{}: {error:#}", path.display()));
            }
        }
    }

    /// Functions of the kernel and tracepoints hooked now.
    #[must_use]
    pub fn kernel_functions(&self) -> usize {
        self.kernel.functions()
    }

    /// Follows modules of the kernel that come and go.
    pub fn follow_modules(&mut self, session: &Session, rows: &mut dyn Rows) {
        for gap in self.kernel.follow_modules(session, rows).unwrap_or_default() {
            self.gap(gap);
        }
    }

    /// Hooks what rows of the kernel name.
    pub fn attach_kernel(&mut self, session: &Session, rows: &mut dyn Rows) {
        for gap in self.kernel.attach(session, rows) {
            self.gap(gap);
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
            let (Ok(metadata), Ok(elf)) = (file.metadata(), ElfFile::open(descriptor_path(&file))) else {
                continue;
            };
            self.watch_linker(session, &elf, &file, &path, (metadata.dev(), metadata.ino()));
        }
    }

    fn points(
        &mut self,
        session: &Session,
        rows: &mut dyn Rows,
        elf: &ElfFile,
        library: LibraryId,
        found: &[Found],
        path: &Path,
    ) -> (Vec<Point>, usize) {
        let names: HashSet<&str> = found.iter().map(|function| function.name.as_str()).collect();
        let mut taken = HashSet::new();
        let (mut points, mut single_stepped) = (Vec::new(), 0);
        for function in found {
            let Some(row) = row_for(rows, elf, library, function, &names) else {
                continue;
            };
            let own = function.is_place.then_some(row);
            if !taken.insert((function.offset, function.probe.is_some(), own)) {
                continue;
            }
            if function.is_place {
                match self.place(session, rows, elf, function, row) {
                    Ok(point) => points.push(point),
                    Err(error) => self.gap(format!("{}: {}: {error:#}", path.display(), function.name)),
                }
                continue;
            }
            if let Some(probe) = &function.probe {
                let described = &rows.catalog().rows[row.0 as usize];
                match self.sites.point(session, elf, probe, (row, described)) {
                    Ok(point) => points.push(point),
                    Err(error) => self.gap(format!("{}: {}: {error:#}", path.display(), function.name)),
                }
                continue;
            }
            if is_trampoline(elf, function.offset).unwrap_or(false) {
                continue;
            }
            match probe_site(elf, function.offset) {
                Ok(site) => {
                    single_stepped += usize::from(site.cost == Cost::SingleStepped);
                    if let (true, Some(why)) = (rows.returns(row), returns::refused(elf, &function.name)) {
                        rows.see_entry_only(row);
                        self.gap(format!(
                            "{}: {}: seen at entry only: {why}",
                            path.display(),
                            function.name
                        ));
                    }
                    points.push(Point::entry(site.offset, row.0, rows.returns(row)));
                }
                Err(refusal) => {
                    self.blind |= rows.catalog().rows[row.0 as usize].work.is_some();
                    self.gap(format!("{}: {}: {refusal}", path.display(), function.name));
                }
            }
        }
        (points, single_stepped)
    }

    /// Where to probe for a row with an offset.
    fn place(
        &mut self,
        session: &Session,
        rows: &mut dyn Rows,
        elf: &ElfFile,
        function: &Found,
        row: RowId,
    ) -> Result<Point> {
        let place = site_at(elf, function.offset)?;
        let refused = if place.is_entry {
            let names = elf.function_names(&[function.offset]).pop().flatten();
            returns::refused(elf, names.as_deref().unwrap_or_default())
        } else {
            Some("no function begins there")
        };
        if let (true, Some(why)) = (rows.returns(row), refused) {
            rows.see_entry_only(row);
            self.gap(format!("{}: seen at entry only: {why}", function.name));
        }
        if place.is_entry {
            return Ok(Point::entry(place.site.offset, row.0, rows.returns(row)));
        }
        readable_inside(&rows.catalog().rows[row.0 as usize])?;
        self.sites.inner(session, place.site.offset, row)
    }

    /// Lets go of files that somebody wants to overwrite; names them.
    pub fn release_wanted(&mut self) -> Vec<PathBuf> {
        let wanted = self
            .attached
            .iter()
            .filter(|(_, file)| file.leased && lease::is_wanted(&file.file));
        let keys: Vec<(u64, u64)> = wanted.map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| self.detach(key)).collect()
    }

    fn detach(&mut self, key: &(u64, u64)) -> Option<PathBuf> {
        let mut attached = self.attached.remove(key)?;
        detach(std::mem::take(&mut attached.links));
        lease::release(&attached.file);
        self.looked_at.clear();
        self.blind = true;
        self.gap(format!(
            "{}: changed on disk while it was traced; its old code is no longer traced",
            attached.path.display()
        ));
        Some(attached.path)
    }

    /// Takes all probes away.
    pub fn detach_all(&mut self) {
        let files = self.attached.drain().flat_map(|(_, file)| file.links);
        let linkers = self.linkers.drain().map(|(_, link)| link);
        detach(files.chain(linkers).collect());
        self.kernel.detach();
    }

    /// Calls of functions of the kernel that were not seen, and why.
    pub fn missed_in_kernel(&self, session: &Session) -> Vec<String> {
        self.kernel.missed(session)
    }

    /// Whether a process may have given work to a device through functions that could not be hooked.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// Notes something that is not seen.
    pub fn gap(&mut self, text: String) {
        if self.gaps.len() < MOST_GAPS {
            self.gaps.insert(Gap(text));
        } else {
            self.gaps.insert(Gap("more is not seen than is listed here".to_owned()));
        }
    }
}

pub(super) type Functions = (LibraryId, Vec<Found>, Option<Method>);

/// Which library of the catalogue a file is, and its functions.
pub(super) fn functions_of(catalog: &Catalog, elf: &ElfFile, path: &Path) -> Result<Option<Functions>> {
    let text = path.to_string_lossy();
    let soname = elf.soname().unwrap_or_default();
    let by_name = catalog
        .libraries
        .iter()
        .rposition(|library| library.matches(&text) || library.matches(soname));
    if let Some(index) = by_name {
        let library = LibraryId(index as u16);
        let symbols = elf.symbols_where(&|name| belongs(catalog, library, name))?;
        let mut found: Vec<Found> = symbols.into_iter().map(Found::from).collect();
        found.extend(static_probes_of(catalog, elf, library)?);
        found.extend(places_of(catalog, elf, library)?);
        return Ok(Some((library, found, None)));
    }
    let Some(runtime) = catalog.library("runtime") else {
        return Ok(None);
    };
    if !may_embed_runtime(elf, &text) {
        return Ok(None);
    }
    let is_name = |name: &str| catalog.find(runtime, name, None).is_some();
    let Some(found) = find_runtime(elf, &is_name)? else {
        return Ok(None);
    };
    let functions = found
        .functions
        .into_iter()
        .map(|(name, offset)| Found::function(name, offset))
        .collect();
    Ok(Some((runtime, functions, Some(found.method))))
}

/// The dynamic linker and the C library are mapped by everything and hold no runtime.
pub(super) fn may_embed_runtime(elf: &ElfFile, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let system = [
        "ld-linux",
        "ld-musl",
        "libc.so",
        "libc-",
        "libm.so",
        "libpthread",
        "libdl.so",
        "libstdc++",
        "libgcc_s",
    ];
    !system.iter().any(|prefix| name.starts_with(prefix)) && (elf.len() <= SEARCHED_BYTES || elf.has_fat_binary())
}

/// Names worth looking up: those with a row, and what a CUDA library exports beyond the catalogue.
fn belongs(catalog: &Catalog, library: LibraryId, name: &str) -> bool {
    let layer = catalog.library_with(library).map(|library| library.layer);
    let unknown = match layer {
        Some(Layer::Driver) => name
            .strip_prefix("cu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase())),
        Some(Layer::Runtime) => name.starts_with("cuda"),
        _ => false,
    };
    unknown || catalog.find(library, name, None).is_some()
}

fn row_for(
    rows: &mut dyn Rows,
    elf: &ElfFile,
    library: LibraryId,
    function: &Found,
    names: &HashSet<&str>,
) -> Option<RowId> {
    let catalog = rows.catalog();
    let known = function.row(catalog, library, elf);
    let row = known.and_then(|id| catalog.row(id));
    if row
        .and_then(|row| row.forwards.as_deref())
        .is_some_and(|target| names.contains(target))
    {
        return None;
    }
    let selected = row.is_none_or(|row| rows.filter().selects(catalog, &named(row, &function.name)));
    match known {
        _ if !selected => None,
        Some(id) if !row.is_some_and(Row::is_glob) => Some(id),
        like => rows.add(library, &function.name, like),
    }
}

/// Functions and static probes that a user's file names and the library lacks. The built-in tables name many that a library may lack.
fn missing(rows: &dyn Rows, elf: &ElfFile, library: LibraryId, found: &[Found]) -> Vec<String> {
    let catalog = rows.catalog();
    let wanted = catalog.rows.iter().filter(|row| row.library == library);
    let custom = catalog
        .library_with(library)
        .is_some_and(|library| library.layer == Layer::Custom);
    wanted
        .filter(|row| custom && row.majors.contains(elf.soname_major()) && rows.filter().selects(catalog, row))
        .filter(|row| !row.site.is_in_kernel())
        .filter(|row| {
            let probe = row.site == SiteKind::StaticProbe;
            let has = |found: &Found| found.probe.is_some() == probe && glob_matches(&row.symbol, &found.name);
            !found.iter().any(has)
        })
        .map(|row| format!("{} {}", row.site.name(), row.symbol))
        .collect()
}

/// A glob's row under the name of one of its symbols.
fn named(row: &Row, symbol: &str) -> Row {
    let mut row = row.clone();
    if row.is_glob() {
        row.symbol = symbol.to_owned();
        row.api = symbol.to_owned();
    }
    row
}

impl From<Symbol> for Found {
    fn from(symbol: Symbol) -> Found {
        Found::function(symbol.name, symbol.file_offset)
    }
}
