//! Finds the functions to probe in the files that processes map, and attaches to each file once.
//!
//! Owns the attached files, and what is known to be unseen. Knows files by device and inode, and by their pages, so that
//! a library reached by several paths, namespaces or processes is never probed twice. What lies in a file is `found`'s
//! business, which row describes it `rows`', where it is probed `points`'.

mod found;
mod intact;
mod linkers;
mod points;
mod recent;
mod remembered;
mod rows;
mod unmapped;
mod waiting;

pub(crate) use found::functions_of;
pub(super) use found::{Found, may_embed_runtime};
pub use intact::Unprobed;
pub(crate) use linkers::system_linkers;
pub use rows::{NoRoom, Rows};
pub use unmapped::Name;
pub use waiting::Waiter;

use super::engine::in_kernel;
use super::kernel::KernelHooks;
use super::lease::{self, Guard, OpenForWriting};
use super::machine::ldcache;
use super::static_probe::Sites;
use super::{identity, links};
use crate::catalog::{Catalog, Layer, Library};
use crate::discover::{self, Mapping};
use crate::elf::{ElfFile, Method};
use crate::engine::{Engine, Hooks, Point};
use crate::foreign::{self, ForeignFile};
use anyhow::{Context, Result};
use points::Target;
use recent::Recent;
use rows::missing;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use unmapped::{Round, Stay};
use waiting::Waiting;

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
    probes: Probes,
}

/// The probes in a file, and what keeps them from doing harm.
struct Probes {
    hooks: Hooks,
    file: ForeignFile,
    guard: Guard,
    stay: Stay,
    /// Where they are, in order.
    sites: Vec<u64>,
    /// What the file has there; empty: it was not asked for yet.
    original: Vec<Option<u8>>,
}

impl Probes {
    fn is_in_the_way(&self) -> bool {
        matches!(&self.guard, Guard::Leased(lease) if lease.is_wanted())
    }
}

/// Something that is not seen, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap(pub String);

impl Gap {
    /// Whether it is about one file, as any user can bring; such a sentence begins with its path.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        self.0.starts_with('/') || self.0 == MORE_FILES
    }
}

/// The code that a process maps.
pub struct News {
    /// What was not looked at before.
    pub mappings: Vec<Mapping>,
    /// Whether nothing is mapped at all.
    is_empty: bool,
    /// Whether a library of the catalogue is mapped, new or not.
    pub has_library: bool,
    /// Whether a file among what it maps was probed after the time that was asked about.
    pub is_behind: bool,
    /// Whether it has to pass a hook at its dynamic linker before it runs code of what that loads.
    pub is_met_at_linker: bool,
}

impl News {
    /// Of a process that is gone: what it had mapped cannot be told.
    pub fn unread() -> News {
        News {
            mappings: Vec::new(),
            is_empty: true,
            has_library: true,
            is_behind: false,
            is_met_at_linker: false,
        }
    }

    /// # Errors
    /// The process has ended, and nobody has asked for its status yet.
    pub fn of_living(self) -> std::io::Result<News> {
        match self.is_empty {
            true => Err(std::io::ErrorKind::NotFound.into()),
            false => Ok(self),
        }
    }
}

/// Files that are remembered as looked at: more than a machine's processes map at a time.
const MOST_LOOKED_AT: usize = 1 << 16;
/// Sentences about what is not seen.
const MOST_GAPS: usize = 1000;
const MORE_FILES: &str = "more files are not seen than are listed here";

/// A file as a process maps it. Of one that was deleted the numbers may come again: its path tells it apart, mostly.
type Looked = (Name, PathBuf);

fn looked(mapping: &Mapping) -> Looked {
    (mapping.name(), mapping.path.clone())
}

/// All attached files.
#[derive(Default)]
pub struct Attacher {
    attached: HashMap<(u64, u64), Attached>,
    /// Attached files by what maps call them.
    named: HashMap<Name, (u64, u64)>,
    linkers: HashMap<(u64, u64), (PathBuf, Probes)>,
    /// What was open for writing when a process mapped it.
    waiting: Waiting,
    /// Files already looked at, so that a process's hundreds of them are opened once.
    looked_at: HashSet<Looked>,
    sites: Sites,
    kernel: KernelHooks,
    round: Round,
    recent: Recent,
    recent_linkers: Recent,
    linkers_met: u64,
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

