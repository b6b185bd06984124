//! The folder of recordings: names, and how many files and bytes may lie there.
//!
//! What lies there and has none of our names is left alone.

use super::Cause;
use crate::output::file::{self, Target};
use crate::text::quantity::date;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Files; the oldest make room.
const MOST_FILES: usize = 100;
/// Of one name: so many in a second.
const MOST_ALIKE: u32 = 1000;

/// A recording that lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptFile {
    pub path: PathBuf,
    pub cause: Cause,
    /// The process that it is about; `None`: several.
    pub pid: Option<u32>,
    pub bytes: u64,
}

/// The folder of recordings.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Most bytes of all files.
    budget: u64,
    /// The oldest first.
    files: Vec<KeptFile>,
}

impl Folder {
    /// Makes it, or finds what lies there.
    ///
    /// # Errors
    /// It cannot be made or read.
    pub(super) fn open(path: &Path, budget: u64) -> Result<Folder> {
        file::create_folder(path)?;
        let entries = fs::read_dir(path).with_context(|| format!("failed to read the folder {}", path.display()))?;
        let mut files: Vec<KeptFile> = entries.flatten().filter_map(|entry| known(&entry)).collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Folder {
            path: path.to_owned(),
            budget,
            files,
        })
    }

    pub(super) fn files(&self) -> &[KeptFile] {
        &self.files
    }

    /// Writes a recording, whole or not at all; older ones make room.
    ///
    /// # Errors
    /// It is larger than all may be, or the disk does not take it.
    pub(super) fn write(&mut self, cause: Cause, pid: Option<u32>, bytes: &[u8]) -> Result<KeptFile> {
        let size = bytes.len() as u64;
        if size > self.budget {
            bail!("it has {size} bytes\nhint: --keep-disk allows {}", self.budget);
        }
        self.make_room(size)?;
        let target = self.free(cause, pid)?;
        let written = target.create_new().and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        });
        written
            // half a recording takes room and is of no use
            .inspect_err(|_| drop(target.remove()))
            .with_context(|| format!("failed to write {}", target.path().display()))?;
        let file = KeptFile {
            path: target.path().to_owned(),
            cause,
            pid,
            bytes: size,
        };
        self.files.push(file.clone());
        Ok(file)
    }

    fn free(&self, cause: Cause, pid: Option<u32>) -> Result<Target> {
        let now = stamp(SystemTime::now());
        let whose = pid.map_or_else(String::new, |pid| format!("-{pid}"));
        for number in 1..MOST_ALIKE {
            let again = if number > 1 {
                format!(".{number}")
            } else {
                String::new()
            };
            let name = format!("kept-{now}-{}{whose}{again}.arrows", cause.name());
            let target = Target::of(&self.path.join(name))?;
            if !target.is_taken() {
                return Ok(target);
            }
        }
        bail!("failed to find a name that is free in {}", self.path.display())
    }

    fn make_room(&mut self, more: u64) -> Result<()> {
        let used = |files: &[KeptFile]| files.iter().map(|file| file.bytes).sum::<u64>();
        while self.files.len() >= MOST_FILES || used(&self.files).saturating_add(more) > self.budget {
            let Some(place) = self.least_missed() else { break };
            let oldest = self.files.remove(place);
            match fs::remove_file(&oldest.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("failed to remove {}", oldest.path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The oldest of the cause that has most: what is seldom stays.
    fn least_missed(&self) -> Option<usize> {
        let of = |cause| self.files.iter().filter(|file| file.cause == cause).count();
        let most = Cause::ALL.into_iter().max_by_key(|cause| of(*cause))?;
        self.files.iter().position(|file| file.cause == most)
    }
}

/// A file of ours; anything else is none.
fn known(entry: &fs::DirEntry) -> Option<KeptFile> {
    let name = entry.file_name();
    let words = name.to_str()?.strip_prefix("kept-")?.strip_suffix(".arrows")?;
    let (words, _again) = words.split_once('.').unwrap_or((words, ""));
    let mut parts = words.split('-');
    let (_, cause) = (parts.next()?, Cause::of_name(parts.next()?)?);
    let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
    Some(KeptFile {
        path: entry.path(),
        cause,
        pid: parts.next().and_then(|pid| pid.parse().ok()),
        bytes: about.len(),
    })
}

/// `20261126T023455Z`.
fn stamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let day = date(i64::try_from(seconds / 86_400).unwrap_or_default()).replace('-', "");
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{day}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn folder(budget: u64) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(&place.path().join("kept"), budget).expect("a folder");
        (place, folder)
    }

    #[test]
    fn a_name_says_when_why_and_whose() {
        let at = |seconds| stamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(
            [at(0), at(951_827_696), at(1_795_660_000), at(4_107_542_399)],
            [
                "19700101T000000Z",
                "20000229T123456Z",
                "20261126T022640Z",
                "21000228T235959Z"
            ]
        );
        let (_place, mut folder) = folder(100);
        let file = folder.write(Cause::Xid, Some(7), b"x").expect("a file");
        let name = file.path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name.starts_with("kept-2") && name.ends_with("Z-xid-7.arrows"), "{name}");
    }

    #[test]
    fn what_lies_there_is_found_again_and_what_is_not_ours_is_left_alone() {
        let (place, mut folder) = folder(100);
        for (cause, pid) in [
            (Cause::Webhook, None),
            (Cause::FatalError, Some(7)),
            (Cause::FatalError, Some(7)),
        ] {
            folder.write(cause, pid, b"abc").expect("a file");
        }
        let path = place.path().join("kept");
        fs::write(path.join("kept-notes.txt"), "mine").expect("a file");
        fs::write(path.join("kept-1-other-7.arrows"), "mine").expect("a file");
        std::os::unix::fs::symlink("/etc/passwd", path.join("kept-1-xid-7.arrows")).expect("a link");
        let mut again = Folder::open(&path, 5).expect("a folder");
        let mut expected = folder.files().to_vec();
        expected.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(again.files(), expected);
        again.write(Cause::Xid, None, b"abcde").expect("a file");
        assert_eq!(again.files().len(), 1, "the others made room");
        assert_eq!(fs::read_dir(&path).expect("a folder").count(), 4);
    }

    #[test]
    fn the_oldest_of_the_most_frequent_cause_makes_room() {
        let (_place, mut folder) = folder(1 << 20);
        let first = folder.write(Cause::FatalError, Some(1), b"x").expect("a file");
        let many = (0..MOST_FILES as u32).map(|pid| folder.write(Cause::OutOfMemory, Some(pid), b"x").expect("a file"));
        let many: Vec<KeptFile> = many.collect();
        assert_eq!(folder.files().len(), MOST_FILES);
        assert!(first.path.exists(), "what is seldom stays");
        assert!(!many[0].path.exists() && many[1].path.exists());
    }

    #[test]
    fn what_is_larger_than_all_may_be_removes_nothing() {
        let (_place, mut folder) = folder(4);
        let file = folder.write(Cause::Xid, None, b"abc").expect("a file");
        let said = folder.write(Cause::Xid, None, b"abcde").unwrap_err().to_string();
        assert!(said.contains("it has 5 bytes\nhint: --keep-disk"), "{said}");
        assert!(file.path.exists());
    }
}
