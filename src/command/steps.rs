//! The steps of a recording: looked for, and those that `--step` asks for.

use super::progress::Progress;
use super::reading;
use crate::cli::StepRange;
use crate::report::find_steps;
use crate::steps::{Chosen, Found, Part};
use crate::trace::Recording;
use anyhow::{Result, bail};
use std::path::Path;

/// Looks for the steps of the recording at `path`.
pub(super) fn find(path: &Path) -> Result<Found> {
    let mut progress = Progress::of(format!("looking for steps in {}", path.display()));
    find_steps(path, &mut |done, all| progress.show(done, all))
}

/// Where the steps are that are asked for: those of the process that launches most.
pub(super) fn choose(path: &Path, range: StepRange, found: &Found) -> Result<Part> {
    let Some(anchor) = found.anchors.first() else {
        let why = found.why_none.as_deref().unwrap_or_default();
        bail!("no steps found in {}: {why}\nhint: leave --step away", path.display());
    };
    let mut chosen = Chosen::new(anchor.clone(), range.first, range.last);
    reading::read(Recording::open(path)?, path, "numbering steps of", &mut chosen);
    chosen.part().or_else(|count| {
        bail!(
            "{} has steps 1 to {count}, not {}\nhint: --step 1..{count}",
            path.display(),
            range.last.max(range.first)
        )
    })
}
