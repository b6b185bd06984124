//! Plans of files that programs which stand by have loaded, kept beside their agent: who loads the same file later asks nobody.
//!
//! Owns the file of them, which agents read by themselves (`kept.h`). A file is known by device, inode, size, the times of its
//! last changes and its name.

use super::arena::{ArenaFile, ArenaPatch, KEPT_BASIS, KEPT_BYTES, KEPT_MAGIC, KEPT_PRIME, KeptFile, KeptHead};
use super::folder::{is_of, own_build};
use crate::clock::monotonic_ns;
use crate::elf::FileIdentity;
use crate::wire::{bytes_of, read};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "plans";
/// What begins so is being written.
const PARTIAL: &str = "plans-";
/// Whoever has written for so long was killed.
const STALE: Duration = Duration::from_secs(60);

/// Plans of files, as they are kept in a folder.
pub(super) struct Kept {
    folder: PathBuf,
    plans: Vec<Plan>,
    has_more: bool,
}

struct Plan {
    file: KeptFile,
    patches: Vec<u8>,
}

impl Kept {
    /// Those of a folder, which must be this user's own.
    ///
    /// # Errors
    /// It is somebody else's, or others may write to it.
    pub(super) fn of(folder: &Path) -> Result<Kept> {
        if !is_of(&[crate::user::effective()], &fs::symlink_metadata(folder)?) {
            bail!("{} is somebody else's", folder.display());
        }
        Ok(Kept {
            folder: folder.to_owned(),
            plans: read_file(&folder.join(NAME))
                .and_then(|bytes| parsed(&bytes))
                .unwrap_or_default(),
            has_more: false,
        })
    }

    /// A file of that name which does not change any more was planned.
    pub(super) fn add(&mut self, identity: &FileIdentity, name: &OsStr, patches: &[ArenaPatch]) {
        let file = KeptFile {
            file: ArenaFile {
                device: identity.device,
                inode: identity.inode,
                changed: nanos(identity.changed),
            },
            bytes: identity.bytes,
            written: nanos(identity.written),
            name: digest(name.as_bytes().iter().map(|byte| u64::from(*byte))),
            patches: patches.len() as u64,
        };
        let key = |file: &KeptFile| (file.file.device, file.file.inode, file.name);
        self.plans.retain(|plan| key(&plan.file) != key(&file));
        let patches = patches.iter().flat_map(|patch| bytes_of(patch).to_vec()).collect();
        self.plans.push(Plan { file, patches });
        self.has_more = true;
    }

    /// Writes what has been added, for programs that begin from now on; those that read meanwhile have the file as it was.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self) -> Result<()> {
        if !self.has_more {
            return Ok(());
        }
        self.sweep();
        // processes of other containers have our number, too
        let unlike = format!("{PARTIAL}{}-{}", std::process::id(), monotonic_ns());
        let partial = self.folder.join(unlike);
        let written = write_new(&partial, &self.text(), &self.folder.join(NAME));
        written.with_context(|| format!("failed to write to {}", self.folder.display()))
    }

    /// Removes what was left by who was killed.
    fn sweep(&self) {
        let is_stale = |entry: &fs::DirEntry| {
            let age = entry.metadata().and_then(|facts| facts.modified());
            let age = age.ok().and_then(|time| time.elapsed().ok());
            entry.file_name().as_bytes().starts_with(PARTIAL.as_bytes()) && age.is_some_and(|age| age > STALE)
        };
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries
            .filter(is_stale)
            .for_each(|entry| drop(fs::remove_file(entry.path())));
    }

    fn text(&self) -> Vec<u8> {
        let whole = |plan: &Plan| [bytes_of(&plan.file), &plan.patches].concat();
        with_head(&self.newest().iter().flat_map(whole).collect::<Vec<u8>>())
    }

    /// As many as there is room for.
    fn newest(&self) -> &[Plan] {
        let mut bytes = size_of::<KeptHead>();
        let fits = |plan: &&Plan| {
            bytes += size_of::<KeptFile>() + plan.patches.len();
            bytes as u64 <= KEPT_BYTES
        };
        let count = self.plans.iter().rev().take_while(fits).count();
        &self.plans[self.plans.len() - count..]
    }
}

fn with_head(plans: &[u8]) -> Vec<u8> {
    let head = KeptHead {
        magic: KEPT_MAGIC,
        build: own_build(),
        bytes: plans.len() as u64,
        digest: digest_of(plans),
    };
    [bytes_of(&head), plans].concat()
}

/// What a file of them would be written as that holds `plans` behind its head; `None`: they are not believed.
#[cfg(any(test, fuzzing))]
pub(super) fn rewritten(plans: &[u8]) -> Option<Vec<u8>> {
    let kept = Kept {
        folder: PathBuf::new(),
        plans: parsed(&with_head(plans))?,
        has_more: false,
    };
    Some(kept.text())
}

fn nanos((seconds, nanos): (i64, i64)) -> u64 {
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos).cast_unsigned()
}

/// As agents have it.
fn digest(of: impl Iterator<Item = u64>) -> u64 {
    of.fold(KEPT_BASIS, |digest, one| (digest ^ one).wrapping_mul(KEPT_PRIME))
}

fn digest_of(bytes: &[u8]) -> u64 {
    digest(bytes.chunks_exact(size_of::<u64>()).filter_map(read))
}

fn read_file(path: &Path) -> Option<Vec<u8>> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut bytes = Vec::new();
    let file = options.open(path).ok()?;
    file.take(KEPT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// `None`: it was torn, or damaged.
fn parsed(bytes: &[u8]) -> Option<Vec<Plan>> {
    let (head, mut left) = bytes.split_at_checked(size_of::<KeptHead>())?;
    let head: KeptHead = read(head)?;
    let is_ours = head.magic == KEPT_MAGIC && head.build == own_build();
    if !is_ours || head.bytes != left.len() as u64 || head.digest != digest_of(left) {
        return None;
    }
    let mut plans = Vec::new();
    while !left.is_empty() {
        let (file, behind) = left.split_at_checked(size_of::<KeptFile>())?;
        let file: KeptFile = read(file)?;
        let bytes = usize::try_from(file.patches)
            .ok()?
            .checked_mul(size_of::<ArenaPatch>())?;
        let (patches, behind) = behind.split_at_checked(bytes)?;
        plans.push(Plan {
            file,
            patches: patches.to_vec(),
        });
        left = behind;
    }
    Some(plans)
}

/// Writes `partial`, which then is `path`.
fn write_new(partial: &Path, bytes: &[u8], path: &Path) -> Result<()> {
    let mut options = File::options();
    options
        .write(true)
        .create_new(true)
        .mode(0o644)
        .custom_flags(libc::O_NOFOLLOW);
    let mut file = options.open(partial)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(partial, path));
    Ok(written.inspect_err(|_| drop(fs::remove_file(partial)))?)
}

#[cfg(test)]
mod tests;
