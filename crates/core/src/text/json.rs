//! Texts and numbers as JSON, appended to bytes: on one line, and without what a terminal obeys.

use super::quantity::drives_a_terminal;
use std::io::Write;

/// `number` with zeros before it, `digits` wide.
pub fn padded(number: u64, digits: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + digits, b'0');
    let mut rest = number;
    for place in out[start..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// A string with a hexadecimal number.
pub fn hex(number: u64, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\"0x");
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        out.push(DIGITS[(number >> (4 * place) & 15) as usize]);
    }
    out.push(b'"');
}

/// A JSON string; what drives no terminal and is no quote or backslash is copied as it is.
pub fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && !matches!(byte, b'"' | b'\\' | 0x7f | 0xc2 | 0xd8 | 0xe2) {
            continue;
        }
        // the first bytes of controls beyond ASCII, and of what turns the direction of writing
        let Some(character) = text.get(index..).and_then(|rest| rest.chars().next()) else {
            continue;
        };
        if !character.is_ascii() && !drives_a_terminal(character) {
            continue;
        }
        out.extend_from_slice(&bytes[copied..index]);
        copied = index + character.len_utf8();
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            other => drop(write!(out, "\\u{:04x}", other as u32)),
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_becomes_one_line_that_reads_back(letters in proptest::collection::vec(
            prop_oneof![any::<char>(), proptest::sample::select(&['\u{202e}', '\u{2066}', '\u{61c}', '\u{9b}', 'é', '…'][..])],
            0..20,
        )) {
            let text: String = letters.into_iter().collect();
            let mut out = Vec::new();
            string(&text, &mut out);
            prop_assert!(!std::str::from_utf8(&out).unwrap().contains(drives_a_terminal));
            let back: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(back, text);
        }

        #[test]
        fn hexadecimal_has_no_leading_zeros(number in any::<u64>()) {
            let mut out = Vec::new();
            hex(number, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("\"{number:#x}\""));
        }
    }
}
