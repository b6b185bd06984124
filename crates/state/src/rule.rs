//! What `--fail-on` demands of a run or of its recording, and whether it was so.
//!
//! One gate over one model: both are judged by the same [`Snapshot`].

use crate::findings;
use crate::model::memory::{Origin, Report};
use crate::model::snapshot::{Failure, Function, Holder, Snapshot, View};
use crate::text::parse::parse_size;
use crate::text::quantity::{bytes, count, escaped, plural};

/// The layers whose failures are those of CUDA.
const CUDA: [View; 2] = [View::Runtime, View::Driver];

/// A condition that makes a run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A process holds, or held at its end, more than `bytes` of device and pinned host memory.
    Leak { bytes: u64 },
    /// A call of CUDA failed; an answer such as "not ready" is no failure.
    Error,
    /// The driver reported a fault of a device, of whichever process.
    Xid,
    /// There were more than `most` launches, at the driver.
    Launches { most: u64 },
    /// Something is wrong: what this rule of findings looks for, or any.
    Finding { rule: Option<&'static str> },
}

const KNOWN: &str = "hint: error, xid, leak, leak=100MiB, launches>N, finding, or finding:NAME";

impl Rule {
    /// The exit status when a rule matches.
    pub const STATUS: u8 = 3;

    /// `leak`, `leak=100MiB`, `error`, `xid`, `launches>1000`, `finding`, `finding:alloc-churn`.
    ///
    /// # Errors
    /// There is no such rule, or no such size; says which there are.
    pub fn parse(text: &str) -> Result<Rule, String> {
        match text {
            "error" => Ok(Rule::Error),
            "xid" => Ok(Rule::Xid),
            "finding" | "finding:any" => Ok(Rule::Finding { rule: None }),
            _ => match (text.split_once("finding:"), text.split_once('>')) {
                (Some(("", name)), _) => finding(name),
                (_, Some(("launches", number))) => launches(number),
                _ => leak(text, KNOWN),
            },
        }
    }

    /// The same where memory alone is watched.
    ///
    /// # Errors
    /// As for [`Self::parse`].
    pub fn parse_leak(text: &str) -> Result<Rule, String> {
        match text {
            "error" | "xid" | "finding" => Err(format!(
                "only memory is watched here, so {text} cannot be told\n\
                 hint: leak, or leak=100MiB; gpuscope run and gpuscope trace have --fail-on {text}"
            )),
            _ => leak(text, "hint: leak, or leak=100MiB"),
        }
    }

    /// What matches, one line for each process, failure or fault.
    ///
    /// # Errors
    /// It cannot be told, and why.
    pub fn matches(self, of: &Snapshot) -> Result<Vec<String>, String> {
        match self {
            Rule::Leak { .. } => match &of.memory {
                Some(holders) => Ok(self.leaks(holders)),
                None => Err("--fail-on leak cannot be told: what processes held is not known".to_owned()),
            },
            Rule::Error => Ok(failures(of)),
            Rule::Xid => Ok(faults(of)),
            Rule::Launches { most } => Ok(too_many(of, most)),
            Rule::Finding { rule } => found(of, rule),
        }
    }

    /// The processes that hold too much.
    #[must_use]
    pub fn leaks(self, holders: &[Holder]) -> Vec<String> {
        let Rule::Leak { bytes: allowed } = self else {
            return Vec::new();
        };
        let guilty = holders.iter().filter(|holder| holder.held_bytes > allowed);
        guilty.map(words).collect()
    }
}

/// Who holds what.
#[must_use]
pub fn holders(report: &Report) -> Vec<Holder> {
    let processes = report.processes.iter();
    processes
        .map(|process| Holder {
            pid: process.pid,
            comm: process.comm.clone(),
            ended: process.ended_at.is_some(),
            late: process.origin == Origin::Late,
            held_bytes: process.held_bytes(),
        })
        .collect()
}

