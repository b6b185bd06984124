//! Reading a recording, with a bar on a terminal where that takes long.

use super::progress::Progress;
use crate::record::Taker;
use crate::refusal::Usage;
use crate::trace::{End, Recording};
use crate::within::Within;
use anyhow::{Result, bail};
use std::path::Path;

/// Hands all rows of the recording at `path` to `taker`. `doing`: what that is for.
pub fn read(recording: Recording, path: &Path, doing: &str, taker: &mut dyn Taker) -> End {
    let mut progress = Progress::of(format!("{doing} {}", path.display()));
    recording.read_watched(path, taker, &mut |done, all| progress.show(done, all))
}

/// Looks where the ranges lie that `--range` names; `None`: it was not given.
///
/// # Errors
/// The recording cannot be read, or has no such range.
pub fn within(path: &Path, glob: Option<&str>) -> Result<Option<Within>> {
    let Some(glob) = glob else { return Ok(None) };
    let mut within = Within::of(glob);
    read(Recording::open(path)?, path, "looking through", &mut within);
    let Some(within) = within.whole() else {
        bail!(Usage(format!(
            "--range {glob}: {} has no range of that name\nhint: gpuscope report {} lists those that it has",
            path.display(),
            path.display()
        )));
    };
    Ok(Some(within))
}

/// Hands the rows of `recording` that lie `within` to `taker`, or all of them.
pub fn read_within(
    recording: Recording,
    path: &Path,
    doing: &str,
    within: Option<&Within>,
    taker: &mut dyn Taker,
) -> End {
    match within {
        Some(within) => {
            let mut only = within.only(taker);
            let end = read(recording, path, doing, &mut only);
            End { rows: only.rows, ..end }
        }
        None => read(recording, path, doing, taker),
    }
}
