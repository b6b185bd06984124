//! Which runtimes lie in files, as an earlier gpuscope found it: to search a framework's libraries takes a third of a second, in
//! which its program stands still.
//!
//! Owns the file of what was found, a line each, in this user's folder for caches. A file is known by device, inode, size and
//! the times of its last changes; what was found by another build of gpuscope, or for other rows, does not count.

use crate::elf::{ElfError, ElfFile, FileIdentity, StaticRuntime};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A file beyond this is begun anew.
const MOST_BYTES: u64 = 16 << 20;

type Found = Option<StaticRuntime>;

#[derive(Serialize, Deserialize)]
struct Line {
    /// Of the build, the rows that were looked for, and what follows: what is torn or damaged has another.
    digest: u64,
    file: FileIdentity,
    found: Found,
}

struct Remembered {
    known: HashMap<FileIdentity, Found>,
    file: File,
    build: u64,
}

/// What `search` finds in a file, or has found in it before.
///
/// # Errors
/// Those of `search`.
pub(super) fn runtime_in(
    elf: &ElfFile,
    names: u64,
    search: impl FnOnce() -> Result<Found, ElfError>,
) -> Result<Found, ElfError> {
    let identity = elf.identity();
    let known = identity.and_then(|identity| all(names)?.known.get(&identity).cloned());
    if let Some(found) = known {
        return Ok(found);
    }
    let found = search()?;
    if let Some(identity) = identity.filter(FileIdentity::is_settled)
        && let Some(mut all) = all(names)
    {
        all.add(identity, found.clone());
    }
    Ok(found)
}

/// `None`: there is no such file, or it may not be trusted.
fn all(names: u64) -> Option<MutexGuard<'static, Remembered>> {
    static ALL: OnceLock<Option<Mutex<Remembered>>> = OnceLock::new();
    let all = ALL.get_or_init(|| Remembered::open(&folder()?, names).map(Mutex::new));
    let all = all.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
    // a run looks for one set of names
    (all.build == build_for(names)).then_some(all)
}

/// Root's own, so that nothing of root's lies in a user's home.
fn folder() -> Option<PathBuf> {
    // SAFETY: asks the kernel, and cannot fail
    let is_root = unsafe { libc::geteuid() } == 0;
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let parent = named.or_else(|| if is_root { Some("/var/cache".into()) } else { home() })?;
    parent.is_absolute().then(|| parent.join("gpuscope"))
}

/// Of this program and what it looks for.
fn build_for(names: u64) -> u64 {
    static PROGRAM: OnceLock<(u64, i64, i64)> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let facts = std::fs::metadata("/proc/self/exe");
        facts.map_or_else(|_| (0, 0, 0), |facts| (facts.size(), facts.mtime(), facts.mtime_nsec()))
    });
    digest_of(&(env!("CARGO_PKG_VERSION"), program, names))
}

pub(super) fn digest_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

impl Remembered {
    fn open(folder: &Path, names: u64) -> Option<Remembered> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
        let mut options = File::options();
        options.read(true).append(true).create(true).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let mut file = options.open(folder.join("runtimes.jsonl")).ok()?;
        let facts = file.metadata().ok()?;
        // SAFETY: asks the kernel, and cannot fail
        let own = unsafe { libc::geteuid() };
        if !facts.is_file() || facts.uid() != own || facts.mode() & 0o022 != 0 {
            return None;
        }
        if facts.len() > MOST_BYTES {
            file.set_len(0).ok()?;
        }
        let mut text = Vec::new();
        (&mut file).take(MOST_BYTES).read_to_end(&mut text).ok()?;
        let build = build_for(names);
        let lines = text.split(|byte| *byte == b'\n').filter_map(|line| read(line, build));
        Some(Remembered {
            known: lines.collect(),
            file,
            build,
        })
    }

    fn add(&mut self, identity: FileIdentity, found: Found) {
        let line = Line {
            digest: digest_of(&(self.build, &identity, &found)),
            file: identity,
            found,
        };
        if let Ok(mut text) = serde_json::to_vec(&line) {
            text.push(b'\n');
            // one write: lines of others who write now stay whole; without it, it is searched again
            let _ = self.file.write_all(&text);
        }
        self.known.insert(line.file, line.found);
    }
}

fn read(line: &[u8], build: u64) -> Option<(FileIdentity, Found)> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let is_whole = line.digest == digest_of(&(build, &line.file, &line.found));
    is_whole.then_some((line.file, line.found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Method;
    use std::io::Seek;

    fn identity(inode: u64) -> FileIdentity {
        FileIdentity {
            device: 1,
            inode,
            bytes: 3,
            written: (4, 5),
            changed: (6, 7),
        }
    }

    fn runtime() -> Found {
        Some(StaticRuntime {
            method: Method::NameStrings,
            functions: vec![("cudaMalloc".to_owned(), 4096)],
            major: Some(12),
        })
    }

    #[test]
    fn what_was_found_is_known_again_to_the_same_build_for_the_same_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = Remembered::open(folder.path(), 1).expect("a file");
        first.add(identity(1), runtime());
        first.add(identity(2), None);
        let again = Remembered::open(folder.path(), 1).expect("a file");
        assert_eq!(again.known.get(&identity(1)), Some(&runtime()));
        assert_eq!(again.known.get(&identity(2)), Some(&None));
        assert_eq!(again.known.get(&identity(3)), None);
        assert!(Remembered::open(folder.path(), 2).expect("a file").known.is_empty());
    }

    #[test]
    fn a_damaged_line_is_no_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = Remembered::open(folder.path(), 1).expect("a file");
        first.add(identity(1), runtime());
        first.add(identity(2), runtime());
        first.file.rewind().expect("rewound");
        let mut text = String::new();
        first.file.read_to_string(&mut text).expect("text");
        let (one, two) = text.split_once('\n').expect("two lines");
        let forged = format!("{}\n{}", one.replace("4096", "4097"), &two[..two.len() / 2]);
        std::fs::write(folder.path().join("runtimes.jsonl"), forged).expect("written");
        assert!(Remembered::open(folder.path(), 1).expect("a file").known.is_empty());
    }

    #[test]
    fn a_file_that_others_may_write_or_that_lies_elsewhere_is_not_trusted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runtimes.jsonl");
        std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
        assert!(Remembered::open(folder.path(), 1).is_none());
        std::fs::remove_file(&path).expect("removed");
        let file = File::create(&path).expect("a file");
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .expect("set");
        assert!(Remembered::open(folder.path(), 1).is_none());
    }

    #[test]
    fn what_has_just_changed_is_searched_again() {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("a time");
        let changed = |ago: i64| FileIdentity {
            changed: (now.as_secs().cast_signed() - ago, 0),
            ..identity(1)
        };
        assert!(changed(60).is_settled() && !changed(1).is_settled());
    }
}
