//! Identifiers of devices, as the driver reads them.

use crate::text::quantity::hexadecimal;

/// Of a whole UUID.
const DIGITS: usize = 32;

/// The hexadecimal digits of a UUID, in lower case and without dashes; what follows the last is ignored.
///
/// `None`: there is none, or something else comes before the last.
pub(super) fn digits(text: &str) -> Option<String> {
    let mut digits = String::new();
    for letter in text.chars().filter(|letter| *letter != '-') {
        if digits.len() == DIGITS {
            break;
        }
        digits.push(letter.is_ascii_hexdigit().then(|| letter.to_ascii_lowercase())?);
    }
    (!digits.is_empty()).then_some(digits)
}

/// The digits of a UUID as NVML writes it: `GPU-…` or `MIG-…`.
pub(super) fn of_uuid(uuid: &str) -> Option<String> {
    digits(uuid.strip_prefix("GPU-").or_else(|| uuid.strip_prefix("MIG-"))?)
}

/// The digits of a UUID as `cuDeviceGetUuid` gives it.
pub(super) fn of_bytes(bytes: &[u8; 16]) -> String {
    hexadecimal(bytes)
}

/// `strtoul` of C in base ten, cut to 32 bits; `None`: no digits.
pub(super) fn number(text: &str) -> Option<u32> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return None;
    }
    // Too large for C is the largest, whatever the sign.
    let value = text[..end].parse::<u64>();
    Some(value.map_or(u32::MAX, |value| {
        (if negative { value.wrapping_neg() } else { value }) as u32
    }))
}
