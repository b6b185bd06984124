//! How notes of static probes write places on aarch64: `x0`, `w1`, `[sp, 16]`, `[x0, x1, lsl 3]`, `7`.

use super::{Location, Register, number_of};

/// The stack pointer, after `x0` to `x30`.
const STACK: Register = 31;
const LAST: Register = 30;

/// `None`: no register, no address and no number; or an index that is no whole register.
pub(in crate::elf) fn location(text: &str) -> Option<Location> {
    if let Some(inside) = text.strip_prefix('[') {
        return memory(inside.strip_suffix(']')?);
    }
    match register(text) {
        Some(register) => Some(Location::Register(register)),
        None => number_of(text.strip_prefix('#').unwrap_or(text)).map(Location::Constant),
    }
}

fn memory(inside: &str) -> Option<Location> {
    let mut parts = inside.split(',').map(str::trim);
    let base = Some(address(parts.next()?)?);
    let second = parts.next();
    let index = match second.and_then(address) {
        Some(STACK) => return None,
        Some(register) => Some((register, shift(parts.next())?)),
        None => None,
    };
    let displacement = match second.filter(|_| index.is_none()) {
        Some(number) => number_of(number.strip_prefix('#').unwrap_or(number))?,
        None => 0,
    };
    parts.next().is_none().then_some(Location::Memory {
        base,
        index,
        displacement,
    })
}

/// `lsl 3`: by how many bits an index is shifted; one of half a register, `sxtw`, is not read.
fn shift(text: Option<&str>) -> Option<u8> {
    let Some(text) = text else { return Some(0) };
    let bits = text.strip_prefix("lsl")?.trim().trim_start_matches('#');
    bits.parse().ok().filter(|bits| *bits <= 3)
}

/// A register that an address is made of: one of eight bytes.
fn address(name: &str) -> Option<Register> {
    register(name).filter(|_| !name.starts_with('w'))
}

fn register(name: &str) -> Option<Register> {
    if matches!(name, "sp" | "wsp") {
        return Some(STACK);
    }
    let digits = name.strip_prefix(['x', 'w'])?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !(digits.len() > 1 && digits.starts_with('0'));
    let number = digits.parse().ok().filter(|_| is_plain);
    number.filter(|number| *number <= LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(base: u8, index: Option<(u8, u8)>, displacement: i64) -> Option<Location> {
        Some(Location::Memory {
            base: Some(base),
            index,
            displacement,
        })
    }

    #[test]
    fn registers_addresses_and_numbers_are_read() {
        assert_eq!(location("x0"), Some(Location::Register(0)));
        assert_eq!(location("w30"), Some(Location::Register(30)));
        assert_eq!(location("sp"), Some(Location::Register(31)));
        assert_eq!(location("-7"), Some(Location::Constant(-7)));
        assert_eq!(location("[x19]"), memory(19, None, 0));
        assert_eq!(location("[sp, 16]"), memory(31, None, 16));
        assert_eq!(location("[x29, -8]"), memory(29, None, -8));
        assert_eq!(location("[x0, x1]"), memory(0, Some((1, 0)), 0));
        assert_eq!(location("[x0, x1, lsl 3]"), memory(0, Some((1, 3)), 0));
    }

    #[test]
    fn what_is_none_of_them_is_not_guessed() {
        for text in [
            "",
            "x31",
            "x",
            "x01",
            "d0",
            "symbol",
            "[",
            "[x0",
            "[w0]",
            "[x0, w1, sxtw 2]",
            "[x0, sp]",
            "[x0, x1, lsl 4]",
            "[x0, 8, 8]",
            "[x0, x1, lsl 3, 1]",
            "[5]",
        ] {
            assert_eq!(location(text), None, "{text}");
        }
    }
}
