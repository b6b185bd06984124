//! Where the numbers of a call lie that the kernel program computes with.

use super::{Planner, kind_bytes};
use crate::catalog::{Factor, Pass, Place, Row};
use crate::wire;

impl Planner<'_> {
    pub(super) fn size(&mut self, row: &Row) {
        let Some(factors) = &row.bytes else { return };
        let mut spec = (1u64, Vec::new());
        for factor in factors {
            match *factor {
                Factor::Constant(value) => spec.0 *= value,
                Factor::Path { arg, field } => match self.number(row, Place { arg, field }) {
                    Some(word) => spec.1.push(word),
                    None => return,
                },
            }
        }
        if spec.1.len() > wire::FACTORS {
            return;
        }
        self.spec.scale = spec.0;
        self.spec.factors = spec.1.len() as u8;
        self.spec.factor[..spec.1.len()].copy_from_slice(&spec.1);
    }

    /// The captured word that holds a number of the call.
    pub(super) fn number(&mut self, row: &Row, place: Place) -> Option<wire::Factor> {
        let arg = row.args.get(place.arg)?;
        if arg.is_out() && !self.used.returns {
            return None;
        }
        let (word, bytes) = self.word(arg.loc)?;
        match (arg.pass, place.field) {
            (Pass::Value, None) => Some(wire::Factor { word, bytes }),
            (Pass::Value, Some((offset, bytes))) if offset % 8 == 0 => Some(wire::Factor {
                word: word + (offset / 8) as u8,
                bytes,
            }),
            (Pass::Value, Some(_)) => None,
            (_, field) => {
                let (offset, bytes) = field.or_else(|| Some((0, kind_bytes(arg.kind)?)))?;
                let value = self.value(word, offset, bytes)?;
                Some(wire::Factor {
                    word: wire::WORD_VALUES + value,
                    bytes,
                })
            }
        }
    }

    /// Where a number lies, to be read when the call has returned.
    pub(super) fn read(&mut self, row: &Row, place: Place) -> Option<wire::Read> {
        let arg = row.args.get(place.arg)?;
        let (word, bytes) = self.word(arg.loc)?;
        if arg.pass == Pass::Value && place.field.is_none() {
            let offset = wire::READ_DIRECT;
            return Some(wire::Read { word, bytes, offset });
        }
        let (offset, bytes) = place.field.or_else(|| Some((0, kind_bytes(arg.kind)?)))?;
        (arg.pass != Pass::Value).then_some(wire::Read { word, bytes, offset })
    }
}
