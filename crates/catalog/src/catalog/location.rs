//! Where the convention of a processor puts arguments at a function's entry: System V's for x86-64, AAPCS64 for aarch64.

/// Which words of a call are registers, and how structures travel.
///
/// Both hand over the same integers in the same order, eight bytes each: aarch64's seventh and eighth are registers, and the
/// kernel programs put them where x86-64's first two of the stack are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Convention {
    /// Of x86-64: six registers; a large structure lies on the stack.
    SystemV,
    /// Of aarch64: eight registers; of a large structure the address of a copy is passed.
    Aapcs64,
}

impl Default for Convention {
    fn default() -> Self {
        Self::HERE
    }
}

/// The largest structure that AAPCS64 passes by value, bytes.
const LARGEST_BY_VALUE: u16 = 16;

impl Convention {
    /// Of the processor that this program is built for.
    pub(crate) const HERE: Self = match cfg!(target_arch = "aarch64") {
        true => Self::Aapcs64,
        false => Self::SystemV,
    };

    fn registers(self) -> u16 {
        match self {
            Self::SystemV => 6,
            Self::Aapcs64 => 8,
        }
    }

    /// Whether of a value of this shape the address of a copy is passed.
    pub(crate) fn passes_address(self, shape: Shape) -> bool {
        self == Self::Aapcs64 && matches!(shape, Shape::Aggregate(bytes) if bytes > LARGEST_BY_VALUE)
    }
}

/// Words that are registers whatever the convention.
const REGISTERS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];

/// Where an argument lies when its function is entered, in words numbered as x86-64 hands them over.
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
        /// First register, 0 to 4; 5 on aarch64, whose next one is the first word after those.
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

impl Loc {
    /// What begins with the word of that number, and is `bytes` long.
    pub(super) fn of_word(word: u16, bytes: u8) -> Self {
        match word.checked_sub(Convention::SystemV.registers()) {
            None => Self::Reg {
                index: word as u8,
                bytes,
            },
            Some(past) => Self::Stack {
                offset: (past + 1) * 8,
                bytes: bytes.into(),
            },
        }
    }
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
/// to the stack; a struct that does not fit leaves registers to those after it on x86-64, and none on aarch64.
#[derive(Debug)]
pub(crate) struct Lowering {
    convention: Convention,
    register: u16,
    float: u8,
    stack: u16,
}

impl Lowering {
    pub(crate) fn by(convention: Convention) -> Self {
        let past_registers = convention.registers() - Convention::SystemV.registers();
        Self {
            convention,
            register: 0,
            float: 0,
            stack: past_registers * 8,
        }
    }

    /// The place of the next argument; `None` when the stack offset overflows.
    pub(crate) fn place(&mut self, shape: Shape) -> Option<Loc> {
        let left = self.convention.registers() - self.register;
        match shape {
            Shape::Integer(bytes) if left > 0 => Some(self.register(bytes)),
            Shape::Integer(bytes) => self.push(u16::from(bytes)),
            Shape::Float(_) if self.float < 8 => {
                self.float += 1;
                Some(Loc::Float { index: self.float - 1 })
            }
            Shape::Float(bytes) => self.push(u16::from(bytes)),
            Shape::Aggregate(bytes @ 1..=8) if left > 0 => Some(self.register(u8::try_from(bytes).ok()?)),
            Shape::Aggregate(bytes @ 9..=16) if left > 1 => self.registers(bytes),
            Shape::Aggregate(bytes) => {
                if self.convention == Convention::Aapcs64 {
                    self.register = self.convention.registers();
                }
                self.push(bytes)
            }
        }
    }

    fn register(&mut self, bytes: u8) -> Loc {
        self.register += 1;
        Loc::of_word(self.register - 1, bytes)
    }

    fn registers(&mut self, bytes: u16) -> Option<Loc> {
        let word = self.register;
        self.register += 2;
        let bytes = u8::try_from(bytes).ok()?;
        match Loc::of_word(word, bytes) {
            Loc::Reg { index: first, .. } => Some(Loc::Regs {
                first,
                bytes: [8, bytes - 8],
            }),
            past_registers => Some(past_registers),
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
