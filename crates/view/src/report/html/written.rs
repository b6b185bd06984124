//! Text that stays text, whatever is in it.

use crate::text::quantity::escaped;
use std::fmt::{Display, Formatter, Result, Write};

/// Neither markup nor the end of an attribute; control characters are visible.
pub(super) struct Text<'a>(pub &'a str);

impl Display for Text<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for character in escaped(self.0).chars() {
            match character {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                other => out.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_becomes_markup(text in any::<String>()) {
            let written = Text(&text).to_string();
            prop_assert!(!written.contains(['<', '>', '"', '\'']));
            prop_assert!(!written.contains(char::is_control));
        }
    }
}
