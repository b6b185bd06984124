//! Where the System V x86-64 convention puts arguments at a function's entry.

/// Integer argument registers, by index.
pub(crate) const REGISTERS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];

/// Where an argument lies when its function is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loc {
    /// Low `bytes` (1 to 8) of integer register `index` (0 `rdi` … 5 `r9`).
    Reg {
        /// Register, 0 to 5.
        index: u8,
        /// Defined bytes; the rest of the register is garbage.
        bytes: u8,
    },
    /// A struct of 9 to 16 bytes in registers `first` and `first + 1`.
    Regs {
        /// First register, 0 to 4.
        first: u8,
        /// Bytes in each.
        bytes: [u8; 2],
    },
    /// `bytes` at `rsp + offset`; the first stack argument has offset 8.
    Stack {
        /// Bytes above `rsp`.
        offset: u16,
        /// Size without padding.
        bytes: u16,
    },
    /// Vector register `xmm<index>`, which a BPF program cannot read.
    Float {
        /// Register, 0 to 7.
        index: u8,
    },
}

/// How an argument travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An integer or address of that many bytes.
    Integer(u8),
    /// A floating-point number of that many bytes.
    Float(u8),
    /// A struct of integers of that many bytes.
    Aggregate(u16),
}

/// Places arguments in order. Once the registers are used up, later integers go
/// to the stack; a struct that does not fit leaves registers to those after it.
#[derive(Debug, Default)]
pub(crate) struct Lowering {
    register: u8,
    float: u8,
    stack: u16,
}

impl Lowering {
    /// The place of the next argument; `None` when the stack offset overflows.
    pub(crate) fn place(&mut self, shape: Shape) -> Option<Loc> {
        match shape {
            Shape::Integer(bytes) if self.register < 6 => {
                self.register += 1;
                Some(Loc::Reg {
                    index: self.register - 1,
                    bytes,
                })
            }
            Shape::Integer(bytes) => self.push(u16::from(bytes)),
            Shape::Float(_) if self.float < 8 => {
                self.float += 1;
                Some(Loc::Float { index: self.float - 1 })
            }
            Shape::Float(bytes) => self.push(u16::from(bytes)),
            Shape::Aggregate(bytes @ 1..=8) if self.register < 6 => {
                self.register += 1;
                Some(Loc::Reg {
                    index: self.register - 1,
                    bytes: u8::try_from(bytes).ok()?,
                })
            }
            Shape::Aggregate(bytes @ 9..=16) if self.register < 5 => {
                self.register += 2;
                let rest = u8::try_from(bytes - 8).ok()?;
                Some(Loc::Regs {
                    first: self.register - 2,
                    bytes: [8, rest],
                })
            }
            Shape::Aggregate(bytes) => self.push(bytes),
        }
    }

    fn push(&mut self, bytes: u16) -> Option<Loc> {
        let offset = self.stack.checked_add(8)?;
        self.stack = self.stack.checked_add(bytes.checked_next_multiple_of(8)?)?;
        Some(Loc::Stack { offset, bytes })
    }
}

impl std::fmt::Display for Loc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let register = |index: u8| REGISTERS.get(usize::from(index)).copied().unwrap_or("?");
        match *self {
            Loc::Reg { index, bytes } => write!(f, "{}:{bytes}", register(index)),
            Loc::Regs {
                first,
                bytes: [low, high],
            } => {
                write!(f, "{}:{low}+{}:{high}", register(first), register(first + 1))
            }
            Loc::Stack { offset, bytes } => write!(f, "stack+{offset}:{bytes}"),
            Loc::Float { index } => write!(f, "xmm{index}"),
        }
    }
}
