//! A Python string, read from the interpreter's memory.

use super::layout::Text;
use super::memory::Memory;
use crate::wire::{u32_at, u64_at};

/// Characters that are kept of a string; what is longer is cut.
pub const LONGEST: u64 = 4096;
const HEAD: usize = 72;

/// How the characters of a string are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Bytes of a character: 1, 2 or 4.
    pub width: u64,
    /// Follow the short head that strings of ASCII alone have.
    pub ascii: bool,
}

impl Form {
    /// Reads the flags of a string, whose size of characters begins at bit `shift`. `None`: a string of a kind that
    /// names and paths never are, or none at all.
    pub(crate) fn parse(state: u32, shift: u32) -> Option<Form> {
        let bits = state >> shift;
        let (kind, compact, ascii) = (bits & 7, bits & 8 != 0, bits & 16 != 0);
        let width = match kind {
            1 | 2 | 4 => u64::from(kind),
            _ => return None,
        };
        (compact && (!ascii || width == 1)).then_some(Form { width, ascii })
    }
}

/// The string at `address`.
pub fn read(memory: &impl Memory, layout: &Text, address: u64) -> Option<String> {
    let mut head = [0; HEAD];
    memory.read(address, head.get_mut(..layout.ascii_bytes as usize)?)?;
    let form = Form::parse(u32_at(&head, layout.state as usize), layout.kind_shift)?;
    let length = u64_at(&head, layout.length as usize);
    let data = if form.ascii {
        layout.ascii_bytes
    } else {
        layout.compact_bytes
    };
    let size = length.min(LONGEST) * form.width;
    let bytes = memory.bytes(address.checked_add(u64::from(data))?, size, 4 * LONGEST as usize)?;
    let mut text = decode(&bytes, form.width);
    if length > LONGEST {
        text.push('…');
    }
    Some(text)
}

/// Latin-1, UCS-2 or UCS-4 to text. What no character is becomes U+FFFD, what would disturb a terminal is escaped.
pub(crate) fn decode(bytes: &[u8], width: u64) -> String {
    let character = |unit: &[u8]| {
        let number = unit.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    let mut text = String::with_capacity(bytes.len());
    for character in bytes.chunks_exact(width.clamp(1, 4) as usize).map(character) {
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_keep_their_characters_in_every_width() {
        assert_eq!(decode(b"caf\xe9", 1), "café");
        assert_eq!(decode(&[0x42, 0x04, 0x35, 0x04], 2), "те");
        assert_eq!(decode(&[0x00, 0xf6, 0x01, 0x00], 4), "😀");
    }

    #[test]
    fn what_is_no_character_or_moves_the_cursor_is_made_visible() {
        assert_eq!(decode(&[0x00, 0xd8], 2), "\u{fffd}");
        assert_eq!(decode(b"a\x1b[2J\n", 1), "a\\u{1b}[2J\\n");
    }

    #[test]
    fn flags_of_interned_ascii_and_of_wide_strings_are_told_apart() {
        assert_eq!(Form::parse(0b110_0101, 2), Some(Form { width: 1, ascii: true }));
        assert_eq!(Form::parse(0b010_1001, 2), Some(Form { width: 2, ascii: false }));
        assert_eq!(Form::parse(0b000_0100, 2), None, "its characters lie elsewhere");
        assert_eq!(Form::parse(0b110_1000, 2), None, "ASCII in two bytes");
        assert_eq!(Form::parse(0, 2), None);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_text(bytes in proptest::collection::vec(any::<u8>(), 0..200), width in 0_u64..9) {
            prop_assert!(!decode(&bytes, width).chars().any(char::is_control));
        }

        #[test]
        fn text_without_control_characters_is_read_back(text in "[^\\p{Cc}]{0,60}") {
            let wide: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
            prop_assert_eq!(decode(&wide, 4), text);
        }
    }
}
