//! A file that is there as a whole, or not at all: `NAME.partial` until all is written.

use crate::output::file::{self, Target, create_failed};
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Goes away again unless it is kept.
pub(crate) struct WholeFile {
    file: File,
    partial: Option<Partial>,
}

/// A name until all is written, and the one after that.
struct Partial {
    now: Target,
    then: Target,
}

impl WholeFile {
    /// Begins a file that will be called `path`. What is there and is no plain file, such as a pipe, is written to.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path) -> Result<WholeFile> {
        if is_special(path) {
            return Ok(WholeFile {
                file: file::create(path)?,
                partial: None,
            });
        }
        let then = Target::of(path)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let now = then.beside(&name).with_context(|| create_failed(path))?;
        Ok(WholeFile {
            file: begun(&now).with_context(|| create_failed(now.path()))?,
            partial: Some(Partial { now, then }),
        })
    }

    /// What is written to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// All is written: gives the file its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub(crate) fn keep(mut self) -> Result<()> {
        let Some(Partial { now, then }) = self.partial.take() else {
            return Ok(());
        };
        now.rename_to(&then)
            .inspect_err(|_| drop(now.remove()))
            .with_context(|| format!("failed to give {} its name", then.path().display()))
    }
}

/// Why a file is not there that could not be written to its end.
pub(super) fn no_room(error: &io::Error, path: &Path) -> anyhow::Error {
    anyhow!(
        "failed to write {}: {error}; nothing is left of it\nhint: free some space, or write elsewhere",
        path.display()
    )
}

/// A pipe or a device, which is written to as it is.
pub(super) fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// A new file, in the place of one that was never finished. A link of that name goes, not what it leads to.
fn begun(now: &Target) -> io::Result<File> {
    match now.create_new() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            now.remove()?;
            now.create_new()
        }
        made => made,
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = partial.now.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn what_is_not_kept_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        std::fs::write(&path, "before").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(names(folder.path()), ["t.json"]);
    }

    #[test]
    fn a_planted_link_is_replaced_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (path, precious) = (folder.path().join("t.html"), folder.path().join("precious"));
        std::fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, folder.path().join("t.html.partial")).unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.keep().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    }

    #[test]
    fn a_file_takes_the_place_of_a_planted_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, precious) = (folder.path().join("week.md"), folder.path().join("precious"));
        std::fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"page").unwrap();
        file.keep().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"page");
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    }

    #[test]
    fn what_is_kept_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(names(folder.path()), ["t.json.partial"]);
        file.keep().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["t.json"]);
    }
}
