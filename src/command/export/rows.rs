//! What is exported: a recording, with its steps where a format has a place for them; or a part of it.

use super::super::reading::{self, Asked};
use crate::cli::{ExportArgs, ExportFormat};
use crate::part::Part;
use crate::record::Taker;
use crate::steps::Numbered;
use crate::trace::{End, Files, Recording};
use anyhow::Result;

/// Rows that are to be written.
pub(super) struct Rows {
    pub files: Files,
    pub recording: Recording,
    shows_steps: bool,
    part: Part,
    /// Known already where it is a part.
    steps: Vec<Numbered>,
}

impl Rows {
    /// # Errors
    /// The recording cannot be read, or has no such part.
    pub(super) fn of(files: Files, args: &ExportArgs, format: ExportFormat) -> Result<Rows> {
        let asked = Asked {
            range: args.range.as_deref(),
            step: args.step,
        };
        let (part, steps) = reading::locate(&files, asked)?.unwrap_or_default();
        Ok(Rows {
            recording: files.recording()?,
            files,
            shows_steps: matches!(format, ExportFormat::Chrome | ExportFormat::Perfetto),
            part,
            steps,
        })
    }

    /// What is said of a part.
    pub(super) fn words(&self) -> Option<String> {
        self.part.words()
    }

    /// Hands them to `taker`.
    ///
    /// # Errors
    /// The recording cannot be read once more.
    pub(super) fn read(self, taker: &mut dyn Taker) -> Result<End> {
        let Rows { files, recording, .. } = self;
        if !self.shows_steps {
            let read = |to: &mut dyn Taker| reading::read(recording, &files, "exporting", to);
            return Ok(said(&self.part, self.part.through(taker, read)));
        }
        if matches!(self.part, Part::All) {
            let (end, followed) = reading::read_with_steps(recording, &files, "exporting", taker)?;
            followed.numbered().iter().for_each(|steps| steps.hand(taker));
            return Ok(end);
        }
        let end = self.part.through(taker, |to| {
            let end = reading::read(recording, &files, "exporting", to);
            self.steps.iter().for_each(|steps| steps.hand(to));
            end
        });
        Ok(said(&self.part, end))
    }
}

/// Of a part it is said which, as if it had been cut off.
fn said(part: &Part, end: End) -> End {
    End {
        cut: end.cut.or_else(|| part.words()),
        ..end
    }
}
