//! Durations and sizes: a number and its unit.

use std::time::Duration;

/// A report takes about a hundredth of this.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// `10us`, `5s`; a bare number is refused.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [
        ("ns", 1u64),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    with_unit(text, &units)
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("{text:?} is no duration; write a number and ns, us, ms, s, min or h, such as 10us"))
}

/// As [`parse_duration`], at least a tenth of a second.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    match interval >= SHORTEST_INTERVAL {
        true => Ok(interval),
        false => Err(format!("{text:?} is too short; at least 100ms, such as 10s")),
    }
}

/// `16MiB`, `1GiB`; a bare number is refused.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let units = [
        ("B", 1u64),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    with_unit(text, &units)
        .ok_or_else(|| format!("{text:?} is no size; write a number and B, KiB, MiB or GiB, such as 16MiB"))
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let scale = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let value = number.parse::<f64>().ok()? * scale as f64;
    (value.is_finite() && value < 9.0e18).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_unit_is_refused() {
        assert_eq!(parse_duration("10us"), Ok(Duration::from_micros(10)));
        assert_eq!(parse_duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert!(parse_duration("10").is_err() && parse_duration("").is_err() && parse_duration("-1s").is_err());
        assert_eq!(parse_size("16MiB"), Ok(16 << 20));
        assert!(parse_size("16").is_err() && parse_size("16 parsecs").is_err());
    }
}
