//! One JSON line: its members as they stand there, without a tree of them. Total: whatever the bytes are.

use serde::de::IgnoredAny;
use std::borrow::Cow;

/// A line of ours has some fifty: whatever it is, one with more is not ours, and would take more room than it has itself.
const MOST_MEMBERS: usize = 4096;

/// An object's members: names, and values as JSON.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    members: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    /// The members of the object `text`.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn of(text: &'a str) -> Result<Line<'a>, String> {
        let no_object = || "a line is no JSON object".to_owned();
        serde_json::from_str::<IgnoredAny>(text).map_err(|_| no_object())?;
        let mut rest = text.trim().strip_prefix('{').ok_or_else(no_object)?.trim_start();
        let mut members = Vec::with_capacity(24);
        while rest.starts_with('"') {
            let (name, behind) = value(rest);
            let (value, behind) = value(
                behind
                    .trim_start()
                    .strip_prefix(':')
                    .ok_or_else(no_object)?
                    .trim_start(),
            );
            if members.len() == MOST_MEMBERS {
                return Err(format!("a line has more than {MOST_MEMBERS} members"));
            }
            // names of ours have nothing that is escaped
            members.push((name.trim_matches('"'), value));
            rest = behind.trim_start().trim_start_matches(',').trim_start();
        }
        Ok(Line { members })
    }

    pub(super) fn members(&self) -> &[(&'a str, &'a str)] {
        &self.members
    }

    /// A value as JSON.
    pub(super) fn json(&self, name: &str) -> Option<&'a str> {
        let found = self.members.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value).filter(|value| *value != "null")
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let quoted = self.json(name)?;
        let plain = quoted.strip_prefix('"')?.strip_suffix('"')?;
        match plain.contains('\\') {
            false => Some(Cow::Borrowed(plain)),
            true => serde_json::from_str(quoted).ok().map(Cow::Owned),
        }
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.json(name)?.parse().ok()
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.json(name) == Some("true")
    }

    /// `"0x7f00"`.
    pub(super) fn address(&self, name: &str) -> Option<u64> {
        let digits = self.json(name)?.strip_prefix("\"0x")?.strip_suffix('"')?;
        u64::from_str_radix(digits, 16).ok()
    }

    /// A number with a point, times 10 to the power of `digits`: seconds as nanoseconds.
    pub(super) fn scaled(&self, name: &str, digits: usize) -> Option<i64> {
        let text = self.json(name)?;
        let (is_negative, plain) = match text.strip_prefix('-') {
            Some(plain) => (true, plain),
            None => (false, text),
        };
        let (whole, part) = plain.split_once('.').unwrap_or((plain, ""));
        let part: String = part.chars().chain(std::iter::repeat('0')).take(digits).collect();
        let size = format!("{whole}{part}").parse::<i64>().ok()?;
        Some(if is_negative { -size } else { size })
    }
}

/// The JSON value that `text` begins with, and what is behind it. `text` is part of what a parser has taken.
fn value(text: &str) -> (&str, &str) {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    return text.split_at(at + 1);
                }
            }
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return text.split_at(at),
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return text.split_at(at + 1);
                }
            }
            b',' | b' ' | b'\t' if depth == 0 => return text.split_at(at),
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_are_found_as_they_stand() {
        let text = r#" { "a" : {"b":[1,"}"]} ,"n":-1.5,"t":"x\n","e":"","q":"\\","h":"0xff","ok":true,"no":null } "#;
        let line = Line::of(text).unwrap();
        assert_eq!(line.json("a"), Some(r#"{"b":[1,"}"]}"#));
        assert_eq!((line.scaled("n", 3), line.address("h")), (Some(-1500), Some(255)));
        assert_eq!(line.text("t").as_deref(), Some("x\n"));
        assert_eq!(
            (line.text("e").as_deref(), line.text("q").as_deref()),
            (Some(""), Some("\\"))
        );
        assert!(line.is_true("ok") && line.json("no").is_none() && line.json("b").is_none());
        assert_eq!(line.members().len(), 9 - 1);
    }

    #[test]
    fn more_members_than_any_line_of_ours_has_are_refused() {
        let of = |count: usize| format!("{{{}}}", vec!["\"\":1"; count].join(","));
        assert!(Line::of(&of(MOST_MEMBERS)).is_ok());
        assert!(Line::of(&of(MOST_MEMBERS + 1)).unwrap_err().contains("4096 members"));
    }

    #[test]
    fn times_are_exact() {
        let ns = |text: &str| Line::of(&format!("{{\"ts\":{text}}}")).unwrap().scaled("ts", 9);
        assert_eq!(ns("8123456789.123456789"), Some(8_123_456_789_123_456_789));
        assert_eq!(ns("-0.000000001"), Some(-1));
        assert_eq!(
            (ns("3"), ns("1e3"), ns("99999999999999")),
            (Some(3_000_000_000), None, None)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_an_object_or_refused(text: String) {
            let is_object = serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|json| json.is_object());
            prop_assert_eq!(Line::of(&text).is_ok(), is_object);
        }

        #[test]
        fn any_object_has_the_members_that_a_parser_finds(names in proptest::collection::btree_map("[a-z]{1,4}", any::<String>(), 0..6)) {
            let json = serde_json::json!(names).to_string();
            let line = Line::of(&json).unwrap();
            prop_assert_eq!(line.members().len(), names.len());
            for (name, value) in &names {
                let read = line.text(name);
                prop_assert_eq!(read.as_deref(), Some(value.as_str()));
            }
        }
    }
}
