//! What `--fail-on` demands of a recording, or of what changed since another.

use super::Report;
use super::diff::Diff;
use super::words::percent;
use crate::rule::Rule;

/// What makes a command end with status 3.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gate {
    /// Wall time, time of the same calls or peak of memory grew by more than `percent`.
    Regression { percent: f64 },
    /// What is demanded of a run as well.
    OfRun(Rule),
}

impl Gate {
    /// As [`Rule::parse`]; `regression>10%` where `changes` are looked at.
    ///
    /// # Errors
    /// There is no such rule; says which there are.
    pub fn parse(text: &str, changes: bool) -> Result<Gate, String> {
        let run = Rule::parse(text).map(Gate::OfRun);
        match (text.split_once('>'), changes) {
            (Some(("regression", limit)), true) => parse_percent(limit).map(|percent| Gate::Regression { percent }),
            (Some(("regression", _)), false) => Err(format!(
                "{text:?} is about two recordings\nhint: gpuscope diff A B --fail-on {text:?}"
            )),
            (None, true) if text == "regression" => Err("by how much?\nhint: regression>10%".to_owned()),
            (_, true) => run.map_err(|why| format!("{why}; of two recordings regression>10%, too")),
            (_, false) => run,
        }
    }

    /// What matches in `report`, one line each.
    ///
    /// # Errors
    /// It cannot be told from this recording, and why.
    pub fn matches(&self, report: &Report) -> Result<Vec<String>, String> {
        let Gate::OfRun(condition) = self else {
            return Ok(Vec::new());
        };
        let matches = condition.matches(&report.totals)?;
        match &report.by_rows {
            Some(rows) if matches.is_empty() => Ok(condition.matches(rows).unwrap_or_default()),
            _ => Ok(matches),
        }
    }

    /// What has become worse by more than is allowed, one line each.
    #[must_use]
    pub fn regressions(&self, diff: &Diff) -> Vec<String> {
        let Gate::Regression { percent: allowed } = self else {
            return Vec::new();
        };
        let worse = diff.measures.iter().filter(|measure| measure.judged);
        let worse = worse.filter_map(|measure| Some((measure, measure.change()?)));
        worse
            .filter(|(_, change)| *change > allowed / 100.0)
            .map(|(measure, change)| {
                let [before, after] = measure.cells().map(|cell| cell.words());
                format!(
                    "--fail-on regression>{allowed}%: {} grew by {}, from {before} to {after}",
                    measure.name,
                    percent(change)
                )
            })
            .collect()
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text
        .trim()
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("{text:?} is no percentage; write such as regression>10%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        let read = |text| Gate::parse(text, true);
        assert_eq!(read("regression>10%"), Ok(Gate::Regression { percent: 10.0 }));
        assert_eq!(read("error"), Ok(Gate::OfRun(Rule::Error)));
        assert_eq!(read("launches>1000"), Ok(Gate::OfRun(Rule::Launches { most: 1000 })));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_is() {
        for text in [
            "",
            "leek",
            "leak=5",
            "regression>10",
            "regression",
            "regression>-1%",
            "launches>many",
            "x>1",
        ] {
            let words = Gate::parse(text, true).unwrap_err();
            assert!(words.contains("hint: ") || words.contains("such as"), "{words}");
        }
        let words = Gate::parse("regression>10%", false).unwrap_err();
        assert!(words.contains("gpuscope diff A B"), "{words}");
    }
}
