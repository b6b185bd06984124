//! A program that carries the agent without being traced: what it is started with, and what is planned for its libraries while
//! they are loaded.
//!
//! Owns the folder where the agent, the dynamic linkers' plan and gpuscope lie for such programs, and the plans that agents ask
//! for. How one is woken is `door`'s business.

use super::arena::ArenaCall;
use super::folder::{self, AGENT, FILE};
use super::plan;
use super::run::Run;
use super::{door, name_of};
use crate::catalog::Catalog;
use crate::elf::{ElfFile, probe_site};
use crate::engine::Point;
use crate::probe::attach::{functions_of, system_linkers};
use crate::wire::bytes_of;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
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
/// There is no folder for that.
pub fn environment(folder: Option<&Path>, preloaded: Option<OsString>) -> Result<Vec<(OsString, OsString)>> {
    door::sweep();
    let folder = match folder {
        Some(folder) => install(folder).with_context(|| format!("failed to write to {}", folder.display()))?,
        None => install_anywhere()?,
    };
    let mut standby = OsString::from(STANDBY);
    standby.push(&folder);
    Ok(folder::variables(&folder.join(FILE), preloaded, standby))
}

/// Whether a process can be traced from inside though it runs already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standby {
    /// Its agent can be woken.
    Ready,
    /// It carries an agent that has had nothing to patch yet.
    Unready,
    /// It carries none, or belongs to somebody whom we may not look at.
    Absent,
}

/// How process `pid` stands.
#[must_use]
pub fn of(pid: u32) -> Standby {
    if door::has_door(pid) {
        return Standby::Ready;
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let entry = format!("{}={STANDBY}", folder::VARIABLE);
    let mut entries = environment.split(|byte| *byte == 0);
    match entries.any(|one| one.starts_with(entry.as_bytes())) {
        true => Standby::Unready,
        false => Standby::Absent,
    }
}

/// In the user's folder for data, else where temporary files go.
fn install_anywhere() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).or(home);
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
    let path = parent.join(version_of(&program)?);
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
    folder::may_be_run(&path.join(FILE))?;
    Ok(path)
}

/// What tells this gpuscope from any other.
fn version_of(program: &Path) -> Result<String> {
    let facts = fs::metadata(program)?;
    let build = facts.size() ^ (facts.mtime().cast_unsigned() << 20) ^ facts.mtime_nsec().cast_unsigned();
    Ok(format!("{}-{build:x}", env!("CARGO_PKG_VERSION")))
}

/// Whether all is there, and nobody else may change it.
fn is_whole(folder: &Path) -> Result<bool> {
    let Ok(facts) = fs::symlink_metadata(folder) else {
        return Ok(false);
    };
    // SAFETY: asks the kernel, and cannot fail
    let own = unsafe { libc::geteuid() };
    if !facts.is_dir() || ![0, own].contains(&facts.uid()) || facts.mode() & 0o022 != 0 {
        bail!("{} is somebody else's", folder.display());
    }
    Ok([FILE, LINKERS, PLANNER].iter().all(|name| folder.join(name).exists()))
}

fn fill(folder: &Path, program: &Path) -> Result<()> {
    DirBuilder::new().mode(0o755).create(folder)?;
    fs::write(folder.join(FILE), AGENT)?;
    folder::let_run(&folder.join(FILE))?;
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

/// Writes into the memory of an agent, which is descriptor `fd`, how each function of these files is patched.
///
/// # Errors
/// It is no such memory.
pub fn plan(fd: RawFd, paths: &[PathBuf]) -> Result<()> {
    if fd <= 2 {
        bail!("descriptor {fd} is no memory of an agent");
    }
    // SAFETY: the agent has left it to this process alone
    let run = Run::over(unsafe { OwnedFd::from_raw_fd(fd) })?;
    let catalog = Catalog::builtin().context("the built-in catalogue is wrong")?;
    for path in paths {
        // what is no file of ours stays as it is
        let _ = plan_file(&run, &catalog, path);
    }
    Ok(())
}

fn plan_file(run: &Run, catalog: &Catalog, path: &Path) -> Result<()> {
    let (name, file) = name_of(path)?;
    let elf = ElfFile::open(path)?;
    let own = fs::read_link(path).unwrap_or_else(|_| path.to_owned());
    if let Some((_, found, _)) = functions_of(catalog, &elf, &own)? {
        let functions = found
            .iter()
            .filter(|function| function.probe.is_none() && !function.is_place);
        let entries: BTreeSet<u64> = functions.map(|function| function.offset).collect();
        let points: Vec<Point> = entries
            .into_iter()
            .filter(|offset| probe_site(&elf, *offset).is_ok())
            .map(|offset| Point::entry(offset, 0, true))
            .collect();
        run.plan(name, &plan::of_file(&elf, &points).patches, &[])?;
    }
    run.know(&file);
    Ok(())
}
