//! What `--fail-on` has found at the end of a trace, and the exit status that follows.
//!
//! What a rule demands is [`crate::rule`]'s business.

use crate::model::memory::Report;
use crate::model::snapshot::Snapshot;
use crate::model::summary::Summary;
use crate::output::say;
use crate::rule::{Rule, holders};
use crate::sink::summary::to_json;
use std::process::ExitCode;

/// What the rules find in `summary`, as it is written: what its recording will say. Of what cannot be told that.
pub(crate) fn matches(rules: &[Rule], summary: &Summary) -> Vec<String> {
    if rules.is_empty() {
        return Vec::new();
    }
    let judge = |snapshot: &Snapshot, rule: &Rule| rule.matches(snapshot).unwrap_or_else(|why| vec![why]);
    match Snapshot::read(&to_json(summary)) {
        Ok(snapshot) => rules.iter().flat_map(|rule| judge(&snapshot, rule)).collect(),
        Err(why) => vec![format!(
            "--fail-on cannot be told: the summary is not as it should be: {why}"
        )],
    }
}

/// What a rule about memory finds in `report`.
pub(crate) fn leaks(rule: Option<Rule>, report: &Report) -> Vec<String> {
    rule.map(|rule| rule.leaks(&holders(report))).unwrap_or_default()
}

/// Says what a rule has found.
pub(crate) fn say_matches(matches: &[String]) {
    for words in matches {
        say(format_args!("gpuscope: {words}"));
    }
}

/// The exit status after a trace of running processes that went well, after what a rule has found was said.
pub(crate) fn status(matches: &[String]) -> ExitCode {
    say_matches(matches);
    match matches {
        [] => ExitCode::SUCCESS,
        _ => ExitCode::from(Rule::STATUS),
    }
}
