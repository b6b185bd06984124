//! How a function has moved the stack pointer, by its first instructions: where it keeps its frame pointer follows from where
//! the stack ends.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// By how many bytes the stack pointer lies below the frame pointer, once `code`, the beginning of a function, has been
/// executed up to its first call or branch. `None`: it has no frame pointer, or its stack is as long as it likes.
pub(super) fn below_frame(code: &[u8]) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let (mut below, mut is_framed) = (0, false);
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            break;
        }
        if is_framed && instruction.flow_control() != FlowControl::Next {
            break;
        }
        if is_move_of_stack(&instruction) {
            (below, is_framed) = (0, true);
        } else if let Some(bytes) = lowers_stack_by(&instruction)? {
            below += bytes;
        }
    }
    is_framed.then_some(below)
}

fn is_move_of_stack(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_register() == Register::RBP
        && instruction.op1_register() == Register::RSP
}

/// `None`: by an amount that only the processor knows. `Some(None)`: not at all.
fn lowers_stack_by(instruction: &Instruction) -> Option<Option<u64>> {
    let to_stack = instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP;
    match instruction.mnemonic() {
        Mnemonic::Push => Some(Some(8)),
        Mnemonic::Sub if to_stack => instruction.try_immediate(1).ok().map(Some),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Or => Some(None),
        _ if to_stack => None,
        _ => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_and_taken_below_the_frame_pointer_is_added_up() {
        // push %rbp; mov %rsp,%rbp; push %r15; push %rbx; sub $0x18,%rsp; call
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x53, 0x48, 0x83, 0xec, 0x18, 0xe8, 0, 0, 0, 0, 0x50, 0x50,
        ];
        assert_eq!(below_frame(&code), Some(40));
        // endbr64; push %rbp; mov %rsp,%rbp; sub $0x1000,%rsp
        let large = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0, 0x10, 0, 0,
        ];
        assert_eq!(below_frame(&large), Some(4096));
    }

    #[test]
    fn without_a_frame_pointer_or_with_a_stack_of_any_length_nothing_is_known() {
        // sub $8,%rsp
        assert_eq!(below_frame(&[0x48, 0x83, 0xec, 0x08]), None);
        // push %rbp; mov %rsp,%rbp; and $-64,%rsp
        assert_eq!(below_frame(&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xc0]), None);
        assert_eq!(below_frame(&[]), None);
    }
}
