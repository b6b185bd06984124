//! Reading a recording, with a bar on a terminal where that takes long; and its first reading, where only a part is asked for.

use super::progress::Progress;
use crate::cli::StepRange;
use crate::part::{Part, Within};
use crate::record::{Meta, Record, Taker};
use crate::refusal::Usage;
use crate::steps::{Followed, Follower, Numbered, Spans};
use crate::trace::{End, Files, Recording};
use anyhow::{Result, bail};
use std::path::Path;

/// Hands all rows of the recording in `files` to `taker`. `doing`: what that is for.
pub(crate) fn read(recording: Recording, files: &Files, doing: &str, taker: &mut dyn Taker) -> End {
    let mut progress = Progress::of(format!("{doing} {}", files.path().display()));
    recording.read_watched(files.bytes(), taker, &mut |done, all| progress.show(done, all))
}

/// The same, and looks for the steps of the recording on the way. Where they turn out too late to be cut elsewhere than it was
/// thought, a file is read once more.
///
/// # Errors
/// The recording cannot be read once more.
pub(crate) fn read_with_steps(
    recording: Recording,
    files: &Files,
    doing: &str,
    taker: &mut dyn Taker,
) -> Result<(End, Followed<Spans>)> {
    let mut both = Both {
        one: taker,
        other: Follower::default(),
    };
    let end = read(recording, files, doing, &mut both);
    let followed = both.other.finish();
    let Some(anchors) = followed.again.clone().filter(|_| files.can_be_read_again()) else {
        return Ok((end, followed));
    };
    let mut follower = Follower::at(anchors);
    read(files.recording()?, files, "numbering steps of", &mut follower);
    Ok((end, follower.finish()))
}

/// Two that take the same rows.
struct Both<'a, T> {
    one: &'a mut dyn Taker,
    other: T,
}

impl<T: Taker> Taker for Both<'_, T> {
    fn start(&mut self, meta: &Meta) {
        self.one.start(meta);
    }

    fn take(&mut self, record: &Record<'_>) {
        self.one.take(record);
        self.other.take(record);
    }

    fn totals(&mut self, at: i64, totals: &str) {
        self.one.totals(at, totals);
    }
}

/// What `--range` and `--step` ask for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked<'a> {
    pub range: Option<&'a str>,
    pub step: Option<StepRange>,
}

/// Where it lies, and all steps, which have their numbers in the whole; `None`: everything is asked for, and nothing was read.
///
/// # Errors
/// The recording cannot be read twice, or has no such part.
pub(crate) fn locate(files: &Files, asked: Asked<'_>) -> Result<Option<(Part, Vec<Numbered>)>> {
    if asked.range.is_none() && asked.step.is_none() {
        return Ok(None);
    }
    let path = files.path();
    if !files.can_be_read_again() {
        bail!(Usage(format!(
            "{} is read twice for a part of it, and is no file\nhint: leave --step and --range away, or write it to a file first",
            path.display()
        )));
    }
    let mut within = Within::of(asked.range.unwrap_or_default());
    let (_, followed) = read_with_steps(files.recording()?, files, "looking through", &mut within)?;
    let why_none = followed.why_none.clone().unwrap_or_default();
    let steps = followed.numbered();
    let part = match (asked.range, asked.step) {
        (Some(range), _) => ranges(path, range, within)?,
        (None, Some(step)) => chosen(path, step, steps.first(), &why_none)?,
        (None, None) => Part::All,
    };
    Ok(Some((part, steps)))
}

fn ranges(path: &Path, glob: &str, within: Within) -> Result<Part> {
    let Some(within) = within.whole() else {
        bail!(Usage(format!(
            "--range {glob}: {} has no range of that name\nhint: gpuscope report {} lists those that it has",
            path.display(),
            path.display()
        )));
    };
    Ok(Part::Ranges(within))
}

/// Those of the process that launches most.
fn chosen(path: &Path, range: StepRange, steps: Option<&Numbered>, why_none: &str) -> Result<Part> {
    let Some(steps) = steps else {
        bail!(
            "no steps found in {}: {why_none}\nhint: leave --step away",
            path.display()
        );
    };
    let Some(part) = steps.part(range.first, range.last) else {
        let (path, count) = (path.display(), steps.kept());
        bail!(
            "{path} has steps 1 to {count}, not {}\nhint: --step 1..{count}",
            range.last.max(range.first)
        );
    };
    Ok(Part::Steps(part))
}
