//! Ranges of library versions and patterns of names.

/// Inclusive range of soname majors (`libcudart.so.12`: 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Majors {
    /// Lowest major.
    pub first: u32,
    /// Highest major, `u32::MAX` where none is known.
    pub last: u32,
}

impl Majors {
    /// Every major.
    pub(crate) const ANY: Self = Self {
        first: 0,
        last: u32::MAX,
    };

    /// Reads `12`, `11-12`, `13-` or `-11`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = |part: &str, open: u32| {
            if part.is_empty() { Some(open) } else { part.parse().ok() }
        };
        let (first, last) = match text.split_once('-') {
            _ if text.trim_matches('-').is_empty() => return None,
            Some((first, last)) => (number(first, 0)?, number(last, u32::MAX)?),
            None => (text.parse().ok()?, text.parse().ok()?),
        };
        (first <= last).then_some(Self { first, last })
    }

    /// Whether `major` lies inside; `None` stands for the newest.
    #[must_use]
    pub fn contains(self, major: Option<u32>) -> bool {
        let major = major.unwrap_or(u32::MAX);
        self.first <= major && major <= self.last
    }
}

/// `*` matches any run of characters, `?` one, the rest itself.
#[must_use]
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t, mut retry) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || Some(&c) == text.get(t) => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((star, start)) => {
                    p = star + 1;
                    t = start + 1;
                    retry = Some((star, t));
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, without the care for time.
    fn matches_by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => (0..=text.len()).any(|from| matches_by_definition(rest, &text[from..])),
            (Some((b'?', rest)), Some((_, tail))) => matches_by_definition(rest, tail),
            (Some((first, rest)), Some((byte, tail))) => first == byte && matches_by_definition(rest, tail),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_glob_matches_what_its_definition_says(pattern in "[ab?*]{0,8}", text in "[abc]{0,8}") {
            let expected = matches_by_definition(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(glob_matches(&pattern, &text), expected);
        }

        #[test]
        fn a_name_matches_itself_and_a_star_matches_all(text in "\\PC*") {
            prop_assume!(!text.contains(['*', '?']));
            prop_assert!(glob_matches(&text, &text) && glob_matches("*", &text));
            let (longer, one_more) = (format!("{text}*"), format!("{text}?"));
            prop_assert!(glob_matches(&longer, &text) && !glob_matches(&one_more, &text));
        }

        #[test]
        fn any_majors_are_read_or_refused(text in "[0-9-]{0,12}", major in any::<u32>()) {
            if let Some(majors) = Majors::parse(&text) {
                prop_assert_eq!(majors.contains(Some(major)), (majors.first..=majors.last).contains(&major));
            }
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(60) + "b";
        assert!(!glob_matches(&pattern, &"a".repeat(10_000)));
    }
}
