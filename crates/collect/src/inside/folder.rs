//! Where the agent lies as a file, and the socket that it finds us by: a folder of the run, which goes with it.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What is loaded into programs: a library that needs no other.
const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libgpuscope_agent.so"));
/// Of a path that an agent takes, in bytes.
const LONGEST_PATH: usize = 99;

/// See the module.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes it where files may be mapped to be run.
    ///
    /// # Errors
    /// There is no such place.
    pub(super) fn make() -> Result<Folder> {
        let mut refused = Vec::new();
        for parent in places() {
            match Folder::make_in(&parent) {
                Ok(folder) => return Ok(folder),
                Err(error) => refused.push(format!("{}: {error:#}", parent.display())),
            }
        }
        bail!(
            "found no folder for what is loaded into the program ({})\nhint: set TMPDIR to a folder that may be written and is not mounted noexec",
            refused.join("; ")
        );
    }

    fn make_in(parent: &Path) -> Result<Folder> {
        let name = format!("gpuscope-{}-{:x}", std::process::id(), crate::clock::monotonic_ns());
        let folder = Folder {
            path: parent.join(name),
        };
        if folder.socket().as_os_str().len() > LONGEST_PATH {
            bail!("its path is too long");
        }
        DirBuilder::new().mode(0o700).create(&folder.path)?;
        fs::write(folder.agent(), AGENT).context("failed to write the agent")?;
        fs::set_permissions(folder.agent(), fs::Permissions::from_mode(0o755))?;
        may_be_run(&folder.agent())?;
        Ok(folder)
    }

    /// Programs of other users reach it, too, who know its name.
    pub(super) fn open_to_others(&self) -> Result<()> {
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        set(&self.path, 0o711)
            .and_then(|()| set(&self.socket(), 0o777))
            .with_context(|| format!("failed to open {} to the program's user", self.path.display()))
    }

    /// The agent.
    pub(super) fn agent(&self) -> PathBuf {
        self.path.join("libgpuscope_agent.so")
    }

    /// The socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// What a program has to be started with. `preloaded`: what it loads already, which comes first.
    pub(super) fn environment(&self, preloaded: Option<OsString>) -> Vec<(OsString, OsString)> {
        let mut preload = preloaded.filter(|list| !list.is_empty()).unwrap_or_default();
        if !preload.is_empty() {
            preload.push(":");
        }
        preload.push(self.agent());
        vec![
            ("LD_PRELOAD".into(), preload),
            ("GPUSCOPE_AGENT".into(), self.socket().into()),
        ]
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // what cannot be removed is a file of ours in a folder for such files
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A folder of the user's, memory, and where temporary files go.
fn places() -> Vec<PathBuf> {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let [own, temporary] = named;
    let fixed = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
    let [memory, usual, last] = fixed;
    let all = [own, Some(memory), temporary, Some(usual), Some(last)];
    all.into_iter().flatten().filter(|path| path.is_absolute()).collect()
}

/// Whether the file system lets code of a file be run.
fn may_be_run(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    // SAFETY: a mapping of our own, which is taken away at once
    unsafe {
        let rights = libc::PROT_READ | libc::PROT_EXEC;
        let at = libc::mmap(std::ptr::null_mut(), 4096, rights, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("it is mounted noexec");
        }
        libc::munmap(at, 4096);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_loads_already_is_kept_and_comes_first() {
        let folder = Folder::make().expect("a folder");
        let of = |list: Option<&str>| folder.environment(list.map(OsString::from))[0].1.clone();
        let own = folder.agent().into_os_string();
        assert_eq!((of(None), of(Some(""))), (own.clone(), own.clone()));
        let mut both = OsString::from("/a.so:/b.so:");
        both.push(&own);
        assert_eq!(of(Some("/a.so:/b.so")), both);
    }

    #[test]
    fn it_goes_with_the_run() {
        let folder = Folder::make().expect("a folder");
        let path = folder.path.clone();
        assert!(path.join("libgpuscope_agent.so").is_file());
        drop(folder);
        assert!(!path.exists());
    }
}
