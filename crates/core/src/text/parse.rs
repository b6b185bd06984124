//! Durations and sizes: a number and its unit.

use std::time::Duration;

/// A report takes about a hundredth of this.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// As [`parse_duration`]; a bare number is seconds.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    match is_bare(text) {
        true => parse_duration(&format!("{text}s")),
        false => parse_duration(text),
    }
}

fn is_bare(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite) && text.starts_with(|first: char| first.is_ascii_digit())
}

/// What a variable of the environment says, in the same form; `None`: nothing that can be read.
#[must_use]
pub fn duration_in(variable: &str) -> Option<Duration> {
    parse_duration(&std::env::var(variable).ok()?).ok()
}

/// `10us`, `5s`; a bare number is refused.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    if is_bare(text) {
        return Err(format!("needs a unit: {text}us, {text}ms or {text}s"));
    }
    let units = [
        ("ns", 1u64),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ];
    with_unit(text, &units)
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("{text:?} is no duration; write a number and ns, us, ms, s, min, h or d, such as 10us"))
}

/// As [`parse_duration`], of what lasts.
pub fn parse_period(text: &str) -> Result<Duration, String> {
    match is_bare(text) {
        true => Err(format!("needs a unit: {text}s or {text}min")),
        false => parse_duration(text),
    }
}

/// As [`parse_period`], at least a tenth of a second.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_period(text)?;
    match interval >= SHORTEST_INTERVAL {
        true => Ok(interval),
        false => Err(format!("{text:?} is too short; at least 100ms, such as 10s")),
    }
}

/// `16MiB`, `1GiB`; a bare number is refused.
pub fn parse_size(text: &str) -> Result<u64, String> {
    if is_bare(text) {
        return Err(format!("needs a unit, such as {text}MiB"));
    }
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
    fn where_peers_take_seconds_a_bare_number_is_seconds() {
        assert_eq!(parse_seconds("3"), Ok(Duration::from_secs(3)));
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_seconds("5min"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_seconds("7d"), Ok(Duration::from_secs(604_800)));
        assert!(
            ["", "-1", "x", "inf", "1e400"]
                .into_iter()
                .all(|text| parse_seconds(text).is_err())
        );
    }

    #[test]
    fn a_refused_number_says_what_to_write() {
        assert_eq!(parse_duration("5").unwrap_err(), "needs a unit: 5us, 5ms or 5s");
        assert_eq!(parse_period("5").unwrap_err(), "needs a unit: 5s or 5min");
        assert_eq!(parse_size("16").unwrap_err(), "needs a unit, such as 16MiB");
    }

    #[test]
    fn a_number_without_unit_is_refused() {
        assert_eq!(parse_duration("10us"), Ok(Duration::from_micros(10)));
        assert_eq!(parse_duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert!(parse_duration("10").is_err() && parse_duration("").is_err() && parse_duration("-1s").is_err());
        assert_eq!(parse_size("16MiB"), Ok(16 << 20));
        assert!(parse_size("16").is_err() && parse_size("16 parsecs").is_err());
    }
}
