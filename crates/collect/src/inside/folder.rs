//! Where a library that programs load lies as a file, and the socket that it finds us by: a folder of the run, which goes with it.
//!
//! Owns the folder, from when it is made until nobody needs it. Where it may lie is `places`' business, what programs are
//! started with `environment`'s.

mod environment;
mod places;

pub(crate) use environment::is_taken;
pub(super) use environment::{INJECTION, leave_injection, variables};
pub(super) use places::{is_of, let_run, may_be_run, places};

use anyhow::{Context, Result, bail};
use places::{in_memory, lets_everybody_pass};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What is loaded into programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Library {
    pub file: &'static str,
    pub bytes: &'static [u8],
    /// Where it is told who it is for.
    pub variable: &'static str,
}

/// The agent: a library that needs no other.
pub(super) const AGENT: Library = Library {
    file: "libgpuscope_agent.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libgpuscope_agent.so")),
    variable: "GPUSCOPE_AGENT",
};
/// What CUDA loads in them, for [`crate::activity`].
pub(crate) const ACTIVITY: Library = Library {
    file: "libgpuscope_activity.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libgpuscope_activity.so")),
    variable: "GPUSCOPE_ACTIVITY",
};
/// What has CUDA load a library in each process.
pub const CUDA_INJECTION: &str = "CUDA_INJECTION64_PATH";
/// As the thread of that library is called.
pub const GPU_THREAD: &str = "gpuscope-gpu";
const SOCKET: &str = "socket";
const PREFIX: &str = "gpuscope-";
/// Of a path that an agent takes, in bytes.
const LONGEST_PATH: usize = 99;
/// Of a process, in bytes: what the kernel lets a program be started with.
const LONGEST_ENVIRONMENT: u64 = 6 << 20;

/// Of which sources this gpuscope's agent is.
pub(super) fn own_build() -> u64 {
    env!("GPUSCOPE_AGENT_BUILD").parse().unwrap_or_default()
}

/// Where a library that programs load lies as a file, and the socket that it finds us by.
pub(crate) struct Folder {
    path: PathBuf,
    library: Library,
    /// The library, where no file system lets its code be run; its name leads to us, and goes with us.
    memory: Option<OwnedFd>,
}

impl Folder {
    /// Makes it where files may be mapped to be run; else, with the library in memory, where they may be written.
    ///
    /// # Errors
    /// There is no such place.
    pub(crate) fn make(library: Library) -> Result<Folder> {
        let mut refused = Vec::new();
        for make in [Folder::make_in, Folder::make_beside_memory] {
            for parent in places() {
                match make(&parent, library) {
                    Ok(folder) => return Ok(folder),
                    Err(error) => refused.push(format!("{}: {error:#}", parent.display())),
                }
            }
        }
        refused.sort();
        refused.dedup();
        bail!(
            "found no folder for what is loaded into the program ({})\nhint: set TMPDIR to a folder that may be written and is not mounted noexec",
            refused.join("; ")
        );
    }

    fn make_in(parent: &Path, library: Library) -> Result<Folder> {
        let folder = Folder::empty_in(parent, library)?;
        fs::write(folder.library(), library.bytes).context("failed to write what programs load")?;
        let_run(&folder.library())?;
        may_be_run(&folder.library())?;
        Ok(folder)
    }

    fn make_beside_memory(parent: &Path, library: Library) -> Result<Folder> {
        let mut folder = Folder::empty_in(parent, library)?;
        folder.memory = Some(in_memory(library)?);
        may_be_run(&folder.library())?;
        Ok(folder)
    }

