//! The copy of a function's beginning: its instructions, so that they do elsewhere what they do where they are.

use iced_x86::{FlowControl, Mnemonic, OpKind, Register};

use super::code::{self, Code, Step};
use super::{Fixup, Refusal};

/// How much of a function is moved at most, in bytes.
const MOST: usize = 32;
/// Of the fields that a fixup fills, in bytes.
const FIELD: usize = 4;
const OPERAND_SIZE: u8 = 0x66;
const JUMP_NEAR: u8 = 0xe9;
const JUMP_SHORT: u8 = 0xeb;

pub(super) struct Moved {
    /// From the entry on, in bytes.
    pub covered: usize,
    pub copy: Vec<u8>,
    pub fixups: Vec<Fixup>,
}

impl Moved {
    /// Moves whole instructions, of `least` bytes or more.
    pub(super) fn from(code: &Code<'_>, least: usize) -> Result<Moved, Refusal> {
        let mut moved = Moved {
            covered: 0,
            copy: Vec::new(),
            fixups: Vec::new(),
        };
        let mut goes_on = true;
        while moved.covered < least {
            let step = code.step(moved.covered)?;
            check_room(code, &step, goes_on)?;
            if goes_on {
                moved.append(&step)?;
                goes_on = !code::never_goes_on(&step.instruction);
            }
            moved.covered = step.end();
        }
        if goes_on {
            let target = code.entry.wrapping_add(moved.covered as u64);
            moved.append_branch(&[JUMP_NEAR], target)?;
        }
        Ok(moved)
    }

    fn append(&mut self, step: &Step<'_>) -> Result<(), Refusal> {
        let instruction = &step.instruction;
        // of where a moved call returns to, no unwind information tells
        if matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        ) {
            return Err(Refusal::Calls);
        }
        match instruction.op0_kind() {
            OpKind::NearBranch16 | OpKind::NearBranch32 => Err(Refusal::Unmovable),
            OpKind::NearBranch64 => self.append_moved_branch(step),
            _ if !instruction.is_ip_rel_memory_operand() => {
                self.copy.extend_from_slice(step.encoded);
                Ok(())
            }
            _ if instruction.memory_base() != Register::RIP || step.constants.displacement_size() != FIELD => {
                Err(Refusal::Unmovable)
            }
            _ => {
                let field = step.constants.displacement_offset();
                self.append_with_field(step.encoded, field, instruction.ip_rel_memory_address())
            }
        }
    }

    fn append_moved_branch(&mut self, step: &Step<'_>) -> Result<(), Refusal> {
        let instruction = &step.instruction;
        let target = instruction.near_branch_target();
        let field = step.constants.immediate_offset();
        let before = step.encoded.get(..field).unwrap_or_default();
        let [prefixes @ .., opcode] = before else {
            return Err(Refusal::Unmovable);
        };
        // makers of processors disagree about what it does to a branch
        let narrow = prefixes.contains(&OPERAND_SIZE);
        if narrow || instruction.mnemonic() == Mnemonic::Xbegin {
            return Err(Refusal::Unmovable);
        }
        match (step.constants.immediate_size(), *opcode) {
            (FIELD, _) => self.append_with_field(step.encoded, field, target),
            (1, JUMP_SHORT) => self.append_branch(&[JUMP_NEAR], target),
            (1, short @ 0x70..=0x7f) => self.append_branch(&[0x0f, short + 0x10], target),
            _ => Err(Refusal::Unmovable),
        }
    }

    fn append_branch(&mut self, opcode: &[u8], target: u64) -> Result<(), Refusal> {
        let encoded = [opcode, [0; FIELD].as_slice()].concat();
        self.append_with_field(&encoded, opcode.len(), target)
    }

    /// Appends an instruction of which the four bytes at `field` depend on where it is.
    fn append_with_field(&mut self, encoded: &[u8], field: usize, target: u64) -> Result<(), Refusal> {
        let offset = |at: usize| u16::try_from(at).map_err(|_| Refusal::TooLong);
        let at = self.copy.len() + field;
        self.copy.extend_from_slice(encoded);
        let bytes = self.copy.get_mut(at..at + FIELD).ok_or(Refusal::Unmovable)?;
        bytes.fill(0);
        self.fixups.push(Fixup {
            at: offset(at)?,
            next: offset(self.copy.len())?,
            target,
        });
        Ok(())
    }
}

/// Refuses an instruction whose bytes must not be overwritten. `is_reached`: those before it go on to it.
fn check_room(code: &Code<'_>, step: &Step<'_>, is_reached: bool) -> Result<(), Refusal> {
    let is_own = code.holds(step.at);
    let straddles = is_own && code.size.is_some_and(|size| step.end() > size);
    let is_part = is_own && is_reached;
    if straddles || !(is_part || step.is_padding()) {
        return Err(Refusal::TooShort);
    }
    if step.end() > MOST {
        return Err(Refusal::TooLong);
    }
    Ok(())
}