    /// What process `pid` maps, in one look. `since`: when it mapped it at the latest, CLOCK_MONOTONIC ns. `fresh`: where it
    /// has mapped what the kernel has not seen before, whatever it is called.
    ///
    /// # Errors
    /// The process is gone or may not be looked at.
    pub fn news(&mut self, catalog: &Catalog, pid: u32, since: u64, fresh: &[u64]) -> std::io::Result<News> {
        let mut mappings = discover::mappings(pid)?;
        let is_empty = mappings.is_empty();
        let is_library = |mapping: &Mapping| {
            let path = mapping.path.to_string_lossy();
            catalog.libraries.iter().any(|library| library.matches(&path))
        };
        let has_library = mappings.iter().any(is_library);
        self.round.note(mappings.iter());
        let is_behind = self.recent.has_any_since(since, &mappings);
        let is_met_at_linker = mappings.iter().any(|mapping| linkers::is_linker(&mapping.path))
            && !self.recent_linkers.has_any_since(since, &mappings);
        if self.looked_at.len() > MOST_LOOKED_AT {
            self.looked_at.clear(); // what is attached is known all the same
        }
        mappings.retain(|mapping| {
            let is_fresh = mapping.addresses().is_some_and(|(start, _)| fresh.contains(&start));
            self.looked_at.insert(looked(mapping)) || is_fresh
        });
        Ok(News {
            mappings,
            is_empty,
            has_library,
            is_behind,
            is_met_at_linker,
        })
    }

    /// Linkers that were hooked since a process had mapped them, so far.
    #[must_use]
    pub fn linkers_met(&self) -> u64 {
        self.linkers_met
    }

    /// Whether none of these is to be looked at again.
    #[must_use]
    pub fn is_done_with(&self, mappings: &[Mapping]) -> bool {
        mappings.iter().all(|mapping| self.looked_at.contains(&looked(mapping)))
    }

    /// Attaches to what process `pid` maps at `mapping`, if that holds functions of the catalogue. Whether what
    /// the process called there until now was not seen.
    pub fn consider(&mut self, engine: &dyn Engine, rows: &mut dyn Rows, pid: u32, mapping: &Mapping) -> bool {
        let attached = match mapping.open(pid) {
            Ok(file) => self.attach_to(engine, rows, file, mapping.path.clone(), Some(mapping)),
            Err(error) => {
                // another process that maps it may let us in
                self.looked_at.remove(&looked(mapping));
                Err(error).context("cannot be opened")
            }
        };
        // a process maps many files that nobody asked for: those are no loss
        let path = mapping.path.to_string_lossy();
        let wanted = rows.catalog().libraries.iter().any(|library| library.matches(&path));
        if attached.as_ref().is_err_and(passes) {
            self.looked_at.remove(&looked(mapping));
            self.waiting.note(pid, mapping);
        }
        let unprobed = *attached.as_ref().unwrap_or(&wanted);
        // but where we lack something ourselves, or are not answered, who knows what it is
        if let Err(error) = attached
            && (wanted || passes(&error))
        {
            self.gap(format!("{}: {error:#}", mapping.path.display()));
            self.blind |= wanted;
        }
        unprobed
    }

    /// Looks again at what could not be probed for a reason that passes. To be called once a second. Processes that ran with
    /// it meanwhile.
    pub fn retry(&mut self, engine: &dyn Engine, rows: &mut dyn Rows) -> Vec<Waiter> {
        let due = self.waiting.due().into_iter().filter(Waiter::runs);
        let mut late: Vec<Waiter> = due.collect();
        late.retain(|waiter| self.ran_without(engine, rows, waiter));
        late
    }

    /// Looks again at the file of `waiter`; whether that process ran without probes which are there now, or never will be.
    fn ran_without(&mut self, engine: &dyn Engine, rows: &mut dyn Rows, waiter: &Waiter) -> bool {
        let Waiter { pid, mapping, .. } = waiter;
        let is_due = self.looked_at.insert(looked(mapping));
        let unprobed = is_due && self.consider(engine, rows, *pid, mapping);
        // another process may have had it probed meanwhile
        !self.waiting.goes_on(waiter) && (unprobed || self.named.contains_key(&mapping.name()))
    }

