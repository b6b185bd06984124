//! A file that is there as a whole, or not at all: `NAME.partial` until all is written.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Goes away again unless it is kept.
pub struct WholeFile {
    file: File,
    path: PathBuf,
    partial: Option<PathBuf>,
}

impl WholeFile {
    /// Begins a file that will be called `path`. What is there and is no plain file, such as a pipe, is written to.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<WholeFile> {
        let is_special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = (!is_special).then(|| PathBuf::from(name));
        let file = File::create(partial.as_deref().unwrap_or(path)).with_context(|| {
            format!(
                "failed to create {}\nhint: is its directory there and writable?",
                path.display()
            )
        })?;
        Ok(WholeFile {
            file,
            path: path.to_owned(),
            partial,
        })
    }

    /// All is written: gives the file its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn keep(mut self) -> Result<()> {
        let Some(partial) = self.partial.take() else {
            return Ok(());
        };
        std::fs::rename(&partial, &self.path)
            .inspect_err(|_| drop(std::fs::remove_file(&partial)))
            .with_context(|| format!("failed to give {} its name", self.path.display()))
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
            let _ = std::fs::remove_file(partial);
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
