//! What `--fail-on` demands of a run, and whether it was so.

use crate::cli::parse_size;
use crate::model::memory::{ProcessReport, Report};
use crate::sink::quantity::{bytes, escaped};

const OTHER: &str = "hint: leak, or leak=100MiB; for failed calls: \
                     gpuscope run -o t.jsonl -- CMD; tail -n 1 t.jsonl | jq -e '.failures == []'";

/// A condition that makes a run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A process holds, or held at its end, more than `bytes` of device and pinned host memory.
    Leak { bytes: u64 },
}

impl Rule {
    /// The exit status when a rule matches.
    pub const STATUS: u8 = 3;

    /// `leak`, `leak=100MiB`.
    ///
    /// # Errors
    /// There is no such rule, or no such size; says which there are.
    pub fn parse(text: &str) -> Result<Rule, String> {
        match text.split_once('=') {
            None if text == "leak" => Ok(Rule::Leak { bytes: 0 }),
            Some(("leak", size)) => parse_size(size).map(|bytes| Rule::Leak { bytes }),
            _ => Err(format!("this version has no rule {text:?}\n{OTHER}")),
        }
    }

    /// What matches, one line for each process.
    pub fn matches(self, report: &Report) -> Vec<String> {
        let Rule::Leak { bytes: allowed } = self;
        let guilty = report.processes.iter().filter(|process| process.held_bytes() > allowed);
        guilty.map(words).collect()
    }
}

fn words(process: &ProcessReport) -> String {
    let (verb, when) = match process.ended_at {
        Some(_) => ("held", " at its end"),
        None => ("holds", ""),
    };
    format!(
        "--fail-on leak: {} {} {verb} {}{when}",
        escaped(&process.comm),
        process.pid,
        bytes(process.held_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_may_have_a_size() {
        assert_eq!(Rule::parse("leak"), Ok(Rule::Leak { bytes: 0 }));
        assert_eq!(Rule::parse("leak=1KiB"), Ok(Rule::Leak { bytes: 1024 }));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_is() {
        for text in ["error", "leak=5", "leak=", "leek", "", "leak=x"] {
            let words = Rule::parse(text).unwrap_err();
            assert!(words.contains("hint: leak") || words.contains("such as"), "{words}");
        }
    }
}
