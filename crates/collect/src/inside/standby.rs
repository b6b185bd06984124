//! A program that carries the agent without being traced: what it is started with, and what is planned for its libraries while
//! they are loaded.
//!
//! Owns the folder where the agent, the dynamic linkers' plan and gpuscope lie for such programs, and the plans that agents ask
//! for. How one is woken is `door`'s business.

use super::arena::{ArenaCall, ArenaPatch};
use super::folder::{self, ACTIVITY, AGENT};
use super::kept::Kept;
use super::plan;
use super::run::Run;
use super::{door, name_of};
use crate::catalog::Catalog;
use crate::elf::{ElfFile, FileIdentity, probe_site};
use crate::engine::Point;
use crate::probe::attach::{functions_of, system_linkers};
use crate::wire::bytes_of;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// As the agent names them.
const STANDBY: &str = "standby:";
const PLANNER: &str = "gpuscope";
const LINKERS: &str = "linkers";
/// Of a folder, in bytes: what an agent takes.
const LONGEST_PATH: usize = 90;

/// What a program has to be started with so that it can be traced later, after what it needs was put into a folder.
/// `preloaded`: what it loads already.
///
/// # Errors
/// There is no folder for that, or no agent for this processor.
pub fn environment(folder: Option<&Path>, preloaded: Option<OsString>) -> Result<Vec<(OsString, OsString)>> {
    super::has_agent()?;
    door::sweep();
    let folder = match folder {
        Some(folder) => install(folder).with_context(|| format!("failed to write to {}", folder.display()))?,
        None => install_anywhere()?,
    };
    let mut standby = OsString::from(STANDBY);
    standby.push(&folder);
    let mut all = folder::variables(&folder.join(AGENT.file), preloaded, standby);
    folder::leave_injection(&mut all, std::env::var_os(folder::INJECTION));
    if !folder::is_taken(std::env::var_os(folder::CUDA_INJECTION)) {
        all.push((folder::CUDA_INJECTION.into(), folder.join(ACTIVITY.file).into()));
        all.push((ACTIVITY.variable.into(), STANDBY.into()));
    }
    Ok(all)
}

/// Whether a process can be traced from inside though it runs already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standby {
    /// Its agent can be woken.
    Ready,
    /// It carries an agent that has had nothing to patch yet.
    Unready,
    /// Its agent waits where nobody looks for it any more.
    Lost,
    /// It has loaded CUDA, and none of its functions could be patched.
    Unpatched,
    /// Its agent is another gpuscope's, and reads and writes memory of another form.
    Foreign,
    /// It lives in a container that we are not in: it would not find us.
    Elsewhere,
    /// It carries none, or belongs to somebody whom we may not look at.
    Absent,
}

impl Standby {
    /// A sentence, of process `pid`.
    #[must_use]
    pub fn words(self, pid: u32) -> String {
        let words = match self {
            Standby::Ready => "carries the agent, and can be traced from inside",
            Standby::Unready => "carries the agent, and has loaded no library of CUDA yet",
            Standby::Lost => {
                "carries the agent, whose file in /dev/shm or /tmp is not to be found: it was removed, or the process has become another user or changed its root since"
            }
            Standby::Unpatched => {
                "carries the agent, and no function of CUDA was patched as it was loaded: gpuscope, which plans that, could not be run there or was of another version by then"
            }
            Standby::Foreign => "carries the agent of another version of gpuscope",
            Standby::Elsewhere => "carries the agent, and lives in a container",
            Standby::Absent => "does not carry the agent: from inside, only what was started so is seen",
        };
        format!("process {pid} {words}")
    }

    /// What to do to trace process `pid` from inside.
    #[must_use]
    pub fn hint(self, pid: u32) -> String {
        match self {
            Standby::Ready => format!("gpuscope trace -p {pid}, as its user"),
            Standby::Unready => "try again when it has".to_owned(),
            Standby::Lost | Standby::Unpatched => "start it anew, or --engine kernel, as root".to_owned(),
            Standby::Foreign => match gpuscope_of(pid) {
                Some(path) if std::env::current_exe().is_ok_and(|own| own == path) => {
                    "this gpuscope has taken that one's place: start the program anew, or --engine kernel, as root"
                        .to_owned()
                }
                Some(path) => format!("trace it by {}", path.display()),
                None => "trace it by the gpuscope that it was started with".to_owned(),
            },
            Standby::Elsewhere => "run gpuscope in there (docker exec, kubectl exec)".to_owned(),
            Standby::Absent => {
                "gpuscope preload -- CMD starts it so that it can be traced later; or --engine kernel, as root"
                    .to_owned()
            }
        }
    }
}

