//! One memory call with its arguments by meaning.

use super::array;
use crate::catalog::{Catalog, Family, Part, Verb};
use crate::wire::MemoryCall;

/// What a call did to memory.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub verb: Verb,
    pub family: Family,
    pub succeeded: bool,
    /// It did nothing, and is no mistake: its library was being unloaded.
    pub too_late: bool,
    pub raw: &'a MemoryCall,
    parts: &'a [(Part, crate::catalog::Place)],
}

impl<'a> Call<'a> {
    /// Gives the words of `raw` their meaning; `None`: its row is unknown or has none.
    pub fn decode(raw: &'a MemoryCall, catalog: &'a Catalog) -> Option<Call<'a>> {
        let row = catalog.rows.get(raw.row as usize)?;
        let effect = row.memory.as_ref()?;
        let result = u64::from(raw.result as u32);
        let refused = catalog.is_refusal(row, result);
        Some(Call {
            verb: effect.verb,
            family: effect.family,
            succeeded: !refused,
            too_late: refused && !catalog.is_failure(row, result),
            raw,
            parts: &effect.parts,
        })
    }

    /// The value of an argument; `None`: the call has none such, or it could not be read.
    pub fn part(&self, part: Part) -> Option<u64> {
        let index = self.parts.iter().position(|(known, _)| *known == part)?;
        let readable = index >= 8 || self.raw.unreadable >> index & 1 == 0;
        self.raw.part.get(index).copied().filter(|_| readable)
    }

    /// The same, 0 where there is none.
    pub fn number(&self, part: Part) -> u64 {
        self.part(part).unwrap_or(0)
    }

    /// What names the memory.
    pub fn key(&self) -> u64 {
        self.number(Part::Key)
    }

    /// Whether `part` was there and could not be read.
    pub(crate) fn hides(&self, part: Part) -> bool {
        self.parts.iter().any(|(known, _)| *known == part) && self.part(part).is_none()
    }

    /// Bytes asked for; `None`: they follow from no argument.
    pub fn bytes(&self) -> Option<u64> {
        match self.family {
            Family::Array | Family::Mipmapped => array::bytes(|part| self.part(part)),
            _ => Some(self.part(Part::Size).unwrap_or(self.raw.bytes)),
        }
    }
}
