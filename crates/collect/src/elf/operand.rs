//! Where an argument of a static probe lies, as its note writes it: `-4@%eax`, `8@-56(%rbp)`, `-8@$7`.

mod aarch64;

#[cfg(any(test, fuzzing))]
pub(super) use aarch64::location as of_aarch64;

/// A register by its number in machine code: 0 `rax`, 1 `rcx`, … 7 `rdi`, 8 `r8` … 15 `r15`; on aarch64 0 `x0` … 30 `x30`, and
/// 31 for the stack pointer.
pub type Register = u8;

const SIXTEEN: usize = 16;
const QWORD: [&str; SIXTEEN] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
];
const DWORD: [&str; SIXTEEN] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d",
    "r15d",
];
const WORD: [&str; SIXTEEN] = [
    "ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w", "r15w",
];
const BYTE: [&str; SIXTEEN] = [
    "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b",
];

/// Where the value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    Constant(i64),
    /// The low bytes of a register.
    Register(Register),
    /// At `displacement + base + index * 2^scale`.
    Memory {
        base: Option<Register>,
        index: Option<(Register, u8)>,
        displacement: i64,
    },
}

/// One argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    pub location: Location,
    /// 1, 2, 4 or 8.
    pub bytes: u8,
    pub signed: bool,
}

impl Operand {
    /// Reads one argument. `None`: a form that names no register and no address, such as `8@symbol(%rip)`, or a
    /// floating-point number.
    pub(crate) fn parse(text: &str) -> Option<Operand> {
        let (size, place) = text.split_once('@')?;
        let (signed, bytes) = size.strip_prefix('-').map_or((false, size), |bytes| (true, bytes));
        let bytes = match bytes {
            "1" => 1,
            "2" => 2,
            "4" => 4,
            "8" => 8,
            _ => return None,
        };
        let location = match cfg!(target_arch = "aarch64") {
            true => aarch64::location(place.trim())?,
            false => location(place.trim())?,
        };
        Some(Operand {
            location,
            bytes,
            signed,
        })
    }
}

fn location(text: &str) -> Option<Location> {
    if let Some(number) = text.strip_prefix('$') {
        return number_of(number).map(Location::Constant);
    }
    if text.starts_with('%') {
        return any_width(text).map(Location::Register);
    }
    let (displacement, inside) = text.strip_suffix(')')?.split_once('(')?;
    let displacement = match displacement.trim() {
        "" => 0,
        number => number_of(number)?,
    };
    let mut parts = inside.split(',').map(str::trim);
    let base = match parts.next()? {
        "" => None,
        name => Some(address(name)?),
    };
    let index = parts.next().map(address);
    let scale = parts.next().map_or(Some(0), scale);
    if parts.next().is_some() || (base.is_none() && index.is_none()) {
        return None;
    }
    let index = match index {
        None => None,
        // `rsp` is no index
        Some(register) => Some((register.filter(|register| *register != 4)?, scale?)),
    };
    Some(Location::Memory {
        base,
        index,
        displacement,
    })
}

fn scale(text: &str) -> Option<u8> {
    match text {
        "1" => Some(0),
        "2" => Some(1),
        "4" => Some(2),
        "8" => Some(3),
        _ => None,
    }
}

