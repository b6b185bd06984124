//! What is wrong, as text and as JSON.

use super::outside;
use crate::frame::json::frames_of;
use crate::frame::lines::{frame_lines, frame_place};
use crate::model::finding::{Diagnosis, Finding, Moment, Run};
use crate::section::words::percent;
use crate::text::quantity::{count, duration, escaped};
use serde_json::{Value, json};
use std::fmt::Write;

/// Findings that a summary shows.
const TOP: usize = 3;
/// Lines of a call site.
const SITE: usize = 3;

/// What findings do not explain; null: they do, or there are none to do so.
pub(crate) fn unexplained_json(diagnosis: &Diagnosis) -> Value {
    match diagnosis {
        Diagnosis::Reported(report) => json!(report.run.unexplained(&report.findings)),
        _ => Value::Null,
    }
}

/// `findings`, and why there is no such array.
pub(crate) fn to_json(diagnosis: &Diagnosis) -> (Value, Value) {
    match diagnosis {
        Diagnosis::Reported(report) => {
            let all = report.findings.iter().map(|finding| finding_json(finding, &report.run));
            (all.collect(), Value::Null)
        }
        Diagnosis::NotLookedFor(why) => (Value::Null, json!(why)),
        Diagnosis::Unasked => (Value::Null, Value::Null),
    }
}

/// One finding as an object.
pub fn finding_json(finding: &Finding, run: &Run) -> Value {
    json!({
        "rule": finding.rule,
        "title": finding.title,
        "what": finding.what,
        "cost_ns": finding.cost_ns,
        "share": finding.share(run),
        "grave": finding.grave,
        "certainty": finding.certainty.name(),
        "count": finding.count,
        "worst": finding.moments.iter().map(moment_json).collect::<Vec<Value>>(),
        "where": stack(finding).first(),
        "stack": finding.site.as_deref().and_then(|stack| serde_json::from_str::<Value>(stack).ok()),
        "places": outside::places_json(&finding.places),
        "do": finding.cure,
        "thresholds": finding.thresholds,
        "weakened": finding.weakened,
    })
}

fn moment_json(moment: &Moment) -> Value {
    json!({"at_ns": moment.at, "ns": moment.ns, "pid": moment.pid, "tid": moment.tid, "name": moment.name})
}

/// The first findings, for the end of a summary.
pub fn to_text(diagnosis: &Diagnosis) -> String {
    let report = match diagnosis {
        Diagnosis::Reported(report) => report,
        Diagnosis::NotLookedFor(why) => return format!("findings: not looked for: {}\n", escaped(why)),
        Diagnosis::Unasked => return String::new(),
    };
    let unexplained = report.run.unexplained(&report.findings);
    let unexplained = unexplained.map_or_else(String::new, |what| format!("not explained: {}\n", escaped(&what)));
    if report.findings.is_empty() {
        return match report.run.weakness(|_| true) {
            Some(_) => format!("findings: none in the calls that have rows; others were lost\n{unexplained}"),
            None => format!("findings: none\n{unexplained}"),
        };
    }
    let mut out = match report.run.steady_words() {
        Some(words) => format!("\nfindings, {words}\n"),
        None => "\nfindings\n".to_owned(),
    };
    for (index, finding) in report.findings.iter().take(TOP).enumerate() {
        finding_text(index + 1, finding, &report.run, &mut out);
    }
    let rest = report.findings.len().saturating_sub(TOP);
    if rest > 0 {
        let names: Vec<&str> = report.findings[TOP..].iter().map(|finding| finding.rule).collect();
        let _ = writeln!(out, "  {rest} more: {} (--summary json has all)", names.join(", "));
    }
    out + &unexplained
}

/// What happens and where, before all else.
pub(crate) fn headline(finding: &Finding) -> String {
    escaped(&finding.title) + &at(finding)
}

/// `, at train.py:17 step`, escaped where frames are named; empty: it is not known.
pub(crate) fn at(finding: &Finding) -> String {
    place(finding).map_or_else(String::new, |place| format!(", at {place}"))
}

/// The line of the program that a finding is about.
pub(crate) fn place(finding: &Finding) -> Option<String> {
    finding.site.as_deref().and_then(|stack| frame_place(&frames_of(stack)))
}

/// All lines of its stack.
pub(crate) fn stack(finding: &Finding) -> Vec<String> {
    let stack = finding.site.as_deref();
    stack.map(|stack| frame_lines(&frames_of(stack))).unwrap_or_default()
}