    /// Attaches to `file` if it holds functions of the catalogue, for as long as the trace runs.
    ///
    /// # Errors
    /// The file is no usable ELF file, or the kernel refuses.
    pub fn attach_file(
        &mut self,
        engine: &dyn Engine,
        rows: &mut dyn Rows,
        file: ForeignFile,
        path: PathBuf,
    ) -> Result<bool> {
        self.attach_to(engine, rows, file, path, None)
    }

    /// As [`Self::attach_file`]; to what a process maps, while one does.
    fn attach_to(
        &mut self,
        engine: &dyn Engine,
        rows: &mut dyn Rows,
        file: ForeignFile,
        path: PathBuf,
        mapping: Option<&Mapping>,
    ) -> Result<bool> {
        let key = key_of(&file);
        if let Some((key, known)) = self.known(key, &file) {
            known.probes.stay.note(mapping);
            self.named.extend(mapping.map(|mapping| (mapping.name(), key)));
            return Ok(false);
        }
        // first: nothing that is read of it may change before it is probed
        let guard = lease::guard(engine, &file);
        let elf = ElfFile::of_foreign(&file)?;
        if linkers::is_linker(&path) {
            self.watch_linker(engine, &elf, &file, &path, mapping);
        }
        let Some((library, found, embedded)) = functions_of(rows.catalog(), &elf, &path)? else {
            return Ok(false);
        };
        for what in missing(rows, &elf, library, &found) {
            self.gap(format!("{}: has no {what}", path.display()));
        }
        let target = Target {
            engine,
            elf: &elf,
            library,
            path: &path,
        };
        let (points, single_stepped) = self.points(rows, target, &found);
        if points.is_empty() {
            return Ok(false);
        }
        let mut guard = guard?;
        guard.watch(&file);
        rows.publish(engine)?;
        // the kernel reads these pages: not while we wait
        file.touch(points.iter().map(|point| point.offset))?;
        let hooks = engine.attach(&file.path(), &points)?;
        for (row, why) in engine.unhooked() {
            let described = &rows.catalog().rows[row as usize];
            self.blind |= described.work.is_some();
            self.gap(format!("{}: {}: {why}", path.display(), described.symbol));
        }
        let layer = rows.catalog().libraries[usize::from(library.0)].layer;
        let attached = Attached {
            path,
            layer,
            functions: points.len(),
            embedded,
            single_stepped,
            probes: Probes {
                hooks,
                file,
                guard,
                stay: Stay::for_mapping(mapping),
                sites: sites_of(&points),
                original: Vec::new(),
            },
        };
        self.attached.insert(key, attached);
        if let Some(mapping) = mapping {
            self.named.insert(mapping.name(), key);
            self.recent.note(mapping.name(), crate::clock::monotonic_ns());
        }
        Ok(true)
    }

    /// The file where it is attached already, perhaps under other numbers.
    fn known(&mut self, key: (u64, u64), file: &ForeignFile) -> Option<((u64, u64), &mut Attached)> {
        if self.attached.contains_key(&key) {
            return self.attached.get_mut(&key).map(|known| (key, known));
        }
        let mut others = self.attached.iter_mut();
        let same = others.find(|(_, other)| identity::is_same(&other.probes.file, file));
        same.map(|(key, known)| (*key, known))
    }