/// How process `pid` stands.
#[must_use]
pub fn of(pid: u32) -> Standby {
    match door::behind(pid) {
        Some(page) if page.build != folder::own_build() => Standby::Foreign,
        Some(_) if is_elsewhere(pid) => Standby::Elsewhere,
        Some(page) if page.patched == 0 && page.refused > 0 => Standby::Unpatched,
        Some(_) => Standby::Ready,
        None if door::has_made_one(pid) => Standby::Lost,
        None if folder_of(pid).is_some() => Standby::Unready,
        None => Standby::Absent,
    }
}

/// The gpuscope whose agent process `pid` carries, as the process names it.
#[must_use]
pub(crate) fn gpuscope_of(pid: u32) -> Option<PathBuf> {
    let link = folder_of(pid)?.join(PLANNER);
    let seen = PathBuf::from(format!("/proc/{pid}/root")).join(link.strip_prefix("/").ok()?);
    fs::read_link(seen).ok()
}

/// Where what it carries lies, by what it was started with.
fn folder_of(pid: u32) -> Option<PathBuf> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entry = format!("{}={STANDBY}", AGENT.variable);
    let mut entries = environment.split(|byte| *byte == 0);
    let found = entries.find_map(|one| one.strip_prefix(entry.as_bytes()))?;
    Some(PathBuf::from(OsStr::from_bytes(found)))
}

fn is_elsewhere(pid: u32) -> bool {
    let space = |of: &str| fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
    let theirs = space(&pid.to_string());
    theirs.is_some() && theirs != space("self")
}

/// In the user's folder for data, else where temporary files go.
fn install_anywhere() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    // one that is empty, or relative, counts as not set (XDG)
    let data = data.into_iter().chain(home).find(|data| data.is_absolute());
    // SAFETY: asks the kernel, and cannot fail
    let own = unsafe { libc::geteuid() };
    let of_user = |place: PathBuf| place.join(format!("gpuscope-{own}"));
    let places = data.map(|data| data.join("gpuscope")).into_iter();
    let mut refused = Vec::new();
    for place in places.chain(folder::places().into_iter().map(of_user)) {
        match install(&place) {
            Ok(folder) => return Ok(folder),
            Err(error) => refused.push(format!("{}: {error:#}", place.display())),
        }
    }
    bail!(
        "found no folder for what programs are to carry ({})\nhint: --folder DIR names one that may be written and is not mounted noexec",
        refused.join("; ")
    );
}

/// A folder of this version within `parent`. One that is there stays as it is: programs carry what is in it.
fn install(parent: &Path) -> Result<PathBuf> {
    let program = std::env::current_exe().context("failed to find gpuscope's own file")?;
    let parent = std::path::absolute(parent)?;
    let path = parent.join(version_of(&program));
    if path.as_os_str().len() > LONGEST_PATH {
        bail!("its path is too long");
    }
    DirBuilder::new().recursive(true).mode(0o755).create(&parent)?;
    if !is_whole(&path)? {
        let partial = parent.join(format!("partial-{}", std::process::id()));
        fill(&partial, &program).inspect_err(|_| drop(fs::remove_dir_all(&partial)))?;
        // somebody else may have been faster
        if fs::rename(&partial, &path).is_err() {
            fs::remove_dir_all(&partial)?;
        }
    }
    folder::may_be_run(&path.join(AGENT.file))?;
    Ok(path)
}

/// What tells this gpuscope, on this machine, from any other: its agent, its own file, which makes plans, and the dynamic linkers.
fn version_of(program: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    (folder::own_build(), ACTIVITY.bytes).hash(&mut hasher);
    for path in system_linkers().into_iter().chain([program.to_owned()]) {
        // whole seconds: an image keeps no more
        let facts = fs::metadata(&path).map(|facts| (facts.size(), facts.mtime())).ok();
        (path, facts).hash(&mut hasher);
    }
    format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
}