/// One finding, in some lines.
pub(crate) fn finding_text(number: usize, finding: &Finding, run: &Run, out: &mut String) {
    let _ = writeln!(out, "  {number}. {}", headline(finding));
    let _ = writeln!(out, "     {}", cost(finding, run));
    let _ = writeln!(out, "     {}", escaped(&finding.what));
    if let Some(worst) = moments(finding) {
        let _ = writeln!(out, "     worst: {worst}");
    }
    for (index, line) in stack(finding).iter().take(SITE).enumerate() {
        let before = if index == 0 { "where:" } else { "      " };
        let _ = writeln!(out, "     {before} {line}");
    }
    let _ = writeln!(out, "     do: {}", escaped(&finding.cure));
    let _ = writeln!(out, "     rule: {}", escaped(&finding.thresholds));
    if let Some(weakened) = &finding.weakened {
        let _ = writeln!(out, "     note: {}", escaped(weakened));
    }
}

/// `12.3 % of the time, 1.20 s (alloc-churn, measured)`; what costs no time has no share of it.
pub(crate) fn cost(finding: &Finding, run: &Run) -> String {
    let by = format!("{}, {}", finding.rule, finding.certainty.name());
    match finding.cost_ns {
        0 => by,
        ns => format!("{} of the time, {} ({by})", percent(finding.share(run)), duration(ns)),
    }
}

/// When, how long, and what by whom.
fn moments(finding: &Finding) -> Option<String> {
    let first = finding.moments.first()?;
    let one = |moment: &Moment| {
        let length = if moment.ns > 0 {
            format!(" ({})", duration(moment.ns))
        } else {
            String::new()
        };
        format!("{:+.6} s{length}", moment.at as f64 / 1e9)
    };
    let all: Vec<String> = finding.moments.iter().map(one).collect();
    let name = if first.name.is_empty() { "idle" } else { &first.name };
    let of = if finding.count > 1 {
        format!(" of {}", count(finding.count))
    } else {
        String::new()
    };
    // what a device did is of no thread
    let thread = match first.tid {
        0 => String::new(),
        tid => format!("/{tid}"),
    };
    Some(format!(
        "{} {}{thread} at {}{of}",
        escaped(name),
        first.pid,
        all.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::Report;
    use crate::model::work::Certainty;

    fn finding(rule: &'static str) -> Finding {
        Finding {
            rule,
            title: "Memory is given back and taken again 50 times".to_owned(),
            what: "memory was given back and taken again 50 times\u{1b}[2J".to_owned(),
            cost_ns: 250_000_000,
            grave: false,
            certainty: Certainty::Measured,
            count: 50,
            moments: vec![Moment {
                at: 1_500_000,
                ns: 6_000_000,
                pid: 7,
                tid: 8,
                name: "cuMemAlloc_v2".to_owned(),
            }],
            site: Some(r#"[{"function":"step","file":"/x/train.py","line":17,"language":"python"}]"#.to_owned()),
            cure: "keep it".to_owned(),
            thresholds: "10 times".to_owned(),
            weakened: None,
            places: Vec::new(),
        }
    }

    fn reported(findings: Vec<Finding>) -> Diagnosis {
        let wall_ns = 1_000_000_000;
        Diagnosis::Reported(Report {
            run: Run {
                wall_ns,
                steady_ns: wall_ns,
                ..Run::default()
            },
            findings,
        })
    }

    #[test]
    fn a_finding_says_its_share_its_moments_its_line_and_its_cure() {
        let text = to_text(&reported(vec![finding("alloc-churn")]));
        let expected = "\nfindings\n  1. Memory is given back and taken again 50 times, at train.py:17 step\n     \
                        25.0 % of the time, 250.0 ms (alloc-churn, measured)\n     \
                        memory was given back and taken again 50 times\\u{1b}[2J\n     \
                        worst: cuMemAlloc_v2 7/8 at +0.001500 s (6.0 ms) of 50\n     \
                        where: train.py:17 step\n     do: keep it\n     rule: 10 times\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn three_are_shown_and_the_others_named() {
        let text = to_text(&reported(["a", "b", "c", "d", "e"].map(finding).to_vec()));
        assert!(text.contains("  3. ") && text.contains("(c, measured)"), "{text}");
        assert!(!text.contains("  4. ") && !text.contains("(d, "), "{text}");
        assert!(text.ends_with("  2 more: d, e (--summary json has all)\n"), "{text}");
    }

    #[test]
    fn none_and_not_looked_for_are_two_things() {
        assert_eq!(to_text(&reported(Vec::new())), "findings: none\n");
        let not_looked_for = Diagnosis::NotLookedFor("-q".to_owned());
        assert_eq!(to_text(&not_looked_for), "findings: not looked for: -q\n");
        assert_eq!(to_json(&not_looked_for), (Value::Null, json!("-q")));
        assert_eq!(to_json(&reported(Vec::new())), (json!([]), Value::Null));
    }

    #[test]
    fn json_has_the_stack_and_the_line_in_it() {
        let (findings, _) = to_json(&reported(vec![finding("alloc-churn")]));
        assert_eq!(findings[0]["where"], "train.py:17 step");
        assert_eq!(findings[0]["stack"][0]["line"], 17);
        assert_eq!(findings[0]["share"], 0.25);
        assert_eq!(findings[0]["worst"][0]["at_ns"], 1_500_000);
    }
}
