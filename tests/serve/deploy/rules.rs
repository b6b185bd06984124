//! Alerts.

use super::{expression, read, succeeded, tool, yaml};
use serde_json::Value;
use std::collections::BTreeSet;

const RULES: &str = "deploy/prometheus/gpuscope.rules.yml";
const TESTS: &str = "deploy/prometheus/tests.yml";

fn rules() -> Vec<Value> {
    let file = yaml(&read(RULES));
    let groups = file["groups"].as_array().expect("groups").clone();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules").clone())
        .collect()
}

fn alerts() -> Vec<Value> {
    let alerts: Vec<Value> = rules().into_iter().filter(|rule| rule["alert"].is_string()).collect();
    assert!(alerts.len() > 20, "{} alerts", alerts.len());
    alerts
}

fn name(alert: &Value) -> &str {
    alert["alert"].as_str().expect("a name")
}

#[test]
fn every_alert_says_what_is_the_matter_and_what_to_do() {
    let paragraphs = read("docs/alerts.md");
    for alert in alerts() {
        let severity = alert["labels"]["severity"].as_str().expect("a severity");
        assert!(["critical", "warning", "info"].contains(&severity), "{alert}");
        let says = |what: &str| alert["annotations"][what].as_str().unwrap_or_default().to_owned();
        assert!(says("summary").contains("$labels.instance"), "{alert}");
        assert!(says("description").len() > 80, "{alert}");
        let (file, anchor) = ("docs/alerts.md", name(&alert).to_lowercase());
        assert!(says("runbook_url").ends_with(&format!("{file}#{anchor}")), "{alert}");
        assert!(
            paragraphs.contains(&format!("\n## {}\n\n", name(&alert))),
            "{} is not in {file}",
            name(&alert)
        );
    }
}

#[test]
fn every_paragraph_is_of_an_alert() {
    let alerts = alerts();
    let known: BTreeSet<&str> = alerts.iter().map(name).collect();
    let text = read("docs/alerts.md");
    for heading in text.lines().filter_map(|line| line.strip_prefix("## ")) {
        assert!(known.contains(heading), "there is no alert {heading}");
    }
}

#[test]
fn expressions_name_metrics_labels_and_records_that_there_are() {
    let rules = rules();
    let records: BTreeSet<&str> = rules.iter().filter_map(|rule| rule["record"].as_str()).collect();
    for rule in &rules {
        let expression = rule["expr"].as_str().expect("an expression");
        expression::check(&rule.to_string(), expression);
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
        for record in words.filter(|word| word.contains(':') && word.starts_with("owner")) {
            assert!(records.contains(record), "{record} is not recorded");
        }
    }
}

/// That each fires and does not fire is for promtool to find out; that each is asked for, here.
#[test]
fn every_alert_has_a_test() {
    let tests = yaml(&read(TESTS));
    let asked: String = tests["tests"]
        .as_array()
        .expect("tests")
        .iter()
        .map(|test| test["promql_expr_test"].to_string())
        .collect();
    for alert in alerts() {
        let samples =
            asked.contains(name(&alert)) || asked.contains(&format!("ALERTS{{alertname=~\\\"{}", stem(name(&alert))));
        assert!(samples, "{} has no test in {TESTS}", name(&alert));
    }
}

/// The part of a name before what a test writes as alternatives.
fn stem(name: &str) -> String {
    let stems = ["GpuscopeXid", "GpuscopeRowRemap"];
    let stem = stems
        .iter()
        .find(|stem| name.starts_with(**stem))
        .map(|stem| (*stem).to_owned());
    stem.unwrap_or_else(|| "Gpuscope(".to_owned())
}

#[test]
#[ignore = "needs promtool: scripts/fetch-tools.sh"]
fn promtool_accepts_rules_and_configuration() {
    let said = succeeded(&tool("promtool", &["check", "rules", RULES]));
    assert!(said.contains(&format!("{} rules found", rules().len())), "{said}");
    succeeded(&tool(
        "promtool",
        &["check", "config", "deploy/prometheus/prometheus.yml"],
    ));
}

#[test]
#[ignore = "needs promtool: scripts/fetch-tools.sh"]
fn every_alert_fires_when_it_should_and_else_not() {
    let said = succeeded(&tool("promtool", &["test", "rules", TESTS]));
    assert!(said.contains("SUCCESS"), "{said}");
}
