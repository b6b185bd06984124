//! A file that is read, and as people call it.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A file, and as people call it.
pub(super) type Named = (PathBuf, File);

pub(super) fn buffered(path: &Path, file: File) -> Result<BufReader<File>> {
    let about = file.metadata().with_context(|| failed(path))?;
    if about.is_file() && about.len() == 0 {
        bail!("{} is empty: it was never written to", path.display());
    }
    Ok(BufReader::with_capacity(1 << 20, file))
}

pub(super) fn failed(path: &Path) -> String {
    format!("failed to read {}", path.display())
}