/// Whether all is there, and nobody else may change it.
fn is_whole(folder: &Path) -> Result<bool> {
    let Ok(facts) = fs::symlink_metadata(folder) else {
        return Ok(false);
    };
    if !folder::is_of(&[0, crate::user::effective()], &facts) {
        bail!("{} is somebody else's", folder.display());
    }
    Ok([AGENT.file, ACTIVITY.file, LINKERS, PLANNER]
        .iter()
        .all(|name| folder.join(name).exists()))
}

fn fill(folder: &Path, program: &Path) -> Result<()> {
    DirBuilder::new().mode(0o755).create(folder)?;
    fs::write(folder.join(AGENT.file), AGENT.bytes)?;
    fs::write(folder.join(ACTIVITY.file), ACTIVITY.bytes)?;
    folder::let_run(&folder.join(AGENT.file))?;
    folder::let_run(&folder.join(ACTIVITY.file))?;
    fs::write(folder.join(LINKERS), linkers())?;
    symlink(program, folder.join(PLANNER))?;
    Ok(())
}

/// The calls of notifications in the dynamic linkers of this machine. An agent looks whether they are those of its own.
fn linkers() -> Vec<u8> {
    let calls = system_linkers().into_iter().filter_map(|path| {
        let elf = ElfFile::open(&path).ok()?;
        let symbols = elf.symbols_where(&|name| name == "_dl_debug_state").ok()?;
        plan::of_linker(&elf, symbols.first()?.file_offset).ok()
    });
    let calls: Vec<ArenaCall> = calls.flatten().collect();
    calls.iter().flat_map(|call| bytes_of(call).to_vec()).collect()
}

/// Writes into the memory of an agent, which is descriptor `fd`, how each function of these files is patched, and keeps that in
/// the agent's folder, where that may be: who loads these files next needs no answer.
///
/// # Errors
/// It is no such memory, or the agent in that folder is not ours.
pub fn plan(fd: RawFd, folder: &Path, paths: &[PathBuf]) -> Result<()> {
    if fd <= 2 {
        bail!("descriptor {fd} is no memory of an agent");
    }
    // gpuscope's file may have been replaced since the program began: another agent reads plans of another form
    let agent = fs::read(folder.join(AGENT.file)).context("failed to read the agent")?;
    if agent != AGENT.bytes {
        bail!("the agent in {} is of another version", folder.display());
    }
    // SAFETY: the agent has left it to this process alone
    let run = Run::over(unsafe { OwnedFd::from_raw_fd(fd) })?;
    let catalog = Catalog::builtin().context("the built-in catalogue is wrong")?;
    let mut kept = Kept::of(folder).ok();
    for path in paths {
        // what is no file of ours stays as it is
        if let (Ok(planned), Some(kept)) = (plan_file(&run, &catalog, path), &mut kept)
            && let Some(identity) = planned.file.filter(FileIdentity::is_settled)
        {
            kept.add(&identity, path.file_name().unwrap_or_default(), &planned.patches);
        }
    }
    // where that fails, they are planned again
    let _ = kept.map(|kept| kept.write());
    Ok(())
}

struct Planned {
    file: Option<FileIdentity>,
    patches: Vec<ArenaPatch>,
}

fn plan_file(run: &Run, catalog: &Catalog, path: &Path) -> Result<Planned> {
    let (name, file) = name_of(path)?;
    let elf = ElfFile::open(path)?;
    let identity = elf.identity();
    let patches = patches_of(catalog, &elf, path)?;
    if !patches.is_empty() {
        run.plan(name, &patches, &[])?;
    }
    run.know(&file);
    Ok(Planned {
        file: identity,
        patches,
    })
}

/// How each function of a file is patched that may be.
fn patches_of(catalog: &Catalog, elf: &ElfFile, path: &Path) -> Result<Vec<ArenaPatch>> {
    let own = fs::read_link(path).unwrap_or_else(|_| path.to_owned());
    let Some((_, found, _)) = functions_of(catalog, elf, &own)? else {
        return Ok(Vec::new());
    };
    let functions = found
        .iter()
        .filter(|function| function.probe.is_none() && !function.is_place);
    let entries: BTreeSet<u64> = functions.map(|function| function.offset).collect();
    let points: Vec<Point> = entries
        .into_iter()
        .filter(|offset| probe_site(elf, *offset).is_ok())
        .map(|offset| Point::entry(offset, 0, true))
        .collect();
    Ok(plan::of_file(elf, &points).patches)
}
