//! What a PromQL expression names, held against the table of metrics.

use gpuscope::serve::metric::{Kind, Metric};
use gpuscope::serve::metrics;

/// What Prometheus adds, and a histogram's edges.
const ADDED: [&str; 3] = ["instance", "job", "le"];
/// Labels of owners that are there unless somebody chooses others, and those that dashboards choose by where they are there.
const OWNER: [&str; 11] = [
    "comm",
    "namespace",
    "pod",
    "container",
    "container_id",
    "unit",
    "slurm_job",
    "user",
    "batch_job",
    "program",
    "rank",
];

/// Names of our metrics in `expression`, as the table has them, with what selects among their series.
pub fn metrics_of(expression: &str) -> Vec<(&'static Metric, String)> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == ':';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(is_name) {
        let word = rest[start..].split(|c| !is_name(c)).next().unwrap_or_default();
        let after = &rest[start + word.len()..];
        if word.starts_with("gpuscope_") || word.starts_with("process_") {
            let selector = after.strip_prefix('{').and_then(|inside| inside.split('}').next());
            found.push((metric(word), selector.unwrap_or_default().to_owned()));
        }
        rest = after;
    }
    found
}

fn metric(word: &str) -> &'static Metric {
    let exact = metrics::all().find(|metric| metric.name == word);
    let base = || {
        let parts = ["_bucket", "_sum", "_count"];
        let name = parts.iter().find_map(|part| word.strip_suffix(part))?;
        metrics::all().find(|metric| metric.name == name && metric.kind == Kind::Histogram)
    };
    exact
        .or_else(base)
        .unwrap_or_else(|| panic!("there is no metric {word}"))
}

/// Fails if the expression names a metric, or selects by a label, that there is not.
pub fn check(what: &str, expression: &str) {
    for (metric, selector) in metrics_of(expression) {
        for label in selected(&selector) {
            let owned = metric.by_owner && OWNER.contains(&label.as_str());
            let known = owned || ADDED.contains(&label.as_str()) || metric.labels.contains(&label.as_str());
            assert!(known, "{what}: {} has no label {label}", metric.name);
        }
    }
}

/// Names of labels before `=`, `!=`, `=~` and `!~`, outside of quotes.
fn selected(selector: &str) -> Vec<String> {
    let outside: String = selector.split('"').step_by(2).collect();
    let names = outside
        .split(',')
        .map(|part| part.trim_end_matches(['=', '~', '!']).trim());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn finds_names_and_selectors() {
    let found = metrics_of(r#"sum by (le) (rate(gpuscope_api_duration_seconds_bucket{layer!="a,b",comm=~"x"}[5m]))"#);
    assert_eq!(found[0].0.name, "gpuscope_api_duration_seconds");
    assert_eq!(selected(&found[0].1), ["layer", "comm"]);
    assert!(metrics_of("owner:gpuscope_memory_device_bytes:sum > 0").is_empty());
}

#[test]
#[should_panic(expected = "has no label gpu")]
fn a_label_that_a_metric_does_not_have_is_found() {
    check("test", r#"gpuscope_api_calls_total{gpu="0"}"#);
}
