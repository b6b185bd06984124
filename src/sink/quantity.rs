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
fn drives_a_terminal(character: char) -> bool {
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

/// [`escape_into`] as a string.
pub fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    escape_into(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_hostile_name_stays_on_its_line() {
        assert_eq!(escaped("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
    }
}