fn number_of(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok()?.cast_signed(),
        // as a compiler writes a large unsigned constant
        None => digits.parse::<u64>().ok()?.cast_signed(),
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

/// A register that an address is made of: one of eight bytes.
fn address(name: &str) -> Option<Register> {
    numbered(&QWORD, name.strip_prefix('%')?)
}

fn any_width(name: &str) -> Option<Register> {
    let name = name.strip_prefix('%')?;
    [&QWORD, &DWORD, &WORD, &BYTE]
        .into_iter()
        .find_map(|names| numbered(names, name))
}

fn numbered(names: &[&str; SIXTEEN], name: &str) -> Option<Register> {
    let index = names.iter().position(|known| *known == name)?;
    Register::try_from(index).ok()
}

/// The arguments of a note, which spaces separate; those inside brackets do not.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let between = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ' ' && depth <= 0
    };
    text.split(between).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Operand {
        Operand::parse(text).unwrap_or_else(|| panic!("{text} is an operand"))
    }

    fn memory(base: Option<Register>, index: Option<(Register, u8)>, displacement: i64) -> Location {
        Location::Memory {
            base,
            index,
            displacement,
        }
    }

    #[test]
    fn registers_of_every_width_are_the_whole_registers() {
        for (text, register) in [
            ("8@%rax", 0),
            ("-1@%dl", 2),
            ("-4@%edx", 2),
            ("2@%si", 6),
            ("1@%sil", 6),
            ("-8@%r14", 14),
            ("4@%r9d", 9),
            ("2@%r12w", 12),
            ("1@%r15b", 15),
        ] {
            assert_eq!(read(text).location, Location::Register(register), "{text}");
        }
    }

    #[test]
    fn a_minus_before_the_size_says_that_the_value_has_a_sign() {
        assert_eq!((read("-4@%eax").bytes, read("-4@%eax").signed), (4, true));
        assert_eq!((read("2@%ax").bytes, read("2@%ax").signed), (2, false));
    }

    #[test]
    fn memory_is_a_register_an_index_and_a_displacement() {
        assert_eq!(read("-8@-56(%rbp)").location, memory(Some(5), None, -56));
        assert_eq!(read("8@(%rsp)").location, memory(Some(4), None, 0));
        assert_eq!(read("8@16(%rax,%r9,8)").location, memory(Some(0), Some((9, 3)), 16));
        assert_eq!(read("8@(%rax, %rbx)").location, memory(Some(0), Some((3, 0)), 0));
        assert_eq!(read("4@0x20(,%rdi,4)").location, memory(None, Some((7, 2)), 32));
    }

    #[test]
    fn constants_have_all_bits() {
        assert_eq!(read("-4@$-7").location, Location::Constant(-7));
        assert_eq!(read("8@$0x10").location, Location::Constant(16));
        assert_eq!(read("8@$18446744073709551615").location, Location::Constant(-1));
    }

    #[test]
    fn other_forms_are_no_operand() {
        for text in [
            "",
            "8",
            "@%rax",
            "3@%rax",
            "8f@%xmm0",
            "8@%xmm0",
            "8@%ah",
            "8@%rip",
            "8@symbol(%rip)",
            "8@4(%rip)",
            "8@symbol+4(%rax)",
            "8@(%eax)",
            "8@()",
            "8@(%rax,%rsp)",
            "8@(%rax,%rbx,3)",
            "8@(%rax,%rbx,8,1)",
            "8@$",
            "8@$x",
            "8@%fs:0",
            "8@12",
            "8@$--1",
        ] {
            assert_eq!(Operand::parse(text), None, "{text}");
        }
    }

    #[test]
    fn spaces_inside_brackets_separate_nothing() {
        assert_eq!(split("  8@(%rax, %rbx)  -4@%eax "), ["8@(%rax, %rbx)", "-4@%eax"]);
        assert_eq!(split(""), [""; 0]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", near in "-?[1-9]@[-$%]?[a-z0-9(),%]{0,12}") {
            let _ = Operand::parse(&text);
            let _ = Operand::parse(&near);
            let _ = split(&text);
        }

        #[test]
        fn what_a_compiler_writes_is_read_back(
            base in 0u8..16, index in proptest::option::of((0u8..16, 0u8..4)), displacement: i32, bytes in 0u8..4, signed: bool
        ) {
            let index = index.filter(|(register, _)| *register != 4);
            let bytes = 1u8 << bytes;
            let name = |register: u8| QWORD[usize::from(register)];
            let tail = index.map(|(register, scale)| format!(",%{},{}", name(register), 1 << scale)).unwrap_or_default();
            let sign = if signed { "-" } else { "" };
            let text = format!("{sign}{bytes}@{displacement}(%{}{tail})", name(base));
            let location = memory(Some(base), index, i64::from(displacement));
            prop_assert_eq!(Operand::parse(&text), Some(Operand { location, bytes, signed }));
        }
    }
}
