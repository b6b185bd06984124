//! What the first instruction of a function does to a call, and how it is undone.

use iced_x86::{
    CpuidFeature, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits, UsedMemory, UsedRegister,
};

/// What no call passes a value in that the function reads, once its first instruction has written there.
const SCRATCH: [Register; 3] = [Register::RAX, Register::R10, Register::R11];
const ARITHMETIC: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// Instructions of which operands and flags say all. Of other extensions they do not: a shadow stack, the FPU's stack,
/// the rounding mode.
const INTEGER: [CpuidFeature; 14] = [
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL286,
    CpuidFeature::INTEL386,
    CpuidFeature::INTEL486,
    CpuidFeature::X64,
    CpuidFeature::CMOV,
    CpuidFeature::MULTIBYTENOP,
    CpuidFeature::CET_IBT,
    CpuidFeature::POPCNT,
    CpuidFeature::LZCNT,
    CpuidFeature::BMI1,
    CpuidFeature::BMI2,
    CpuidFeature::MOVBE,
];
const VECTOR: [CpuidFeature; 3] = [CpuidFeature::SSE, CpuidFeature::SSE2, CpuidFeature::AVX];

/// Instructions that undo the first one: none, where it may be executed twice. `None`: it cannot be undone.
pub(super) fn undo(first: &Instruction) -> Option<Vec<u8>> {
    match lowers_stack_by(first) {
        Some(bytes) => Some(raise_stack(bytes)),
        None => is_repeatable(first).then(Vec::new),
    }
}

/// By how many bytes, where the instruction does nothing else but to flags and below the stack.
fn lowers_stack_by(first: &Instruction) -> Option<i32> {
    let on_stack = first.op0_kind() == OpKind::Register && first.op0_register() == Register::RSP;
    let lowered = match first.mnemonic() {
        Mnemonic::Push if first.op0_kind() != OpKind::Memory => -i64::from(first.stack_pointer_increment()),
        Mnemonic::Sub if on_stack => first.try_immediate(1).ok()?.cast_signed(),
        Mnemonic::Lea if on_stack && is_relative_to_stack(first) => {
            first.memory_displacement64().cast_signed().checked_neg()?
        }
        _ => return None,
    };
    i32::try_from(lowered).ok().filter(|bytes| *bytes >= 0)
}

fn is_relative_to_stack(first: &Instruction) -> bool {
    first.memory_base() == Register::RSP && first.memory_index() == Register::None
}

/// `lea bytes(%rsp),%rsp`, which changes no flag.
fn raise_stack(bytes: i32) -> Vec<u8> {
    match i8::try_from(bytes) {
        Ok(bytes) => vec![0x48, 0x8d, 0x64, 0x24, bytes.cast_unsigned()],
        Err(_) => [&[0x48, 0x8d, 0xa4, 0x24], bytes.to_le_bytes().as_slice()].concat(),
    }
}

/// Whether executing it, making a call and executing it again is the same as executing it once.
fn is_repeatable(first: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(first);
    first.flow_control() == FlowControl::Next
        && !first.is_privileged()
        && !first.is_stack_instruction()
        && leaves_flags(first)
        && leaves_registers(info.used_registers())
        && (leaves_memory(first, info) || is_store_below_stack(first, info))
}

fn leaves_flags(first: &Instruction) -> bool {
    first.rflags_read() == 0 && first.rflags_modified() & !ARITHMETIC == 0
}

/// Whether it writes nothing but scratch registers, and reads none that it writes.
fn leaves_registers(used: &[UsedRegister]) -> bool {
    used.iter().filter(|used| writes(used.access())).all(|written| {
        let register = written.register().full_register();
        let is_read = used
            .iter()
            .any(|other| reads(other.access()) && other.register().full_register() == register);
        written.access() == OpAccess::Write && SCRATCH.contains(&register) && !is_read
    })
}

fn leaves_memory(first: &Instruction, info: &InstructionInfo) -> bool {
    is_of(first, &[&INTEGER]) && !info.used_memory().iter().any(|used| writes(used.access()))
}

/// Whether all it does is to copy a register or a constant to where the caller keeps nothing.
fn is_store_below_stack(first: &Instruction, info: &InstructionInfo) -> bool {
    is_of(first, &[&INTEGER, &VECTOR])
        && first.op_count() == 2
        && first.op0_kind() == OpKind::Memory
        && matches!(info.used_memory(), [only] if is_below_stack(only))
}

fn is_below_stack(used: &UsedMemory) -> bool {
    let size = i64::try_from(used.memory_size().size()).unwrap_or(i64::MAX);
    let displacement = used.displacement().cast_signed();
    used.access() == OpAccess::Write
        && used.segment() == Register::SS
        && used.base() == Register::RSP
        && used.index() == Register::None
        && size > 0
        && displacement.checked_add(size).is_some_and(|end| end <= 0)
}

fn is_of(first: &Instruction, sets: &[&[CpuidFeature]]) -> bool {
    let mut features = first.cpuid_features().iter();
    features.all(|feature| sets.iter().any(|set| set.contains(feature)))
}

fn writes(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(access, A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite)
}

fn reads(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(access, A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite)
}
