//! What changed between two recordings.

mod engines;
mod functions;
mod json;
mod markdown;
mod measures;
mod tables;
mod text;
mod told;

pub(crate) use functions::FunctionChange;
pub use json::to_line;
pub use markdown::markdown;
pub(crate) use measures::{Measure, Unit};
pub use text::page;

use super::{Report, words};
use crate::model::finding::Finding;
use crate::section::{Chapter, Section};
use functions::functions;
use measures::measures;

/// What is less than this part of what it was, or of the wall time, has not changed.
const NOTICED: f64 = 0.01;

/// What changed between two recordings.
#[derive(Debug, Clone)]
pub struct Diff<'a> {
    pub before: &'a Report,
    pub after: &'a Report,
    /// What does not compare, as sentences.
    pub notes: Vec<String>,
    /// Most changed first.
    pub measures: Vec<Measure>,
    /// Most time gained or lost first.
    pub functions: Vec<FunctionChange>,
    /// Of the second recording alone, most expensive first.
    pub appeared: Vec<&'a Finding>,
    /// Of the first alone.
    pub gone: Vec<&'a Finding>,
    /// Of both: before, after.
    pub stayed: Vec<(&'a Finding, &'a Finding)>,
}

impl Diff<'_> {
    /// Why there is none of either.
    fn no_findings(&self) -> &'static str {
        let judged = [self.before, self.after].map(|report| report.not_looked_for.is_none());
        match judged {
            [true, true] => "no findings in either",
            [false, false] => "not looked for in either",
            _ => "looked for in one of them alone",
        }
    }
}

fn ratio(before: f64, after: f64) -> Option<f64> {
    (before > 0.0 && after.is_finite()).then(|| after / before - 1.0)
}

/// Compares.
#[must_use]
pub fn diff<'a>(before: &'a Report, after: &'a Report) -> Diff<'a> {
    let mut measures = measures(before, after);
    measures.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    let unjudged = unjudged(before, after);
    // of one that nobody judged none has gone, and in one after it none is new
    let both = |report: &'a Report| report.findings.iter().filter(|_| unjudged.is_none());
    let mut gone: Vec<&Finding> = both(before).collect();
    let mut appeared: Vec<&Finding> = both(after).collect();
    let mut stayed = paired(&mut gone, &mut appeared, |a, b| words::place(a) == words::place(b));
    // stacks were taken of one of them alone: it may well be the same line
    let one_is_placeless = |a: &Finding, b: &Finding| words::place(a).is_none() || words::place(b).is_none();
    stayed.extend(paired(&mut gone, &mut appeared, one_is_placeless));
    stayed.sort_by_key(|(_, after)| (!after.grave, std::cmp::Reverse(after.cost_ns)));
    Diff {
        functions: functions(before, after),
        notes: engines::note(before, after).into_iter().chain(unjudged).collect(),
        before,
        after,
        measures,
        appeared,
        gone,
        stayed,
    }
}

/// Of which nobody looked for findings, where the other one was looked at.
fn unjudged(before: &Report, after: &Report) -> Option<String> {
    let (which, why) = match (&before.not_looked_for, &after.not_looked_for) {
        (Some(why), None) => ("first", why),
        (None, Some(why)) => ("second", why),
        _ => return None,
    };
    Some(format!(
        "findings do not compare, as none were looked for in the {which} ({why}); nor does what follows from calls that it lacks"
    ))
}

/// Takes findings of one rule out of both that are `same`.
fn paired<'a>(
    before: &mut Vec<&'a Finding>,
    after: &mut Vec<&'a Finding>,
    same: impl Fn(&Finding, &Finding) -> bool,
) -> Vec<(&'a Finding, &'a Finding)> {
    let mut pairs = Vec::new();
    after.retain(|finding| {
        let old = before
            .iter()
            .position(|old| old.rule == finding.rule && same(old, finding));
        old.is_none_or(|old| {
            pairs.push((before.remove(old), *finding));
            false
        })
    });
    pairs
}

/// The tables of it.
fn chapter(diff: &Diff<'_>) -> Chapter {
    let sections = [tables::measures(diff), tables::functions(diff)];
    Chapter {
        id: "changes",
        name: "Changes",
        title: "What changed".to_owned(),
        sections: sections.into_iter().filter(Section::says).collect(),
    }
}
