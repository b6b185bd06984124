//! What is exported: a recording, with its steps where a format has a place for them; or a part of it.

use super::super::{reading, steps};
use crate::cli::{ExportArgs, ExportFormat};
use crate::record::{Crop, Taker};
use crate::steps::{Anchor, Found, Marking, Part};
use crate::trace::{End, Recording};
use crate::within::Within;
use anyhow::Result;
use std::path::PathBuf;

/// Which part.
enum Portion {
    Steps(Part),
    Ranges(Within),
}

/// Rows that are to be written.
pub(super) struct Rows {
    pub path: PathBuf,
    pub recording: Recording,
    marked: Vec<Anchor>,
    portion: Option<Portion>,
}

impl Rows {
    /// # Errors
    /// The recording cannot be read, or has no such part.
    pub(super) fn of(args: &ExportArgs, format: ExportFormat) -> Result<Rows> {
        let path = args.file.clone();
        let recording = Recording::open(&path)?;
        let shows_steps = matches!(format, ExportFormat::Chrome | ExportFormat::Perfetto);
        let found = match shows_steps || args.step.is_some() {
            true => steps::find(&path)?,
            false => Found::default(),
        };
        let chosen = args.step.map(|range| steps::choose(&path, range, &found)).transpose()?;
        let within = reading::within(&path, args.range.as_deref())?.map(Portion::Ranges);
        Ok(Rows {
            path,
            recording,
            marked: if shows_steps { found.anchors } else { Vec::new() },
            portion: chosen.map(Portion::Steps).or(within),
        })
    }

    /// What is said of a part.
    pub(super) fn words(&self) -> Option<String> {
        self.portion.as_ref().map(|portion| match portion {
            Portion::Steps(part) => format!("only {}", part.words()),
            Portion::Ranges(within) => within.words(),
        })
    }

    /// Hands them to `taker`. Of a part there are no totals: they are of all.
    pub(super) fn read(self, taker: &mut dyn Taker) -> End {
        let words = self.words();
        // steps have their numbers in the whole
        let read = |to: &mut dyn Taker| {
            let mut marking = Marking::new(self.marked, to);
            let end = reading::read(self.recording, &self.path, "exporting", &mut marking);
            marking.finish();
            end
        };
        let (end, rows) = match &self.portion {
            None => return read(taker),
            Some(Portion::Ranges(within)) => {
                let mut only = within.only(taker);
                (read(&mut only), only.rows)
            }
            Some(Portion::Steps(part)) => {
                let mut crop = Crop::new(part.from, part.to, taker);
                (read(&mut crop), crop.rows)
            }
        };
        End {
            rows,
            all_rows: rows,
            summary: None,
            snapshot: None,
            cut: end.cut.or(words),
        }
    }
}
