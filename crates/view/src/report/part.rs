//! The steps of a recording: looked for, and a report of some of them.

use super::{Collector, Report, Source};
use crate::record::Crop;
use crate::steps::{Finder, Found, Part};
use crate::trace::{Covers, Recording};
use anyhow::Result;
use std::path::Path;

/// Looks for the steps of a recording, which takes a reading of its own; `watch` is told how many
/// bytes of how many are read, now and then.
///
/// # Errors
/// It cannot be read, or is none.
pub fn find_steps(path: &Path, watch: &mut dyn FnMut(u64, u64)) -> Result<Found> {
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Ok(Found::none(
            "they are looked for where the recording is a file, which can be read twice",
        ));
    }
    let mut finder = Finder::default();
    Recording::open(path)?.read_watched(path, &mut finder, watch);
    Ok(finder.found())
}

/// Reads some steps of a recording; `watch` is told how many bytes of how many are read, now and then.
///
/// # Errors
/// It cannot be read, or is none.
pub fn load_part(path: &Path, part: &Part, watch: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    let reader = Recording::open(path)?;
    let mut collector = Collector::new();
    collector.covers(Covers::From(part.from));
    let mut crop = Crop::new(part.from, part.to, &mut collector);
    let end = reader.read_watched(path, &mut crop, watch);
    let rows = crop.rows;
    let source = Source {
        name: path.display().to_string(),
        rows,
        cut: end.cut,
        part: Some(part.words()),
        ..Source::default()
    };
    // those of the recording are of all of it
    Ok(collector.report(source, None))
}
