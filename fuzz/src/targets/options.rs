//! Durations, sizes, filters and layers of the command line.

use gpuscope::filter::Filter;
use gpuscope::text::parse::{parse_duration, parse_size};

pub fn run(text: &str) {
    if text.parse::<u64>().is_ok() {
        assert!(parse_duration(text).is_err() && parse_size(text).is_err());
    }
    if let Ok(size) = parse_size(text) {
        assert!(size < 1 << 63);
    }
    let (rules, layers) = text.split_once('\n').unwrap_or((text, "all"));
    let rules: Vec<String> = rules.split(' ').map(str::to_owned).collect();
    if let Err(error) = Filter::parse(&rules, &[layers.to_owned()]) {
        assert!(error.to_string().contains("hint: "), "{error}");
    }
}
