//! What `--fail-on` demands of a recording, or of what changed since another.

use super::diff::Diff;
use super::words::percent;
use super::{Report, Xid};
use crate::findings::Finding;
use crate::rule::Rule;
use crate::sink::quantity::{bytes, count, escaped};

/// A condition that makes a command end with status 3.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// Wall time, time of the same calls or peak of memory grew by more than `percent`.
    Regression { percent: f64 },
    /// What is demanded of a run as well.
    OfRun(Rule),
}

impl Demand {
    /// As [`Rule::parse`]; `regression>10%` where `changes` are looked at.
    ///
    /// # Errors
    /// There is no such rule; says which there are.
    pub fn parse(text: &str, changes: bool) -> Result<Demand, String> {
        match (text.split_once('>'), changes) {
            (Some(("regression", limit)), true) => parse_percent(limit).map(|percent| Demand::Regression { percent }),
            (Some(("regression", _)), false) => Err(format!(
                "{text:?} is about two recordings\nhint: gpuscope diff A B --fail-on {text:?}"
            )),
            _ => Rule::parse(text).map(Demand::OfRun),
        }
    }

    /// What matches in `report`, one line each.
    ///
    /// # Errors
    /// It cannot be told from this recording, and why.
    pub fn matches(&self, report: &Report) -> Result<Vec<String>, String> {
        let Demand::OfRun(rule) = self else {
            return Ok(Vec::new());
        };
        let lines = match *rule {
            Rule::Error => errors(report),
            Rule::Leak { bytes } => return leaks(report, bytes),
            Rule::Xid => report.xids.iter().map(fault).collect(),
            Rule::Launches { most } => {
                let launches = report.launches();
                let words = || format!("launches>{}: there were {}", count(most), count(launches));
                (launches > most).then(words).into_iter().collect()
            }
            Rule::Finding { rule } => return findings(report, rule),
        };
        Ok(lines.into_iter().map(|line| format!("--fail-on {line}")).collect())
    }

    /// What has become worse by more than is allowed, one line each.
    #[must_use]
    pub fn regressions(&self, diff: &Diff) -> Vec<String> {
        let Demand::Regression { percent: allowed } = self else {
            return Vec::new();
        };
        let worse = diff.measures.iter().filter(|measure| measure.judged);
        let worse = worse.filter_map(|measure| Some((measure, measure.change()?)));
        worse
            .filter(|(_, change)| *change > allowed / 100.0)
            .map(|(measure, change)| {
                let (before, after) = measure.words();
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

fn findings(report: &Report, rule: Option<&str>) -> Result<Vec<String>, String> {
    if let Some(why) = &report.untold {
        return Err(format!("--fail-on finding cannot be told: {why}"));
    }
    let wanted = |finding: &&Finding| rule.is_none_or(|rule| rule == finding.rule);
    let line = |finding: &Finding| format!("--fail-on finding:{}: {}", finding.rule, escaped(&finding.what));
    Ok(report.findings.iter().filter(wanted).map(line).collect())
}

fn fault(xid: &Xid) -> String {
    let word = |key: &str| xid.fields.get(key).and_then(|value| value.as_str()).unwrap_or("?");
    format!("xid: {} of {}", escaped(word("name")), escaped(word("pci")))
}

fn errors(report: &Report) -> Vec<String> {
    let cuda = report
        .cuda()
        .map(|layer| layer.functions.as_slice())
        .unwrap_or_default();
    let is_cuda = |name: &str| cuda.iter().any(|function| function.name == name);
    report
        .failures
        .iter()
        .filter(|failure| is_cuda(&failure.name))
        .map(|failure| {
            format!(
                "error: {} from {}, {} times",
                escaped(&failure.error),
                escaped(&failure.name),
                count(failure.count)
            )
        })
        .collect()
}

fn leaks(report: &Report, allowed: u64) -> Result<Vec<String>, String> {
    let line = |comm: &str, pid: u64, held: u64| {
        format!(
            "--fail-on leak: {} {pid} held {} at its end",
            escaped(comm),
            bytes(held)
        )
    };
    let told = report.exact.as_ref().and_then(|exact| exact["memory"].as_array());
    if let Some(told) = told.filter(|told| !told.is_empty()) {
        let all = told.iter().map(|process| {
            let number = |key: &str| process[key].as_u64().unwrap_or(0);
            (
                process["comm"].as_str().unwrap_or("?"),
                number("pid"),
                number("held_bytes"),
            )
        });
        return Ok(all
            .filter(|one| one.2 > allowed)
            .map(|(comm, pid, held)| line(comm, pid, held))
            .collect());
    }
    let memory = &report.memory;
    if memory.processes.is_empty() && memory.allocations > 0 {
        return Err("--fail-on leak: the recording does not say what processes held".to_owned());
    }
    let comm = |pid: u32| report.processes.iter().find(|process| process.pid == pid);
    let all = memory.processes.iter().filter(|process| process.last_bytes > allowed);
    Ok(all
        .map(|held| {
            line(
                comm(held.pid).map_or("?", |process| &process.comm),
                held.pid.into(),
                held.last_bytes,
            )
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        let read = |text| Demand::parse(text, true);
        assert_eq!(read("regression>10%"), Ok(Demand::Regression { percent: 10.0 }));
        assert_eq!(read("error"), Ok(Demand::OfRun(Rule::Error)));
        assert_eq!(read("launches>1000"), Ok(Demand::OfRun(Rule::Launches { most: 1000 })));
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
            let words = Demand::parse(text, true).unwrap_err();
            assert!(words.contains("hint: ") || words.contains("such as"), "{words}");
        }
        let words = Demand::parse("regression>10%", false).unwrap_err();
        assert!(words.contains("gpuscope diff A B"), "{words}");
    }
}
