//! Texts that should be JSON: whether they are.

use super::{json, quantity};
use std::borrow::Cow;

/// Beyond so many objects and arrays within each other a text is not plain.
const DEEPEST: usize = 16;

/// `text` as JSON on one line and without what a terminal obeys; `None`: it is neither an object nor an array.
pub fn object(text: &str) -> Option<Cow<'_, str>> {
    if is_plain(text.as_bytes()) {
        return Some(Cow::Borrowed(text));
    }
    let whole = text.starts_with('{') || text.starts_with('[');
    if !whole || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return None;
    }
    match text.contains(quantity::drives_a_terminal) {
        // within strings there are none: they are between tokens
        true => Some(quantity::harmless(text).replace(['\n', '\r', '\t'], " ").into()),
        false => Some(Cow::Borrowed(text)),
    }
}

/// The same into `out`; what is no JSON becomes a JSON string.
pub fn object_into(text: &str, out: &mut Vec<u8>) {
    match object(text) {
        Some(json) => out.extend_from_slice(json.as_bytes()),
        None => json::string(text, out),
    }
}

/// Whether it is what recordings are full of: JSON without spaces, fractions, and all that strings escape. What is not
/// plain may be JSON all the same. Several times faster than a parser.
fn is_plain(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'{' | b'[')) && value(text, DEEPEST) == Some(&[])
}

/// What is behind the value that `text` begins with. `depth`: so many may be within it.
fn value(text: &[u8], depth: usize) -> Option<&[u8]> {
    match text.first()? {
        b'"' => quoted(text),
        b'{' => list(text, b'}', depth, member),
        b'[' => list(text, b']', depth, value),
        b'-' | b'0'..=b'9' => integer(text),
        _ => [&b"null"[..], b"true", b"false"]
            .into_iter()
            .find_map(|word| text.strip_prefix(word)),
    }
}

fn list(text: &[u8], end: u8, depth: usize, one: fn(&[u8], usize) -> Option<&[u8]>) -> Option<&[u8]> {
    let depth = depth.checked_sub(1)?;
    let mut rest = text.get(1..)?;
    if rest.first() == Some(&end) {
        return rest.get(1..);
    }
    loop {
        let (next, behind) = one(rest, depth)?.split_first()?;
        match *next {
            b',' => rest = behind,
            next => return (next == end).then_some(behind),
        }
    }
}

fn member(text: &[u8], depth: usize) -> Option<&[u8]> {
    value(quoted(text)?.strip_prefix(b":")?, depth)
}

fn quoted(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"\"")?;
    let end = text
        .iter()
        .position(|byte| !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\'))?;
    text[end..].strip_prefix(b"\"")
}

fn integer(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_number = digits == 1 || (digits > 1 && text[0] != b'0');
    is_number.then(|| &text[digits..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        object_into(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    const PLAIN: [&str; 3] = [
        "{}",
        r#"{"f":"0x55d0","grid":[64,1,1],"flags":0,"at":{"x":-1,"host":null,"ok":true,"no":false}}"#,
        r#"[{"function":"main","file":"/a b.py","line":3},{"function":"<module>","file":null}]"#,
    ];

    #[test]
    fn what_a_recording_has_is_plain() {
        for text in PLAIN {
            assert!(is_plain(text.as_bytes()), "{text}");
            assert_eq!(written(text), text);
        }
    }

    #[test]
    fn what_is_not_plain_is_written_all_the_same() {
        for text in [r#"{"a": 1.5}"#, r#"{"a":"\n"}"#, r#"{"a":"é"}"#, "{\"a\":1e3}"] {
            assert!(!is_plain(text.as_bytes()), "{text}");
            assert_eq!(written(text), text);
        }
        assert_eq!(written("{\"a\":\n1}"), "{\"a\": 1}");
        assert_eq!(written("{\"a\":\"\u{9b}\"}"), "{\"a\":\"\\u009b\"}");
    }

    #[test]
    fn what_is_no_json_becomes_a_string() {
        for text in [
            "",
            "{",
            "1",
            "null",
            "{\"a\"}",
            "{\"a\":01}",
            "[1,]",
            "{}x",
            "[-]",
            "{\"a\":tru}",
        ] {
            assert!(object(text).is_none(), "{text}");
            assert_eq!(serde_json::from_str::<String>(&written(text)).unwrap(), text);
        }
    }

    proptest! {
        #[test]
        fn whatever_is_plain_is_json(
            at in 0..PLAIN[1].len(),
            length in 0usize..3,
            with in r#"[\[\]{}",:0-9eE+. \\a-z-]{0,2}"#,
        ) {
            let end = (at + length).min(PLAIN[1].len());
            let text = [&PLAIN[1][..at], &with, &PLAIN[1][end..]].concat();
            if is_plain(text.as_bytes()) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
            }
        }

        #[test]
        fn nothing_is_written_that_is_not_json(text: String) {
            let out = written(&text);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok());
            prop_assert!(!out.contains(char::is_control));
        }
    }
}
