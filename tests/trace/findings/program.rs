//! A program with one thing wrong with it, under gpuscope.

use super::support::{Gpuscope, Trace, sim_text};
use serde_json::Value;
use std::process::Command;

/// What `gpusim defect` needs to have this wrong with it.
#[derive(Debug, Clone, Copy)]
pub struct Defect {
    pub kind: &'static str,
    pub steps: u64,
    /// `NAME=VALUE`, or nothing.
    pub setting: &'static str,
}

impl Defect {
    /// A loop of 150 steps, which take 8 ms.
    pub const fn of(kind: &'static str) -> Defect {
        Defect {
            kind,
            steps: 150,
            setting: "",
        }
    }

    /// The command line.
    pub fn command(self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if !["host-contention", "starved"].contains(&self.kind) && may_have_priority() {
            words.extend(["chrt", "-f", "1"].map(str::to_owned));
        }
        words.extend([sim_text("gpusim"), "defect".to_owned()]);
        words.extend(["--kind", self.kind, "--steps"].map(str::to_owned));
        words.push(self.steps.to_string());
        words
    }

    /// Gives what it starts its setting.
    pub fn set(self, gpuscope: Gpuscope) -> Gpuscope {
        match self.setting.split_once('=') {
            Some((name, value)) => gpuscope.env(name, value),
            None => gpuscope,
        }
    }

    /// Runs it under `gpuscope run OPTIONS…`.
    pub fn run(self, options: &[&str]) -> Trace {
        let command = self.command();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        self.set(Gpuscope::run(options, &command)).finish()
    }
}

fn may_have_priority() -> bool {
    let tried = Command::new("chrt").args(["-f", "1", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// The findings of a summary.
pub fn findings(summary: &Value) -> &Vec<Value> {
    let findings = summary["findings"].as_array();
    findings.unwrap_or_else(|| panic!("no findings: {}", summary["no_findings"]))
}

/// Their rules.
pub fn rules(findings: &[Value]) -> Vec<&str> {
    findings.iter().filter_map(|finding| finding["rule"].as_str()).collect()
}
