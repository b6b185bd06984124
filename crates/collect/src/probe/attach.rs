//! Finds the functions to probe in the files that processes map, and attaches to each file once.
//!
//! Owns the attached files. Knows files by device and inode, and by their pages, so that
//! a library reached by several paths, namespaces or processes is never probed twice. What lies in a file is `functions`'
//! business, which row describes it `rows`', where it is probed `points`', when it is let go of `unmapped`'s.

mod functions;
mod gaps;
mod in_kernel;
mod intact;
mod linkers;
mod news;
mod points;
mod probes;
mod recent;
mod remembered;
mod rows;
mod stay;
mod traffic;
mod unmapped;
mod waiting;

pub(crate) use functions::functions_of;
pub(super) use functions::may_embed_runtime;
pub use gaps::Gap;
pub use intact::Unprobed;
pub(crate) use linkers::system_linkers;
pub use news::News;
pub use stay::Name;
pub use waiting::Waiter;

use super::identity;
use super::kernel_hooks::KernelHooks;
use super::ldcache;
use super::lease::{self, OpenForWriting};
use super::rows::Rows;
use super::static_probe::Sites;
use crate::catalog::{Library, Traffic};
use crate::discover::Mapping;
use crate::elf::{ElfFile, Method};
use crate::engine::Engine;
use crate::foreign::{self, ForeignFile};
use anyhow::{Context, Result};
use news::{Looked, looked};
use points::Target;
use probes::Probes;
use recent::Recent;
use rows::missing;
use stay::Stay;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use unmapped::Round;
use waiting::Waiting;

/// A file that is probed.
pub struct Attached {
    /// As the first process that mapped it names it.
    pub path: PathBuf,
    /// How the functions were found, where the file does not export them.
    pub embedded: Option<Method>,
    /// Functions whose probe has to single-step an instruction, several times as expensive.
    pub single_stepped: usize,
    probes: Probes,
}

impl Attached {
    /// Functions probed now.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.probes.hooked.points().count()
    }
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
    /// Frequent calls are probed apart, and these not at all for now.
    by_traffic: bool,
    shed: BTreeSet<Traffic>,
}

impl Attacher {
    /// The files probed now.
    pub fn attached(&self) -> impl Iterator<Item = &Attached> {
        self.attached.values()
    }

    /// Linkers that were hooked since a process had mapped them, so far.
    #[must_use]
    pub fn linkers_met(&self) -> u64 {
        self.linkers_met
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
        let hooked = self.hook(engine, rows, &file.path(), points)?;
        for (row, why) in engine.unhooked() {
            let described = &rows.catalog().rows[row as usize];
            self.blind |= described.work.is_some();
            self.gap(format!("{}: {}: {why}", path.display(), described.symbol));
        }
        let attached = Attached {
            path,
            embedded,
            single_stepped,
            probes: Probes {
                hooked,
                file,
                guard,
                stay: Stay::for_mapping(mapping),
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