fn finding(name: &str) -> Result<Rule, String> {
    let known = findings::NAMES.iter().find(|known| **known == name);
    known
        .map(|rule| Rule::Finding { rule: Some(rule) })
        .ok_or_else(|| format!("there is no finding {name:?}\nhint: {}", findings::NAMES.join(", ")))
}

fn launches(number: &str) -> Result<Rule, String> {
    let most = number.trim().parse();
    most.map(|most| Rule::Launches { most })
        .map_err(|_| format!("{number:?} is no number\nhint: launches>N, such as launches>100000"))
}

fn too_many(of: &Snapshot, most: u64) -> Vec<String> {
    let launches = of.launches();
    let layer = launches.note().map_or_else(String::new, |note| format!(" ({note})"));
    let said = || {
        format!(
            "--fail-on launches>{most}: there were {}{layer}",
            count(launches.number)
        )
    };
    (launches.number > most).then(said).into_iter().collect()
}

fn found(of: &Snapshot, rule: Option<&str>) -> Result<Vec<String>, String> {
    let Some(findings) = &of.findings else {
        let why = of.no_findings.as_deref().unwrap_or("nobody looked for what is wrong");
        return Err(format!("--fail-on finding cannot be told: {why}"));
    };
    let guilty = findings
        .iter()
        .filter(|finding| rule.is_none_or(|rule| finding.rule == rule));
    Ok(guilty
        .map(|finding| format!("--fail-on finding:{}: {}", finding.rule, escaped(&finding.what)))
        .collect())
}

fn leak(text: &str, others: &str) -> Result<Rule, String> {
    match text.split_once('=') {
        None if text == "leak" => Ok(Rule::Leak { bytes: 0 }),
        Some(("leak", size)) => parse_size(size).map(|bytes| Rule::Leak { bytes }),
        _ => Err(format!("there is no rule {text:?}\n{others}")),
    }
}

fn words(holder: &Holder) -> String {
    let (verb, when) = match holder.ended {
        true => ("held", " at its end"),
        false => ("holds", ""),
    };
    format!(
        "--fail-on leak: {} {} {verb} {}{when}",
        escaped(&holder.comm),
        holder.pid,
        bytes(holder.held_bytes)
    )
}

fn failures(of: &Snapshot) -> Vec<String> {
    let is_cuda = |function: &&Function| CUDA.iter().any(|view| view.name() == function.layer);
    let guilty = of.functions.iter().filter(is_cuda);
    guilty.filter_map(|function| failed(function, &of.failures)).collect()
}

fn failed(function: &Function, failures: &[Failure]) -> Option<String> {
    let errors = function.errors.filter(|errors| *errors > 0)?;
    let codes = failures.iter().filter(|failure| failure.name == function.name);
    let codes: Vec<String> = codes
        .map(|failure| format!("{} ×{}", failure.error, failure.count))
        .collect();
    Some(format!(
        "--fail-on error: {} of {} failed ({})",
        plural(errors, "call"),
        escaped(&function.name),
        escaped(&codes.join(", "))
    ))
}

