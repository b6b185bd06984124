//! Settings read from the environment.

use std::env;

/// A size in bytes: a number, with an optional `K`, `M`, `G` or `T` (powers of 1024), after
/// which `B` or `iB` may follow.
pub fn bytes(name: &str, default: u64) -> u64 {
    env::var(name)
        .ok()
        .and_then(|text| parse_bytes(&text))
        .unwrap_or(default)
}

/// A number, which may have a fraction.
pub fn number(name: &str, default: f64) -> f64 {
    let value = env::var(name).ok().and_then(|text| text.trim().parse::<f64>().ok());
    value.filter(|v| v.is_finite() && *v >= 0.0).unwrap_or(default)
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let value: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    value.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_with_units() {
        assert_eq!(parse_bytes("8GiB"), Some(8 << 30));
        assert_eq!(parse_bytes("512 m"), Some(512 << 20));
        assert_eq!(parse_bytes("17"), Some(17));
        assert_eq!(parse_bytes("1X"), None);
    }
}
