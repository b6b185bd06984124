//! What a hook costs on this machine: `make bench`. Run as root by scripts/bench.sh.
//!
//! usage: overhead FOLDER [OUTPUT.md]. FOLDER holds `hammer`, `libcudart.so.13` (target.c), `gpuscope` and the
//! simulated CUDA in `sim`. Each part adds tables; those of a region replace what stands between its markers in OUTPUT.md.
//! `OVERHEAD_PART=calls|cold|sites|starts|format|live|idle|record|serve` runs one part only; what is not all of a region is not written.
//! `OVERHEAD_ROUNDS=3` has calls, sites, starts and live make few rounds, to see that they work; nothing is written then either.

mod cold;
mod exporter;
mod format;
mod hammer;
mod idle;
mod live;
mod record;
mod report;
mod rounds;
mod scrape;
mod serve;
mod serving;
mod sites;
mod starts;
mod tracer;

use anyhow::{Context, Result};
use std::path::PathBuf;

/// How many rounds are made, instead of as many as are usual.
pub const ROUNDS_VARIABLE: &str = "OVERHEAD_ROUNDS";

/// Where everything that is run lies.
pub struct Folder(PathBuf);

impl Folder {
    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A copy of the probed library of its own, so that each tracer hooks its own file.
    fn library(&self, owner: &str) -> Result<PathBuf> {
        self.library_as(owner, "libcudart.so.13")
    }

    /// The same under another name.
    fn library_as(&self, owner: &str, name: &str) -> Result<PathBuf> {
        let own = self.0.join(owner);
        std::fs::create_dir_all(&own).with_context(|| format!("failed to make {}", own.display()))?;
        let library = own.join(name);
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
    let only = std::env::var("OVERHEAD_PART").ok();
    let output = output.filter(|_| std::env::var_os(ROUNDS_VARIABLE).is_none());
    for (region, parts) in REGIONS {
        let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
        let mut wanted = parts.iter().filter(|(name, _)| wanted(name)).peekable();
        if wanted.peek().is_none() {
            continue;
        }
        let mut report = report::Report::new()?;
        let mut whole = 0;
        for (_, part) in wanted {
            part(&folder)?.into_iter().for_each(|table| report.add(table));
            whole += 1;
        }
        if let Some(path) = output.as_ref().filter(|_| whole == parts.len()) {
            report.write_into(path, region)?;
        }
    }
    Ok(())
}

type Part = fn(&Folder) -> Result<Vec<report::Table>>;

const REGIONS: &[(&str, &[(&str, Part)])] = &[
    (
        "trace",
        &[
            ("calls", rounds::run),
            ("cold", cold::run),
            ("sites", sites::run),
            ("starts", starts::run),
            ("format", format::run),
            ("live", live::run),
            ("idle", idle::run),
        ],
    ),
    ("record", &[("record", record::run)]),
    (
        "serve",
        &[("serve", serve::run), ("serve", serving::run), ("serve", scrape::run)],
    ),
];
