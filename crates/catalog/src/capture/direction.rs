//! The direction of a copy: what the kernel program makes one number of, and what that number means.

use super::Planner;
use crate::catalog::{CopyKind, Direction, Row};
use crate::wire;

/// The direction that the kernel's `variant` number of a call stands for; `None`: not a copy, or by address.
pub fn direction(row: &Row, variant: u64) -> Option<CopyKind> {
    let words = variant.checked_sub(1);
    match row.direction? {
        Direction::Constant(kind) => Some(kind),
        Direction::MemcpyKind(_) => match words? & 15 {
            0 => Some(CopyKind::HtoH),
            1 => Some(CopyKind::HtoD),
            2 => Some(CopyKind::DtoH),
            3 => Some(CopyKind::DtoD),
            _ => None,
        },
        Direction::MemoryTypes { .. } => match (words? & 15, words? >> 4) {
            (1, 1) => Some(CopyKind::HtoH),
            (1, 2 | 3) => Some(CopyKind::HtoD),
            (2 | 3, 1) => Some(CopyKind::DtoH),
            (2 | 3, 2 | 3) => Some(CopyKind::DtoD),
            _ => None,
        },
    }
}

impl Planner<'_> {
    pub(super) fn direction(&mut self, row: &Row) {
        let places = match row.direction {
            Some(Direction::MemcpyKind(place)) => [Some(place), None],
            Some(Direction::MemoryTypes { from, to }) => [Some(from), Some(to)],
            _ => return,
        };
        let mut variant = [wire::Factor::NONE; 2];
        for (slot, place) in variant.iter_mut().zip(places) {
            if let Some(place) = place {
                let Some(word) = self.number(row, place) else { return };
                *slot = word;
            }
        }
        self.spec.variant = variant;
    }
}