    /// Attaches to the libraries that programs of this machine would find, before any process maps them.
    pub fn attach_installed(&mut self, engine: &dyn Engine, rows: &mut dyn Rows) {
        let libraries = rows.catalog().libraries.iter();
        let patterns: Vec<Library> = libraries.cloned().collect();
        for path in ldcache::find(&|name| patterns.iter().any(|library| library.matches(name))) {
            let attached = ForeignFile::find(&path)
                .map_err(anyhow::Error::from)
                .and_then(|file| self.attach_file(engine, rows, file, path.clone()));
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
    pub fn follow_modules(&mut self, engine: &dyn Engine, rows: &mut dyn Rows) {
        let Ok(session) = in_kernel(engine) else { return };
        for gap in self.kernel.follow_modules(session, rows).unwrap_or_default() {
            self.gap(gap);
        }
    }

    /// Hooks what rows of the kernel name.
    pub fn attach_kernel(&mut self, engine: &dyn Engine, rows: &mut dyn Rows) {
        match in_kernel(engine) {
            Ok(session) => self
                .kernel
                .attach(session, rows)
                .into_iter()
                .for_each(|gap| self.gap(gap)),
            Err(why) if KernelHooks::wants(rows) => self.gap(format!("functions of the kernel: {why}")),
            Err(_) => {}
        }
    }

    /// Lets go of files that somebody wants to overwrite; names them.
    pub fn release_wanted(&mut self, engine: &dyn Engine) -> Vec<PathBuf> {
        let files = self.attached.extract_if(|_, file| file.probes.is_in_the_way());
        let mut wanted: Vec<(PathBuf, Probes)> = files.map(|(_, file)| (file.path, file.probes)).collect();
        let linkers = self.linkers.extract_if(|_, (_, probes)| probes.is_in_the_way());
        wanted.extend(linkers.map(|(_, linker)| linker));
        if wanted.is_empty() {
            return Vec::new();
        }
        let (paths, probes): (Vec<PathBuf>, Vec<Probes>) = wanted.into_iter().unzip();
        engine.forget_files();
        let_go(probes);
        self.looked_at.clear();
        self.blind = true;
        for path in &paths {
            self.gap(format!(
                "{}: changed on disk while it was traced; its old code is no longer traced",
                path.display()
            ));
        }
        paths
    }

    /// Files whose probes nothing protects from who overwrites them, as words.
    #[must_use]
    pub fn unguarded(&self) -> Vec<String> {
        let linkers = self.linkers.values().map(|(_, probes)| probes);
        let probes = self.attached.values().map(|file| &file.probes).chain(linkers);
        lease::words(probes.filter_map(|probes| match probes.guard {
            Guard::Leased(_) | Guard::NotNeeded => None,
            Guard::None(why) => Some(why),
        }))
    }

    /// Takes all probes away.
    pub fn detach_all(&mut self) {
        let files = self.attached.drain().map(|(_, file)| file.probes);
        let linkers = self.linkers.drain().map(|(_, (_, probes))| probes);
        let_go(files.chain(linkers).collect());
        self.kernel.detach();
    }

    /// Calls of functions of the kernel that were not seen, and why.
    pub fn missed_in_kernel(&self, engine: &dyn Engine) -> Vec<String> {
        in_kernel(engine).map_or_else(|_| Vec::new(), |session| self.kernel.missed(session))
    }

    /// Whether a process may have given work to a device through functions that could not be hooked.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// Functions that give work are not seen everywhere.
    pub fn be_blind(&mut self) {
        self.blind = true;
    }

    /// Notes something that is not seen.
    pub fn gap(&mut self, text: String) {
        let gap = Gap(text);
        // whoever brings many files takes no place from what concerns all
        if self.gaps.len() < MOST_GAPS || !gap.is_of_file() {
            self.gaps.insert(gap);
        } else {
            self.gaps.insert(Gap(MORE_FILES.to_owned()));
        }
    }
}

/// The offsets of probes, in order, each once.
fn sites_of(points: &[Point]) -> Vec<u64> {
    let sites: BTreeSet<u64> = points.iter().map(|point| point.offset).collect();
    sites.into_iter().collect()
}

/// Device and inode.
fn key_of(file: &ForeignFile) -> (u64, u64) {
    (file.facts().device, file.facts().inode)
}

/// Whether what is in the way may be gone in a moment.
fn passes(error: &anyhow::Error) -> bool {
    let unanswered = |cause: &(dyn std::error::Error + 'static)| {
        let error = cause.downcast_ref::<std::io::Error>();
        error.is_some_and(foreign::is_no_answer)
    };
    // errors of the library that attaches have a number in their words alone
    let words = format!("{error:#}");
    let is_shortage = SHORTAGES
        .iter()
        .any(|number| words.contains(&format!("(os error {number})")));
    error.is::<OpenForWriting>() || is_shortage || error.chain().any(unanswered)
}

/// Too many open files, of ours or of all; no memory.
const SHORTAGES: [i32; 3] = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];

/// However it ends: one after the other would take as long as there are files.
impl Drop for Attacher {
    fn drop(&mut self) {
        self.detach_all();
    }
}

/// Takes the probes of files away. Whoever waits to overwrite such a file goes on when none is left.
fn let_go(mut probes: Vec<Probes>) {
    let hooks = probes.iter_mut().flat_map(|probes| std::mem::take(&mut probes.hooks));
    links::detach(hooks.collect());
}
