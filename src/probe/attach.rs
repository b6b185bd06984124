//! Finds the functions to probe in the files that processes map, and attaches to each file once.
//!
//! Owns the attached files, and what is known to be unseen. Knows files by device and inode, and by their pages, so that
//! a library reached by several paths, namespaces or processes is never probed twice. What lies in a file is `found`'s
//! business, which row describes it `rows`', where it is probed `points`'.

mod found;
mod linkers;
mod points;
mod rows;
mod unmapped;

pub(super) use found::{Found, functions_of, may_embed_runtime};
pub use rows::Rows;

use super::discover::{self, Mapping, descriptor_path};
use super::kernel::KernelHooks;
use super::machine::ldcache;
use super::static_probe::Sites;
use super::{Session, identity, lease, links};
use crate::catalog::{Catalog, Layer, Library};
use crate::elf::{ElfFile, Method};
use anyhow::{Context, Result};
use libbpf_rs::Link;
use points::Target;
use rows::missing;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use unmapped::{Round, Stay};

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
    stay: Stay,
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

/// Files that are remembered as looked at: more than a machine's processes map at a time.
const MOST_LOOKED_AT: usize = 1 << 16;
/// Sentences about what is not seen.
const MOST_GAPS: usize = 1000;

/// All attached files.
#[derive(Default)]
pub struct Attacher {
    attached: HashMap<(u64, u64), Attached>,
    linkers: HashMap<(u64, u64), (Link, Stay)>,
    /// Mappings already looked at, so that a process's hundreds of files are opened once.
    looked_at: HashSet<(String, u64)>,
    sites: Sites,
    kernel: KernelHooks,
    round: Round,
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
        self.round.note(mappings.iter());
        if self.looked_at.len() > MOST_LOOKED_AT {
            self.looked_at.clear(); // what is attached is known all the same
        }
        mappings.retain(|mapping| self.looked_at.insert((mapping.device.clone(), mapping.inode)));
        Ok(News { mappings, has_library })
    }

    /// Attaches to what process `pid` maps at `mapping`, if that holds functions of the catalogue.
    pub fn consider(&mut self, session: &Session, rows: &mut dyn Rows, pid: u32, mapping: &Mapping) {
        let attached = match mapping.open(pid) {
            Ok(file) => self.attach_to(session, rows, file, mapping.path.clone(), Some(mapping)),
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

    /// Attaches to `file` if it holds functions of the catalogue, for as long as the trace runs.
    ///
    /// # Errors
    /// The file is no usable ELF file, or the kernel refuses.
    pub fn attach_file(&mut self, session: &Session, rows: &mut dyn Rows, file: File, path: PathBuf) -> Result<bool> {
        self.attach_to(session, rows, file, path, None)
    }

    /// As [`Self::attach_file`]; to what a process maps, while one does.
    fn attach_to(
        &mut self,
        session: &Session,
        rows: &mut dyn Rows,
        file: File,
        path: PathBuf,
        mapping: Option<&Mapping>,
    ) -> Result<bool> {
        let metadata = file.metadata().context("failed to look at the file")?;
        let key = (metadata.dev(), metadata.ino());
        if let Some(known) = self.known(key, &file) {
            known.stay.note(mapping);
            return Ok(false);
        }
        let through_fd = descriptor_path(&file);
        let elf = ElfFile::open(&through_fd)?;
        if linkers::is_linker(&path) {
            self.watch_linker(session, &elf, &file, &path, mapping);
        }
        let Some((library, found, embedded)) = functions_of(rows.catalog(), &elf, &path)? else {
            return Ok(false);
        };
        for what in missing(rows, &elf, library, &found) {
            self.gap(format!("{}: has no {what}", path.display()));
        }
        let target = Target {
            session,
            elf: &elf,
            library,
            path: &path,
        };
        let (points, single_stepped) = self.points(rows, target, &found);
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
            stay: Stay::for_mapping(mapping),
        };
        self.attached.insert(key, attached);
        Ok(true)
    }

    /// The file where it is attached already, perhaps under other numbers.
    fn known(&mut self, key: (u64, u64), file: &File) -> Option<&mut Attached> {
        if self.attached.contains_key(&key) {
            return self.attached.get_mut(&key);
        }
        self.attached
            .values_mut()
            .find(|other| identity::is_same(&other.file, file))
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
        let attached = self.attached.remove(key)?;
        let path = attached.path.clone();
        let_go(vec![attached], Vec::new());
        self.looked_at.clear();
        self.blind = true;
        self.gap(format!(
            "{}: changed on disk while it was traced; its old code is no longer traced",
            path.display()
        ));
        Some(path)
    }

    /// Takes all probes away.
    pub fn detach_all(&mut self) {
        let files = self.attached.drain().flat_map(|(_, file)| file.links);
        let linkers = self.linkers.drain().map(|(_, (link, _))| link);
        links::detach(files.chain(linkers).collect());
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

/// Takes the probes of files away, and `other` links. Whoever waits to overwrite such a file goes on when none is left.
fn let_go(mut files: Vec<Attached>, other: Vec<Link>) {
    let own = files.iter_mut().flat_map(|file| std::mem::take(&mut file.links));
    links::detach(own.chain(other).collect());
    files.iter().for_each(|file| lease::release(&file.file));
}