    fn empty_in(parent: &Path, library: Library) -> Result<Folder> {
        sweep(parent);
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), crate::clock::monotonic_ns());
        let folder = Folder {
            path: parent.join(name),
            library,
            memory: None,
        };
        if folder.socket().as_os_str().len() > LONGEST_PATH {
            bail!("its path is too long");
        }
        DirBuilder::new().mode(0o700).create(&folder.path)?;
        Ok(folder)
    }

    /// Whether programs of other users can be let reach it.
    ///
    /// # Errors
    /// They cannot; why.
    pub(super) fn may_be_opened(&self) -> Result<()> {
        if self.memory.is_some() {
            bail!(
                "what programs load lies in memory, as no folder lets code be run, where other users do not reach it\nhint: set TMPDIR to a folder that may be written and is not mounted noexec"
            );
        }
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        if !lets_everybody_pass(folder) {
            bail!(
                "programs of other users do not reach {}\nhint: set TMPDIR to a folder that everybody may enter",
                folder.display()
            );
        }
        Ok(())
    }

    /// Programs of other users reach it, too, who know its name.
    ///
    /// # Errors
    /// They cannot; why.
    pub(crate) fn open_to_others(&self) -> Result<()> {
        self.may_be_opened()?;
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        set(&self.path, 0o711)
            .and_then(|()| set(&self.socket(), 0o777))
            .with_context(|| format!("failed to open {} to the program's user", self.path.display()))
    }

    /// Takes it away: nobody was told of it.
    pub(super) fn discard(self) {
        let mut this = std::mem::ManuallyDrop::new(self);
        drop(this.memory.take());
        // what cannot be removed is a file of ours in a folder for such files
        let _ = fs::remove_dir_all(&this.path);
    }

    /// What programs load.
    pub(crate) fn library(&self) -> PathBuf {
        match &self.memory {
            Some(file) => format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into(),
            None => self.path.join(self.library.file),
        }
    }

    /// The socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    /// Processes whose programs were started so that they find us, also those that have forked since.
    pub(super) fn carriers(&self) -> Vec<u32> {
        let mut entry = format!("{}=", self.library.variable).into_bytes();
        entry.extend_from_slice(self.socket().as_os_str().as_bytes());
        let finder = memchr::memmem::Finder::new(&entry);
        let carries = |pid: &u32| {
            let environment = File::open(format!("/proc/{pid}/environ"));
            let mut bytes = Vec::new();
            // others' may not be read, and are not ours then
            let read = environment.map(|file| file.take(LONGEST_ENVIRONMENT).read_to_end(&mut bytes));
            read.is_ok() && finder.find(&bytes).is_some()
        };
        let mut found = crate::discover::processes();
        found.retain(|pid| *pid != std::process::id() && carries(pid) && !crate::discover::has_ended(*pid));
        found
    }

    /// What a program has to be started with. `preloaded`: what it loads already, which comes first.
    pub(super) fn environment(&self, preloaded: Option<OsString>) -> Vec<(OsString, OsString)> {
        variables(&self.library(), preloaded, self.socket().into())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // whoever lives on with it would be told by its dynamic linker, with each program that it starts, that it is gone
        if self.carriers().is_empty() {
            // what cannot be removed is a file of ours in a folder for such files
            let _ = fs::remove_dir_all(&self.path);
        } else {
            let _ = fs::remove_file(self.socket());
        }
    }
}

