//! What changed, as JSON: docs/report.md has its schema.

use super::super::{Report, json};
use super::{Diff, FunctionChange, Measure};
use crate::sink::findings::finding_json;
use crate::text::quantity::harmless;
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Document<'a> {
    r#type: &'static str,
    version: u32,
    before: SideJson<'a>,
    after: SideJson<'a>,
    notes: &'a [String],
    measures: Vec<MeasureJson<'a>>,
    functions: &'a [FunctionChange],
    findings_appeared: Vec<Value>,
    findings_gone: Vec<Value>,
    findings_stayed: Vec<(Value, Value)>,
}

#[derive(Serialize)]
struct SideJson<'a> {
    file: &'a str,
    wall_ns: u64,
    launches: u64,
    cut: Option<&'a str>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct MeasureJson<'a> {
    #[serde(flatten)]
    measure: &'a Measure,
    change: Option<f64>,
    change_per_launch: Option<f64>,
}

/// One JSON object, as a line.
#[must_use]
pub fn to_line(diff: &Diff<'_>) -> String {
    let (old, new) = (&diff.before.run, &diff.after.run);
    let document = Document {
        r#type: "diff",
        version: json::VERSION,
        before: side(diff.before),
        after: side(diff.after),
        notes: &diff.notes,
        measures: diff
            .measures
            .iter()
            .map(|measure| MeasureJson {
                measure,
                change: measure.change(),
                change_per_launch: measure.change_per_launch(),
            })
            .collect(),
        functions: &diff.functions,
        findings_appeared: diff.appeared.iter().map(|one| finding_json(one, new)).collect(),
        findings_gone: diff.gone.iter().map(|one| finding_json(one, old)).collect(),
        findings_stayed: diff
            .stayed
            .iter()
            .map(|(before, after)| (finding_json(before, old), finding_json(after, new)))
            .collect(),
    };
    // plain data with keys of text: nothing in it can fail
    harmless(&serde_json::to_string(&document).unwrap_or_default()) + "\n"
}

fn side(report: &Report) -> SideJson<'_> {
    SideJson {
        file: &report.source.name,
        wall_ns: report.wall_ns(),
        launches: report.launches().number,
        cut: report.source.cut.as_deref(),
        notes: &report.notes,
    }
}
