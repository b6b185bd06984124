//! Which steps of a recording: `--step`.

use std::str::FromStr;

/// Steps as the report numbers them, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRange {
    pub first: u64,
    pub last: u64,
}

impl FromStr for StepRange {
    type Err = String;

    fn from_str(text: &str) -> Result<StepRange, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let number = |word: &str| word.parse().ok().filter(|number| *number > 0);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(StepRange { first, last }),
            (Some(_), Some(_)) => Err(format!("{last} comes before {first}")),
            _ => Err(format!("{text:?} is no step; write 7, or 7..9 for three of them")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_step_and_a_range_has_both_of_its_ends() {
        let range = |text: &str| text.parse::<StepRange>().map(|range| (range.first, range.last));
        assert_eq!((range("7"), range("7..9")), (Ok((7, 7)), Ok((7, 9))));
        assert_eq!(range("9..7").unwrap_err(), "7 comes before 9");
        for text in ["", "0", "7..", "..9", "-1", "1.5", "seven"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
