//! What the memory ring is told of a call, and what the call does to its thread's contexts.

use super::Planner;
use crate::catalog::{Effect, Layer, Row, Verb};
use crate::wire;

impl Planner<'_> {
    /// What the memory ring is told; all of it or nothing.
    pub(super) fn memory(&mut self, row: &Row, effect: &Effect) {
        let words: Option<Vec<wire::Factor>> = effect.parts.iter().map(|(_, place)| self.number(row, *place)).collect();
        let Some(words) = words.filter(|words| words.len() <= wire::PARTS) else {
            return;
        };
        self.spec.part[..words.len()].copy_from_slice(&words);
        self.spec.parts = words.len() as u8;
        self.spec.context_move = match effect.verb {
            Verb::ContextSet => wire::CONTEXT_SET,
            Verb::ContextPush | Verb::ContextCreate => wire::CONTEXT_PUSH,
            Verb::ContextPop => wire::CONTEXT_POP,
            Verb::ContextDestroy => wire::CONTEXT_DROP,
            _ => wire::CONTEXT_STAYS,
        };
        self.spec.flags |= self.memory_flags(row, effect.verb);
    }

    fn memory_flags(&self, row: &Row, verb: Verb) -> u8 {
        let layer = self.catalog.library_with(row.library).map(|library| library.layer);
        let allocates = self.used.stacks && matches!(verb, Verb::Alloc | Verb::GraphAlloc);
        u8::from(!verb.moves_context()) * wire::SPEC_MEMORY
            + u8::from(allocates) * wire::SPEC_SITE
            + u8::from(layer == Some(Layer::Runtime)) * wire::SPEC_OUTER
    }
}
