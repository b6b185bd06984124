//! One call with its arguments by meaning.

use crate::capture::direction;
use crate::catalog::{Catalog, CopyKind, Row, Step, WorkPart};
use crate::wire::WorkCall;

/// What a call has to do with the work of a device. It succeeded.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub step: Step,
    pub raw: &'a WorkCall,
    pub row: &'a Row,
    /// Whether the call names a stream.
    pub(crate) has_stream: bool,
    parts: &'a [(WorkPart, crate::catalog::Place)],
}

impl<'a> Call<'a> {
    /// Gives the words of `raw` their meaning; `None`: its row is unknown or has none.
    pub fn decode(raw: &'a WorkCall, catalog: &'a Catalog) -> Option<Call<'a>> {
        let row = catalog.rows.get(raw.row as usize)?;
        let work = row.work.as_ref()?;
        Some(Call {
            step: work.step,
            raw,
            row,
            has_stream: work.stream.is_some(),
            parts: &work.parts,
        })
    }

    /// The value of an argument; `None`: the call has none such, or it could not be read.
    pub fn part(&self, part: WorkPart) -> Option<u64> {
        let index = self.parts.iter().position(|(known, _)| *known == part)?;
        let readable = self.raw.unreadable >> index & 1 == 0;
        self.raw.part.get(index).copied().filter(|_| readable)
    }

    /// The same, 0 where there is none.
    pub fn number(&self, part: WorkPart) -> u64 {
        self.part(part).unwrap_or(0)
    }

    /// The direction of a copy, as far as the call itself says it.
    pub(crate) fn stated_direction(&self) -> Option<CopyKind> {
        direction(self.row, self.raw.variant)
    }

    /// Whether a copy goes to no stream that it names: the call waits for it.
    pub(crate) fn blocks(&self) -> bool {
        self.step == Step::Copy && !self.has_stream
    }

    /// Time in the call.
    pub(crate) fn duration_ns(&self) -> u64 {
        self.raw.returned.saturating_sub(self.raw.entered)
    }
}
