//! The bytes of one function, and its instructions one by one.

use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use super::Refusal;

pub(super) struct Code<'a> {
    /// From the entry on, with the padding that follows.
    pub bytes: &'a [u8],
    /// How many of `bytes` are the function's, where the file says so.
    pub size: Option<usize>,
    /// Address of the first byte.
    pub entry: u64,
}

/// One instruction, and where it was found.
pub(super) struct Step<'a> {
    /// Offset from the entry in bytes.
    pub at: usize,
    pub encoded: &'a [u8],
    pub instruction: Instruction,
    pub constants: ConstantOffsets,
}

impl<'a> Code<'a> {
    pub(super) fn new(bytes: &'a [u8], size: usize, entry: u64) -> Result<Self, Refusal> {
        if size > bytes.len() {
            return Err(Refusal::CutOff);
        }
        let size = (size > 0).then_some(size);
        Ok(Self { bytes, size, entry })
    }

    /// The instruction at an offset from the entry.
    pub(super) fn step(&self, at: usize) -> Result<Step<'a>, Refusal> {
        let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty());
        let rest = rest.ok_or(Refusal::TooShort)?;
        let mut decoder = Decoder::with_ip(64, rest, self.entry.wrapping_add(at as u64), DecoderOptions::NONE);
        let instruction = decoder.decode();
        let encoded = rest.get(..decoder.position()).filter(|_| !instruction.is_invalid());
        Ok(Step {
            at,
            encoded: encoded.ok_or(Refusal::Undecodable)?,
            constants: decoder.get_constant_offsets(&instruction),
            instruction,
        })
    }

    /// Whether the byte at an offset belongs to the function, as far as the file says.
    pub(super) fn holds(&self, at: usize) -> bool {
        self.size.is_none_or(|size| at < size)
    }
}

impl Step<'_> {
    pub(super) fn end(&self) -> usize {
        self.at + self.encoded.len()
    }

    /// What fills the room between functions.
    pub(super) fn is_padding(&self) -> bool {
        matches!(self.instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
    }
}

/// Whether what follows an instruction is never executed because of it.
pub(super) fn never_goes_on(instruction: &Instruction) -> bool {
    use FlowControl as F;
    let leaves = matches!(
        instruction.flow_control(),
        F::Return | F::UnconditionalBranch | F::IndirectBranch | F::Exception
    );
    leaves || instruction.mnemonic() == Mnemonic::Hlt
}
