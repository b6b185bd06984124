//! The report as one JSON object: docs/report.md has its schema.

use super::{
    Copies, DriverShare, Failure, Hidden, Idle, Kernel, Layer, Losses, Memory, Process, Ranges, Rates, Report, Slow,
    Unreturned, Wait, Xid,
};
use crate::model::snapshot::executed::Executed;
use crate::model::snapshot::{Figure, Graphs};
use crate::sink::findings::finding_json;
use crate::sink::outside;
use crate::text::quantity::harmless;
use serde::Serialize;
use serde_json::Value;

/// Of the schema: raised when the meaning of a field changes.
pub(crate) const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    r#type: &'static str,
    version: u32,
    file: &'a str,
    live: bool,
    command: &'a [String],
    host: &'a str,
    start_unix_ns: Option<u64>,
    attach: &'a str,
    tool: &'a str,
    rows: u64,
    cut: Option<&'a str>,
    exact: bool,
    exact_until_ns: Option<i64>,
    notes: &'a [String],
    wall_ns: u64,
    /// Of which findings say shares.
    steady_ns: u64,
    from_ns: i64,
    to_ns: i64,
    /// `None`: it was not looked for.
    findings: Option<Vec<Value>>,
    no_findings: Option<&'a str>,
    not_explained: Option<String>,
    layers: &'a [Layer],
    slowest: &'a [Slow],
    unreturned: &'a Unreturned,
    memory: &'a Memory,
    /// Headline figures, each of one layer.
    launches: OfLayer,
    failed: OfLayer,
    kernels: &'a [Kernel],
    /// Null: it was not asked what devices executed.
    executed: Option<&'a Executed>,
    graphs: Option<Graphs>,
    copies: &'a [Copies],
    waits: &'a [Wait],
    waits_layer: &'static str,
    hidden: &'a [Hidden],
    driver: Option<&'a DriverShare>,
    idle: &'a [Idle],
    /// Null: not sampled.
    outside_cuda: Option<Value>,
    ranges: &'a Ranges,
    rates: &'a Rates,
    failures: &'a [Failure],
    lost: &'a Losses,
    processes: &'a [Process],
    xids: &'a [Xid],
    steps: Value,
    no_steps: Value,
    unseen: &'a [String],
    cost: Option<&'a Value>,
}

/// A number, and the layer that it is of: the driver's, but where the runtime's has more.
#[derive(Serialize)]
struct OfLayer {
    count: u64,
    layer: &'static str,
}

impl From<Figure> for OfLayer {
    fn from(figure: Figure) -> OfLayer {
        OfLayer {
            count: figure.number,
            layer: figure.view.name(),
        }
    }
}

/// One line.
#[must_use]
pub fn to_line(report: &Report) -> String {
    let meta = report.source.meta.as_ref();
    let text = |of: fn(&crate::record::Meta) -> &String| meta.map_or("", |meta| of(meta).as_str());
    let findings = report.findings.iter().map(|finding| finding_json(finding, &report.run));
    let (steps, no_steps) = crate::sink::steps::to_json(&report.steps.told);
    let document = Document {
        r#type: "report",
        version: VERSION,
        file: &report.source.name,
        live: report.source.live,
        command: meta.map_or(&[], |meta| &meta.command),
        host: text(|meta| &meta.host),
        start_unix_ns: report.source.clock().map(|clock| clock.start_unix_ns),
        attach: text(|meta| &meta.tier),
        tool: text(|meta| &meta.tool),
        rows: report.source.rows,
        cut: report.source.cut.as_deref(),
        exact: report.exact,
        exact_until_ns: report.source.until.map(|until| until.at),
        notes: &report.notes,
        wall_ns: report.wall_ns(),
        steady_ns: report.run.steady_ns,
        from_ns: report.from_ns,
        to_ns: report.to_ns,
        findings: report.not_looked_for.is_none().then(|| findings.collect()),
        no_findings: report.not_looked_for.as_deref(),
        not_explained: report.unexplained(),
        layers: &report.layers,
        slowest: &report.slowest,
        unreturned: &report.unreturned,
        memory: &report.memory,
        launches: report.launches().into(),
        failed: report.failed().into(),
        kernels: &report.kernels,
        executed: report.totals.gpu.as_ref(),
        graphs: report.graphs(),
        copies: &report.copies,
        waits: &report.waits,
        waits_layer: report.wait_calls.view.name(),
        hidden: &report.hidden,
        driver: report.driver.as_ref(),
        idle: &report.idle,
        outside_cuda: Some(outside::to_json(&report.outside)).filter(|sampled| sampled != &Value::Array(Vec::new())),
        ranges: &report.ranges,
        rates: &report.rates,
        failures: &report.failures,
        lost: &report.losses,
        processes: &report.processes,
        xids: &report.xids,
        steps,
        no_steps,
        unseen: report.unseen(),
        cost: Some(&report.totals.cost).filter(|cost| !cost.is_null()),
    };
    // plain data with keys of text: nothing in it can fail
    let line = serde_json::to_string(&document).unwrap_or_default();
    harmless(&line) + "\n"
}