fn faults(of: &Snapshot) -> Vec<String> {
    let said = of.xids.iter().map(|fault| {
        let process = fault.pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
        format!(
            "--fail-on xid: {} of {}{process} ×{}",
            escaped(&fault.name),
            escaped(&fault.pci),
            fault.count
        )
    });
    let more = (of.more_xids > 0).then(|| format!("--fail-on xid: {} more of other kinds", of.more_xids));
    said.chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::snapshot::{Finding, Xid};

    #[test]
    fn a_leak_may_have_a_size() {
        assert_eq!(Rule::parse("leak"), Ok(Rule::Leak { bytes: 0 }));
        assert_eq!(Rule::parse("leak=1KiB"), Ok(Rule::Leak { bytes: 1024 }));
        assert_eq!(Rule::parse_leak("leak=1KiB"), Ok(Rule::Leak { bytes: 1024 }));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_is() {
        for text in ["errors", "leak=5", "leak=", "leek", "", "leak=x"] {
            let words = Rule::parse(text).unwrap_err();
            assert!(
                words.contains("hint: error, xid, leak") || words.contains("such as"),
                "{words}"
            );
        }
        assert!(Rule::parse_leak("xid").unwrap_err().contains("gpuscope run"));
    }

    fn failed(layer: &str, name: &str, errors: u64) -> Snapshot {
        Snapshot {
            functions: vec![Function {
                layer: layer.to_owned(),
                name: name.to_owned(),
                category: "launch".to_owned(),
                calls: 9,
                errors: Some(errors),
                ..Function::default()
            }],
            failures: vec![Failure {
                name: name.to_owned(),
                error: "cudaErrorInvalidValue".to_owned(),
                count: errors,
            }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_failure_is_one_of_cuda() {
        let matches = |layer, errors| Rule::Error.matches(&failed(layer, "cudaFree", errors)).unwrap();
        let said = "--fail-on error: 2 calls of cudaFree failed (cudaErrorInvalidValue ×2)";
        assert_eq!(matches("runtime", 2), [said]);
        assert_eq!(matches("driver", 2), [said]);
        assert!(matches("runtime", 0).is_empty() && matches("kernel", 2).is_empty());
    }

    #[test]
    fn launches_are_the_drivers_or_where_it_saw_fewer_the_runtimes() {
        let rule = Rule::parse("launches>8").unwrap();
        let of = |layer| rule.matches(&failed(layer, "cuLaunchKernel", 0)).unwrap();
        assert_eq!(of("driver"), ["--fail-on launches>8: there were 9"]);
        let said = "--fail-on launches>8: there were 9 (runtime layer; none in the driver's)";
        assert_eq!(of("runtime"), [said]);
        let few = Rule::Launches { most: 9 }.matches(&failed("driver", "cuLaunchKernel", 0));
        assert_eq!(few, Ok(Vec::new()));
        assert!(Rule::parse("launches>many").is_err());
    }

    #[test]
    fn a_finding_is_of_one_rule_or_of_any() {
        let found = Snapshot {
            findings: Some(vec![Finding {
                rule: "late-jit".to_owned(),
                what: "it was late".to_owned(),
                ..Finding::default()
            }]),
            ..Snapshot::default()
        };
        let matches = |text: &str| Rule::parse(text).unwrap().matches(&found).unwrap();
        for text in ["finding", "finding:any", "finding:late-jit"] {
            assert_eq!(matches(text), ["--fail-on finding:late-jit: it was late"]);
        }
        assert!(matches("finding:alloc-churn").is_empty());
        assert!(Rule::parse("finding:late").unwrap_err().contains("hint: alloc-churn, "));
    }

    #[test]
    fn what_was_not_looked_for_cannot_be_told() {
        let silent = Snapshot {
            no_findings: Some("-q".to_owned()),
            ..Snapshot::default()
        };
        let why = |rule: Rule| rule.matches(&silent).unwrap_err();
        assert_eq!(
            why(Rule::Finding { rule: None }),
            "--fail-on finding cannot be told: -q"
        );
        assert!(why(Rule::Leak { bytes: 0 }).contains("what processes held is not known"));
    }

    #[test]
    fn faults_beyond_those_that_are_told_apart_count_too() {
        let mut faulty = Snapshot {
            more_xids: 3,
            ..Snapshot::default()
        };
        let more = "--fail-on xid: 3 more of other kinds";
        assert_eq!(Rule::Xid.matches(&faulty).unwrap(), [more]);
        faulty.xids.push(Xid {
            name: "Xid 79".to_owned(),
            pci: "0000:17:00".to_owned(),
            pid: Some(7),
            count: 2,
        });
        let said = Rule::Xid.matches(&faulty).unwrap();
        assert_eq!(said, ["--fail-on xid: Xid 79 of 0000:17:00, process 7 ×2", more]);
        assert_eq!(Rule::Xid.matches(&Snapshot::default()), Ok(Vec::new()));
    }
}
