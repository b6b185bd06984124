//! Numbers and texts of a cell, and cutting them to a number of columns.

use crate::serve::display::units;
use unicode_width::UnicodeWidthStr;

pub(crate) use crate::serve::display::units::{bytes, count, fine_percent, percent};

/// `+1.20Mi`, `-512`; nothing where nothing changes.
pub(crate) fn signed_bytes(number: f64) -> String {
    match number {
        _ if number.abs() < 1.0 => "0".to_owned(),
        _ if number < 0.0 => format!("-{}", units::bytes(-number)),
        _ => format!("+{}", units::bytes(number)),
    }
}

/// `≥43%`.
pub(crate) fn bound(sign: &str, share: f64) -> String {
    format!("{sign}{}", percent(share.clamp(0.0, 1.0)))
}

/// `61.2G/80.0G`: used of all.
pub(crate) fn part(used: f64, total: f64) -> String {
    format!("{}/{}", short(used), short(total))
}

fn short(number: f64) -> String {
    units::bytes(number).replace('i', "")
}

/// No wider than so many columns; what is cut ends with `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for character in text.chars() {
        out.push(character);
        // of the whole: some characters change the width of the one before
        if out.width() + 1 > width {
            out.pop();
            break;
        }
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Broken at spaces; before the first line and before the others stands something of one width.
pub(crate) fn folded(text: &str, width: usize, before: [&str; 2]) -> Vec<String> {
    let [first, others] = before;
    let mut lines = vec![first.to_owned()];
    for word in text.split(' ') {
        let is_full = lines
            .last()
            .is_some_and(|line| line.width() + word.width() > width && line.width() > first.width());
        if is_full {
            lines.push(others.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
            line.push(' ');
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Exactly so wide: to the left or to the right.
pub(crate) fn padded(text: &str, width: usize, left: bool) -> String {
    let text = cut(text, width);
    let room = " ".repeat(width.saturating_sub(text.width()));
    match left {
        true => text + &room,
        false => room + &text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cell_is_as_wide_as_it_should_be_whatever_is_in_it() {
        assert_eq!(padded("abc", 5, true), "abc  ");
        assert_eq!(padded("abc", 5, false), "  abc");
        assert_eq!(padded("訓練する", 5, true), "訓練…");
        assert_eq!(padded("e\u{301}te\u{301}", 4, true), "e\u{301}te\u{301} ");
        assert_eq!(padded("a", 0, true), "");
    }

    #[test]
    fn what_is_too_long_goes_on_below_its_beginning() {
        let lines = folded("one two three", 9, ["1. ", "   "]);
        assert_eq!(lines, ["1. one", "   two", "   three"]);
        assert_eq!(
            folded("overlong", 4, ["- ", "  "]),
            ["- overlong"],
            "a word is not broken"
        );
    }

    #[test]
    fn growth_has_a_sign() {
        assert_eq!([1536.0, -1536.0, 0.3].map(signed_bytes), ["+1.50Ki", "-1.50Ki", "0"]);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_its_column(text in ".{0,20}", width in 0usize..12) {
            prop_assert_eq!(padded(&text, width, true).width(), width);
        }
    }
}
