//! What tells launches apart: the kernel, its shape and its stream.

use super::Planner;
use crate::catalog::{Launch, Pass, Place, Role, Row, Work};
use crate::wire;

impl Planner<'_> {
    /// By which words launches are told apart.
    pub(super) fn launch(&mut self, row: &Row, launch: &Launch) {
        let Some(kernel) = self.number(row, launch.kernel) else {
            return;
        };
        let Some((role, name)) = self.kernel_role(row, launch.role) else {
            return;
        };
        let mut spec = wire::Launch {
            kernel,
            role,
            name,
            ..wire::Launch::NONE
        };
        match launch.shape.map(|shape| (self.shape_block(row, shape), shape)) {
            None => {}
            Some((Some((word, offset)), _)) => (spec.shape_block, spec.shape_offset) = (word, offset),
            Some((None, shape)) => {
                let Some(first) = self.shape_words(row, shape) else {
                    return;
                };
                spec.shape_word = first;
            }
        }
        if let Some(work) = &row.work {
            self.stream(row, work, &mut spec);
        }
        self.spec.launch = spec;
        if launch.role == Role::Launch {
            self.spec.flags |= wire::SPEC_KERNEL;
        }
    }

    /// What a row does with kernels, and what names them; `None`: that is known at its return only, which is not seen.
    fn kernel_role(&mut self, row: &Row, role: Role) -> Option<(u8, wire::Factor)> {
        let at_return = |role| self.used.returns.then_some(role);
        match role {
            Role::Launch => Some((wire::ROLE_LAUNCH, wire::Factor::NONE)),
            Role::Stub => Some((at_return(wire::ROLE_STUB)?, wire::Factor::NONE)),
            Role::Name(name) => Some((at_return(wire::ROLE_NAME)?, self.number(row, name)?)),
            Role::Same(other) => Some((at_return(wire::ROLE_SAME)?, self.number(row, other)?)),
        }
    }

    /// A stream beside the shape is read with it.
    fn stream(&mut self, row: &Row, work: &Work, spec: &mut wire::Launch) {
        const BEHIND: u16 = 4 * wire::SHAPE as u16 + 4;
        spec.null_stream = u8::from(work.per_thread) * wire::PER_THREAD as u8;
        let Some(place) = work.stream else { return };
        let arg = row.args.get(place.arg);
        let pointer = arg
            .filter(|arg| arg.pass != Pass::Value)
            .and_then(|arg| self.word(arg.loc));
        let beside = pointer.is_some_and(|(word, _)| word == spec.shape_block);
        if beside && place.field == Some((spec.shape_offset + BEHIND, 8)) {
            spec.stream_in_block = 1;
        } else if arg.is_some_and(|arg| arg.pass == Pass::Value) {
            spec.stream = self.number(row, place).unwrap_or(wire::Factor::NONE);
        }
    }

    /// The numbers of a shape as one piece behind one pointer: the pointer's word, and where they begin.
    fn shape_block(&mut self, row: &Row, shape: [Place; wire::SHAPE]) -> Option<(u8, u16)> {
        let (first, (start, _)) = (shape[0].arg, shape[0].field?);
        let arg = row.args.get(first).filter(|arg| arg.pass != Pass::Value)?;
        let follows = |(index, place): (usize, &Place)| {
            *place
                == Place {
                    arg: first,
                    field: Some((start + 4 * index as u16, 4)),
                }
        };
        shape.iter().enumerate().all(follows).then_some(())?;
        Some((self.word(arg.loc)?.0, start))
    }

    /// The first word of a shape whose numbers are arguments that follow each other.
    fn shape_words(&mut self, row: &Row, shape: [Place; wire::SHAPE]) -> Option<u8> {
        let words = shape.map(|place| self.number(row, place).filter(|factor| factor.bytes == 4));
        let first = words[0]?.word;
        let follows = |(index, word): (usize, &Option<wire::Factor>)| {
            word.is_some_and(|word| usize::from(word.word) == usize::from(first) + index)
        };
        words.iter().enumerate().all(follows).then_some(first)
    }
}
