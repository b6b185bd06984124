//! Numbers as people read them, and text that cannot harm a terminal.

/// `438.2 µs`; three or four significant digits.
pub fn duration(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        _ if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

/// `1.0 GiB`; exact numbers below a KiB.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    format!(
        "{:.1} {}",
        bytes as f64 / (1u64 << (10 * power)) as f64,
        UNITS[power as usize - 1]
    )
}

/// `4b246a12`: two digits for each byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 allocation`, `1,024 allocations`.
pub fn plural(number: u64, one: &str) -> String {
    let number_words = count(number);
    let stem = one.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o']));
    match (number, stem) {
        (1, _) => format!("{number_words} {one}"),
        (_, Some(stem)) => format!("{number_words} {stem}ies"),
        _ if one.ends_with(['s', 'h']) => format!("{number_words} {one}es"),
        _ => format!("{number_words} {one}s"),
    }
}

/// The form of a verb, or of another word, behind `number`: `1 call has`, `2 calls have`.
pub fn form<'a>(number: u64, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// `2026-11-22`: the Gregorian date of a day since 1970-01-01 (Howard Hinnant, `civil_from_days`).
pub fn date(day: i64) -> String {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Appends `text` with control characters escaped, so that one record stays one line and no terminal obeys it.
pub fn escape_into(text: &str, out: &mut Vec<u8>) {
    escape_where(text, drives_a_terminal, out);
}

/// Appends `text` in double quotes; nothing in it can end them early.
pub fn quote_into(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape_where(text, |c| matches!(c, '"' | '\\') || drives_a_terminal(c), out);
    out.push(b'"');
}

/// Control characters, and those that turn the direction of writing.
pub(crate) fn drives_a_terminal(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape_where(text: &str, special: impl Fn(char) -> bool, out: &mut Vec<u8>) {
    for character in text.chars() {
        if special(character) {
            out.extend_from_slice(character.escape_default().to_string().as_bytes());
        } else {
            let mut buffer = [0; 4];
            out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        }
    }
}

/// A JSON text without characters that some terminals obey, which JSON allows; they occur inside strings only.
pub fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match drives_a_terminal(character) && character >= '\u{7f}' {
            true => out.push_str(&format!("\\u{:04x}", character as u32)),
            false => out.push(character),
        }
    }
    out
}

/// [`escape_into`] as a string.
pub fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    escape_into(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A part as a share, rounded down: all is said of all alone. `None`: of nothing.
#[must_use]
pub fn share_down(part: u64, whole: u64) -> Option<String> {
    let thousandths = (u128::from(part) * 1000).checked_div(u128::from(whole))?;
    Some(format!("{}.{} %", thousandths / 10, thousandths % 10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse::{parse_duration, parse_size};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn sizes_and_durations_read_naturally() {
        assert_eq!(bytes(1 << 30), "1.0 GiB");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(duration(438_200), "438.2 µs");
        assert_eq!(duration(12), "12 ns");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
    }

    proptest! {
        #[test]
        fn a_duration_reads_back_within_a_twentieth(ns in 0u64..1 << 62) {
            let back = parse_duration(&duration(ns)).unwrap().as_nanos() as u64;
            prop_assert!(back.abs_diff(ns) <= ns / 20, "{ns} is shown as {}", duration(ns));
        }

        #[test]
        fn a_size_reads_back_within_a_twentieth(size in 0u64..1 << 40) {
            let back = parse_size(&bytes(size)).unwrap();
            prop_assert!(back.abs_diff(size) <= size / 20, "{size} is shown as {}", bytes(size));
        }

        #[test]
        fn a_whole_number_of_a_unit_is_read_exactly(number in 0u64..1 << 20) {
            prop_assert_eq!(parse_duration(&format!("{number}us")), Ok(Duration::from_micros(number)));
            prop_assert_eq!(parse_duration(&format!("{number}min")), Ok(Duration::from_secs(60 * number)));
            prop_assert_eq!(parse_size(&format!("{number}MiB")), Ok(number << 20));
        }

        #[test]
        fn any_text_is_read_or_refused_with_the_units(text in "([0-9.]{0,12} ?[a-zA-Zµ]{0,3}|\\PC*)") {
            for refusal in [parse_duration(&text).err(), parse_size(&text).err()].into_iter().flatten() {
                prop_assert!(refusal.contains("such as") || refusal.contains("needs a unit"), "{refusal}");
            }
        }

        #[test]
        fn a_number_without_a_unit_is_refused(number in any::<u64>()) {
            prop_assert!(parse_duration(&number.to_string()).is_err() && parse_size(&number.to_string()).is_err());
        }

        #[test]
        fn a_count_is_the_number_with_commas(number in any::<u64>()) {
            let text = count(number);
            prop_assert_eq!(text.replace(',', "").parse::<u64>(), Ok(number));
            prop_assert!(text.rsplit(',').rev().skip(1).all(|group| group.len() == 3));
        }

        #[test]
        fn escaped_text_holds_nothing_that_a_terminal_obeys(text in any::<String>()) {
            prop_assert!(!escaped(&text).contains(char::is_control));
            let mut quoted = Vec::new();
            quote_into(&text, &mut quoted);
            // only the last quote is not preceded by an odd number of backslashes
            let quoted = String::from_utf8(quoted).unwrap();
            let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap();
            let plain = inner.replace("\\\\", "").replace("\\\"", "");
            prop_assert!(!plain.contains('"'));
        }
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(plural(1, "allocation"), "1 allocation");
        assert_eq!(plural(1024, "allocation"), "1,024 allocations");
        assert_eq!(plural(2, "process"), "2 processes");
        assert_eq!(plural(2, "launch"), "2 launches");
        assert_eq!(plural(0, "copy"), "0 copies");
        assert_eq!(plural(3, "array"), "3 arrays");
        assert_eq!(
            [0, 1, 2].map(|number| form(number, "has", "have")),
            ["have", "has", "have"]
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let known = [
            (-1, "1969-12-31"),
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (20_779, "2026-11-22"),
        ];
        known.iter().for_each(|(day, text)| assert_eq!(date(*day), *text));
    }

    #[test]
    fn a_hostile_name_stays_on_its_line() {
        assert_eq!(escaped("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
    }
}