/// Removes what earlier runs have left, of which nobody lives on.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| is_over(path)) {
        let of = |library| {
            std::mem::ManuallyDrop::new(Folder {
                path: path.clone(),
                library,
                memory: None,
            })
        };
        if [AGENT, ACTIVITY]
            .into_iter()
            .all(|library| of(library).carriers().is_empty())
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether it is the folder of a run of this user that has ended.
fn is_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(pid) = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split('-').next()?.parse().ok())
    else {
        return false;
    };
    // SAFETY: asks the kernel, and cannot fail
    let own = unsafe { libc::geteuid() };
    let is_ours = fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir() && facts.uid() == own);
    let has_library = [AGENT, ACTIVITY]
        .iter()
        .any(|library| path.join(library.file).is_file());
    let is_made_so = has_library || path.join(SOCKET).exists();
    is_ours && is_made_so && crate::discover::has_ended(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_load_never_walks_the_list_of_libraries_that_another_thread_may_be_changing() {
        let uses = |library: Library, name: &str| library.bytes.windows(name.len()).any(|at| at == name.as_bytes());
        assert!(uses(ACTIVITY, "dlopen"), "names can be found");
        for library in [AGENT, ACTIVITY] {
            assert!(!uses(library, "dl_iterate_phdr"), "{}", library.file);
        }
    }

    #[test]
    fn what_a_program_loads_already_is_kept_and_comes_first() {
        let folder = Folder::make(AGENT).expect("a folder");
        let of = |list: Option<&str>| folder.environment(list.map(OsString::from))[0].1.clone();
        let own = folder.library().into_os_string();
        assert_eq!((of(None), of(Some(""))), (own.clone(), own.clone()));
        let mut both = OsString::from("/a.so:/b.so:");
        both.push(&own);
        assert_eq!(of(Some("/a.so:/b.so")), both);
        assert_eq!(
            of(Some("/a.so:/x/libgpuscope_agent.so:/b.so")),
            both,
            "an outer run's gives way"
        );
    }

    #[test]
    fn another_tool_keeps_nvtx_but_an_outer_run_does_not() {
        let folder = Folder::make(AGENT).expect("a folder");
        let of = |given: &str| {
            let mut all = folder.environment(None);
            let other = leave_injection(&mut all, Some(given.into()));
            (other, all.iter().any(|(name, _)| name == INJECTION))
        };
        assert_eq!(of("/opt/tool.so"), (Some("/opt/tool.so".into()), false));
        assert_eq!(of("/run/gpuscope-1-2/libgpuscope_agent.so"), (None, true));
        assert_eq!(of(""), (None, true));
    }

    #[test]
    fn what_a_run_has_left_is_swept_by_the_next_one() {
        let parent = tempfile::tempdir().expect("a folder");
        let of = |pid: u32| parent.path().join(format!("gpuscope-{pid}-1"));
        let (over, running) = (of(u32::MAX), of(std::process::id()));
        for folder in [&over, &running] {
            fs::create_dir(folder).expect("a folder");
            fs::write(folder.join(AGENT.file), AGENT.bytes).expect("a file");
        }
        fs::create_dir(parent.path().join("gpuscope-notes")).expect("a folder");
        sweep(parent.path());
        assert!(!over.exists() && running.exists() && parent.path().join("gpuscope-notes").exists());
    }

    #[test]
    fn who_cannot_enter_a_folder_is_not_sent_there() {
        let parent = tempfile::tempdir().expect("a folder");
        let set = |mode| fs::set_permissions(parent.path(), fs::Permissions::from_mode(mode)).expect("a mode");
        let folder = Folder::make_in(parent.path(), AGENT).expect("a folder");
        fs::write(folder.socket(), "").expect("a file");
        set(0o700);
        let refused = folder.open_to_others().expect_err("nobody else may enter").to_string();
        assert!(refused.contains("do not reach"), "{refused}");
        set(0o711);
        folder.open_to_others().expect("others may");
    }

    #[test]
    fn the_agent_needs_no_library_and_no_version_of_one() {
        use object::{Object, ObjectSymbol};
        let agent = object::File::parse(AGENT.bytes).expect("a library");
        let name = |symbol: &object::Symbol<'_, '_>| symbol.name().expect("a name").to_owned();
        let undefined = agent.dynamic_symbols().filter(|symbol| symbol.is_undefined());
        let mut undefined: Vec<(String, bool)> = undefined.map(|symbol| (name(&symbol), symbol.is_weak())).collect();
        undefined.sort();
        // glibc has had both from its first release on. Without the second the agent stays dormant; the first is where the
        // function that stands in for glibc's `prctl` says what has failed
        let both = ["__errno_location", "_r_debug"].map(|name| (name.to_owned(), true));
        assert_eq!(undefined, both);
        assert!(
            agent
                .imports()
                .expect("imports")
                .iter()
                .all(|import| import.library().is_empty())
        );
    }

    #[test]
    fn it_goes_with_the_run() {
        let folder = Folder::make(AGENT).expect("a folder");
        let path = folder.path.clone();
        assert!(path.join("libgpuscope_agent.so").is_file());
        drop(folder);
        assert!(!path.exists());
    }
}
