//! What `--fail-on` demands of a run, and whether it was so.

use crate::catalog::{Class, Layer};
use crate::cli::parse_size;
use crate::findings::{self, Diagnosis};
use crate::model::memory::{ProcessReport, Report};
use crate::model::summary::{Function, Summary};
use crate::model::xid;
use crate::sink::quantity::{bytes, count, escaped};

/// The layers whose failures are those of CUDA.
const CUDA: [Layer; 2] = [Layer::Runtime, Layer::Driver];

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
    #[must_use]
    pub fn matches(self, summary: &Summary) -> Vec<String> {
        match self {
            Rule::Leak { .. } => self.leaks(&summary.memory),
            Rule::Error => failures(summary),
            Rule::Xid => faults(summary),
            Rule::Launches { most } => too_many(summary, most),
            Rule::Finding { rule } => found(summary, rule),
        }
    }

    /// The processes that hold too much.
    #[must_use]
    pub fn leaks(self, report: &Report) -> Vec<String> {
        let Rule::Leak { bytes: allowed } = self else {
            return Vec::new();
        };
        let guilty = report.processes.iter().filter(|process| process.held_bytes() > allowed);
        guilty.map(words).collect()
    }
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

fn too_many(summary: &Summary, most: u64) -> Vec<String> {
    let of_driver = |function: &&Function| (function.layer, function.class) == (Layer::Driver, Class::Launch);
    let functions = summary.functions.iter().filter(of_driver);
    let launches: u64 = functions
        .map(|function| function.calls.saturating_sub(function.errors))
        .sum();
    let said = format!("--fail-on launches>{most}: there were {}", count(launches));
    (launches > most).then_some(said).into_iter().collect()
}

fn found(summary: &Summary, rule: Option<&str>) -> Vec<String> {
    let findings = match &summary.findings {
        Diagnosis::Told(report) => report.findings.as_slice(),
        Diagnosis::Untold(_) | Diagnosis::Unasked => &[],
    };
    let guilty = findings
        .iter()
        .filter(|finding| rule.is_none_or(|rule| finding.rule == rule));
    guilty
        .map(|finding| format!("--fail-on finding:{}: {}", finding.rule, escaped(&finding.what)))
        .collect()
}

fn leak(text: &str, others: &str) -> Result<Rule, String> {
    match text.split_once('=') {
        None if text == "leak" => Ok(Rule::Leak { bytes: 0 }),
        Some(("leak", size)) => parse_size(size).map(|bytes| Rule::Leak { bytes }),
        _ => Err(format!("there is no rule {text:?}\n{others}")),
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

fn failures(summary: &Summary) -> Vec<String> {
    let guilty = summary
        .functions
        .iter()
        .filter(|function| CUDA.contains(&function.layer));
    let guilty = guilty.filter(|function| function.errors > 0);
    let said = guilty.map(|function| {
        let codes = summary
            .failures
            .iter()
            .filter(|failure| failure.function == function.name);
        let codes: Vec<String> = codes
            .map(|failure| format!("{} ×{}", failure.error, failure.count))
            .collect();
        let calls = if function.errors == 1 {
            "1 call".to_owned()
        } else {
            format!("{} calls", function.errors)
        };
        format!(
            "--fail-on error: {calls} of {} failed ({})",
            function.name,
            escaped(&codes.join(", "))
        )
    });
    said.collect()
}

fn faults(summary: &Summary) -> Vec<String> {
    let said = summary.xids.iter().map(|faults| {
        let xid = &faults.last.xid;
        let process = xid.pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
        let title = xid::title(xid);
        format!(
            "--fail-on xid: {title} of {}{process} ×{}",
            escaped(&xid.pci),
            faults.count
        )
    });
    let more = (summary.more_xids > 0).then(|| format!("--fail-on xid: {} more of other kinds", summary.more_xids));
    said.chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Finding, Report};
    use crate::model::summary::Failure;
    use crate::model::work::Certainty;

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

    fn failed(layer: Layer, name: &str, errors: u64) -> Summary {
        let function = Function {
            layer,
            label: String::new(),
            name: name.to_owned(),
            class: Class::Other,
            calls: 9,
            errors,
            total_ns: 0,
            max_ns: 0,
            bytes: 0,
            p50_ns: 0,
            p99_ns: 0,
            unfinished: 0,
            lost: 0,
            without_args: 0,
            timed: true,
            driver: None,
        };
        let failure = Failure {
            function: name.to_owned(),
            error: "cudaErrorInvalidValue".to_owned(),
            code: 1,
            count: errors,
        };
        Summary {
            functions: vec![function],
            failures: vec![failure],
            ..Summary::default()
        }
    }

    #[test]
    fn a_failure_is_one_of_cuda() {
        assert_eq!(
            Rule::Error.matches(&failed(Layer::Runtime, "cudaFree", 2)),
            ["--fail-on error: 2 calls of cudaFree failed (cudaErrorInvalidValue ×2)"]
        );
        assert!(Rule::Error.matches(&failed(Layer::Runtime, "cudaFree", 0)).is_empty());
        assert!(Rule::Error.matches(&failed(Layer::Kernel, "open", 2)).is_empty());
    }

    #[test]
    fn launches_of_the_driver_are_compared() {
        let rule = Rule::parse("launches>8").unwrap();
        let of = |layer| {
            let mut summary = failed(layer, "cuLaunchKernel", 0);
            summary.functions[0].class = Class::Launch;
            rule.matches(&summary)
        };
        assert_eq!(of(Layer::Driver), ["--fail-on launches>8: there were 9"]);
        assert!(of(Layer::Runtime).is_empty());
        assert!(
            Rule::Launches { most: 9 }
                .matches(&failed(Layer::Driver, "cuLaunchKernel", 0))
                .is_empty()
        );
        assert!(Rule::parse("launches>many").is_err());
    }

    #[test]
    fn a_finding_is_of_one_rule_or_of_any() {
        let finding = Finding {
            rule: "late-jit",
            what: "it was late".to_owned(),
            cost_ns: 1,
            grave: false,
            certainty: Certainty::Measured,
            count: 1,
            moments: Vec::new(),
            site: None,
            cure: String::new(),
            thresholds: String::new(),
            weakened: None,
        };
        let summary = Summary {
            findings: Diagnosis::Told(Report {
                findings: vec![finding],
                ..Report::default()
            }),
            ..Summary::default()
        };
        let matches = |text: &str| Rule::parse(text).unwrap().matches(&summary);
        for text in ["finding", "finding:any", "finding:late-jit"] {
            assert_eq!(matches(text), ["--fail-on finding:late-jit: it was late"]);
        }
        assert!(matches("finding:alloc-churn").is_empty());
        assert!(Rule::parse("finding:late").unwrap_err().contains("hint: alloc-churn, "));
    }

    #[test]
    fn faults_beyond_those_that_are_told_apart_count_too() {
        let summary = Summary {
            more_xids: 3,
            ..Summary::default()
        };
        assert_eq!(Rule::Xid.matches(&summary), ["--fail-on xid: 3 more of other kinds"]);
        assert!(Rule::Xid.matches(&Summary::default()).is_empty());
    }
}
