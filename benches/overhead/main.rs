//! What a hook costs on this machine: `make bench`. Run as root by scripts/bench.sh.
//!
//! usage: overhead FOLDER [OUTPUT.md]. FOLDER holds `hammer`, `libcudart.so.13` (target.c), `gpuscope` and the
//! simulated CUDA in `sim`. Each part adds a table; the tables replace what stands between the markers of OUTPUT.md.
//! `OVERHEAD_PART=calls|format|live|idle` runs one part only, and writes nothing.

mod format;
mod hammer;
mod idle;
mod live;
mod report;
mod rounds;
mod tracer;

use anyhow::{Context, Result};
use std::path::PathBuf;

/// Where everything that is run lies.
pub struct Folder(PathBuf);

impl Folder {
    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A copy of the probed library of its own, so that each tracer hooks its own file.
    fn library(&self, owner: &str) -> Result<PathBuf> {
        let own = self.0.join(owner);
        std::fs::create_dir_all(&own).with_context(|| format!("failed to make {}", own.display()))?;
        let library = own.join("libcudart.so.13");
        std::fs::copy(self.file("libcudart.so.13"), &library)
            .with_context(|| format!("failed to copy the library to {}", library.display()))?;
        Ok(library)
    }
}

fn main() -> Result<()> {
    // cargo passes --bench
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let folder = words.next().context("usage: overhead FOLDER [OUTPUT.md]")?;
    let output = words.next().map(PathBuf::from);
    gpuscope::probe::route_messages(false);
    let folder = Folder(std::fs::canonicalize(&folder).with_context(|| format!("failed to find {folder}"))?);
    let mut report = report::Report::new()?;
    let only = std::env::var("OVERHEAD_PART").ok();
    for (name, part) in PARTS {
        if only.as_deref().is_none_or(|only| only == *name) {
            report.add(part(&folder)?);
        }
    }
    match output {
        Some(path) if only.is_none() => report.write_into(&path),
        _ => Ok(()),
    }
}

type Part = fn(&Folder) -> Result<report::Table>;

const PARTS: &[(&str, Part)] = &[
    ("calls", rounds::run),
    ("format", format::run),
    ("live", live::run),
    ("idle", idle::run),
];
