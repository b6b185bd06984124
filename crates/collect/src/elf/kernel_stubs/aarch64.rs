//! Where code of aarch64 registers kernels.

use super::{Call, OVERLAP, Scan, Stub, is_in};
use crate::elf::ElfError;
use crate::elf::layout::Code;
use crate::elf::loads_aarch64::{Loaded, Loads, Step};
use std::ops::ControlFlow;

impl Scan<'_> {
    /// As [`Scan::code`].
    pub(super) fn code_of_aarch64(
        &self,
        code: &Code,
        found: &mut dyn FnMut(u64, Call) -> bool,
    ) -> Result<(), ElfError> {
        let (first, last) = (code.offset, code.offset + code.size);
        self.file.source.chunks("code", first..last, OVERLAP, &mut |at, bytes| {
            let base = code.vaddr + (at - first);
            let from = if at == first { 0 } else { OVERLAP / 2 };
            let is_last = at + bytes.len() as u64 == last;
            let until = bytes.len().saturating_sub(if is_last { 0 } else { OVERLAP / 2 });
            let mut enough = false;
            Loads::walk(base, bytes, &mut |loads, place, step| {
                let Step::Call(target) = step else { return true };
                let call = self.registration(loads, base + place as u64);
                let call = call.filter(|_| (from..until).contains(&place) && is_in(&self.code, target));
                enough = call.is_some_and(|call| !found(target, call));
                !enough
            });
            if enough {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    /// What a call at `pc` is given, in `x1` the stub and in `x2` the name, if it looks like a registration.
    fn registration(&self, loads: &Loads, pc: u64) -> Option<Call> {
        let stub = match loads.held(1, pc)? {
            Loaded::Address(target) => is_in(&self.code, target).then_some(Stub::At(target))?,
            Loaded::Slot(slot) => is_in(&self.loaded, slot).then_some(Stub::Slot(slot))?,
        };
        match loads.held(2, pc)? {
            Loaded::Address(name) if is_in(&self.names, name) => Some(Call { stub, name }),
            _ => None,
        }
    }
}
