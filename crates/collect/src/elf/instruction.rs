//! What the kernel's uprobe code does with one x86-64 instruction, and what the instruction changes.
//!
//! The classes follow `arch/x86/kernel/uprobes.c`: `is_prefix_bad`, `good_insns_64`, `branch_setup_xol_ops`,
//! `push_setup_xol_ops`.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

/// The nop that kernels from 6.18 on replace by a call.
pub(super) const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// What a probe reads: the stack pointer and the registers of the first six arguments.
const READ_BY_PROBES: [Register; 7] = [
    Register::RSP,
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A push, a direct jump or call, or a nop of at most two bytes.
    Emulated,
    /// `0f 1f`: emulated from about 6.16 on, single-stepped before.
    LongNop,
    /// Single-stepped.
    Other,
    BadPrefix(&'static str),
    BadKind,
    Invalid,
}

pub(super) fn classify(instruction: &Instruction, encoded: &[u8]) -> Class {
    let prefixes = encoded.iter().take_while(|&&b| is_prefix(b)).count();
    let (prefixes, rest) = encoded.split_at(prefixes);
    if let Some(name) = prefixes.iter().find_map(|&b| bad_prefix(b)) {
        return Class::BadPrefix(name);
    }
    if instruction.is_invalid() {
        return Class::Invalid;
    }
    if refused(instruction) {
        return Class::BadKind;
    }
    let narrow = prefixes.contains(&0x66);
    match *rest {
        [0x50..=0x57] | [0x41, 0x50..=0x57] if prefixes.is_empty() => Class::Emulated,
        [0x90] if prefixes.is_empty() || prefixes == [0x66] => Class::Emulated,
        // A 16-bit branch means different things to different makers of processors.
        [0xeb | 0xe9 | 0xe8 | 0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..] if !narrow => Class::Emulated,
        [0x0f, 0x1f, ..] | [0x90] if instruction.mnemonic() == Mnemonic::Nop => Class::LongNop,
        _ => Class::Other,
    }
}

/// Whether a probe on the following instruction would see what one on this instruction sees.
pub(super) fn leaves_entry_state(instruction: &Instruction) -> bool {
    if instruction.is_invalid() || instruction.flow_control() != FlowControl::Next || refused(instruction) {
        return false;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let register = info
        .used_registers()
        .iter()
        .any(|used| writes(used.access()) && READ_BY_PROBES.contains(&used.register().full_register()));
    // Any store may reach the stack or what an argument points to.
    let memory = info.used_memory().iter().any(|used| writes(used.access()));
    !register && !memory
}

fn writes(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x64 | 0x65) || bad_prefix(byte).is_some()
}

fn bad_prefix(byte: u8) -> Option<&'static str> {
    match byte {
        0xf0 => Some("lock"),
        0x26 => Some("es"),
        0x2e => Some("cs"),
        0x36 => Some("ss"),
        0x3e => Some("ds"),
        _ => None,
    }
}

/// Instructions which trap, or which only the kernel may use.
fn refused(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    instruction.is_privileged()
        || matches!(
            instruction.mnemonic(),
            M::In | M::Out | M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd
        )
        || matches!(
            instruction.mnemonic(),
            M::Int | M::Int1 | M::Int3 | M::Iret | M::Iretd | M::Iretq | M::Hlt | M::Cli | M::Sti
        )
        || matches!(
            instruction.mnemonic(),
            M::Lar | M::Lsl | M::Syscall | M::Sysenter | M::Ud0 | M::Ud1 | M::Ud2
        )
}
