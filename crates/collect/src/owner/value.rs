//! The value of a label from what a process says of itself: bounded, readable, harmless.

/// Longer values are cut.
pub(crate) const LONGEST_BYTES: usize = 128;
const CUT: &str = "…";

/// Text of at most [`LONGEST_BYTES`]; what is too long loses its end.
pub(crate) fn clean(bytes: &[u8]) -> String {
    // no more can be left of it, whatever is replaced
    let (head, more) = bytes.split_at(bytes.len().min(LONGEST_BYTES + 1));
    let text = readable(head);
    if text.len() <= LONGEST_BYTES && more.is_empty() {
        return text;
    }
    let end = text.floor_char_boundary(LONGEST_BYTES - CUT.len());
    format!("{}{CUT}", &text[..end])
}

/// The same of a path: what is too long loses its beginning, as its end says more.
pub(crate) fn clean_path(bytes: &[u8]) -> String {
    let (more, tail) = bytes.split_at(bytes.len().saturating_sub(LONGEST_BYTES + 1));
    let text = readable(tail);
    if text.len() <= LONGEST_BYTES && more.is_empty() {
        return text;
    }
    let start = text.ceil_char_boundary(text.len().saturating_sub(LONGEST_BYTES - CUT.len()));
    format!("{CUT}{}", &text[start..])
}

fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = |character| {
        if misleads(character) {
            char::REPLACEMENT_CHARACTER
        } else {
            character
        }
    };
    text.chars().map(shown).collect()
}

/// Whether a terminal obeys it, or a reader does not see it where it is.
fn misleads(character: char) -> bool {
    let unseen =
        matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    character.is_control() || unseen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_short_and_readable_stays_as_it_is() {
        for text in ["", "python3", "ray::IDLE", "\"quoted\" \\ back", "日本語", " spaces "] {
            assert_eq!(
                (clean(text.as_bytes()).as_str(), clean_path(text.as_bytes()).as_str()),
                (text, text)
            );
        }
    }

    #[test]
    fn what_a_terminal_obeys_or_nobody_sees_is_replaced() {
        assert_eq!(clean(b"a\nb\x1b[2J\0"), "a\u{fffd}b\u{fffd}[2J\u{fffd}");
        assert_eq!(clean("gpj.\u{202e}exe".as_bytes()), "gpj.\u{fffd}exe");
        assert_eq!(clean(b"caf\xe9"), "caf\u{fffd}");
    }

    #[test]
    fn a_long_value_loses_its_end_and_a_long_path_its_beginning() {
        let long = [b"/start/".as_slice(), &[b'x'; 4096], b"/python3"].concat();
        let (value, path) = (clean(&long), clean_path(&long));
        assert!(value.starts_with("/start/xx") && value.ends_with("x…"), "{value}");
        assert!(path.starts_with("…xx") && path.ends_with("/python3"), "{path}");
        assert_eq!((value.len(), path.len()), (LONGEST_BYTES, LONGEST_BYTES));
    }

    #[test]
    fn the_limit_itself_is_not_too_long() {
        let exact = [b'x'; LONGEST_BYTES];
        assert!(!clean(&exact).contains('…') && !clean_path(&exact).contains('…'));
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_the_value_is_bounded_and_harmless(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            for value in [clean(&bytes), clean_path(&bytes)] {
                prop_assert!(value.len() <= LONGEST_BYTES, "{}", value.len());
                prop_assert!(!value.chars().any(misleads), "{value:?}");
                prop_assert_eq!(value.is_empty(), bytes.is_empty());
            }
        }

        #[test]
        fn cleaning_twice_changes_nothing(text in any::<String>()) {
            let once = clean(text.as_bytes());
            prop_assert_eq!(clean(once.as_bytes()), once);
        }
    }
}
