//! From a recording, or rows as they come, to a report.

use super::{Gatherer, Report, Source};
use crate::findings::Engine;
use crate::trace::{End, Event, Meta, Reader, Taker};
use anyhow::{Result, bail};
use serde_json::Value;
use std::path::Path;

/// Takes rows for all that a report says: sums and diagnoses.
pub struct Collector {
    gatherer: Gatherer,
    engine: Engine,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector::new()
    }
}

impl Collector {
    /// With all rules.
    #[must_use]
    pub fn new() -> Collector {
        Collector {
            gatherer: Gatherer::default(),
            engine: Engine::new(),
        }
    }

    /// What the rows so far say. `exact`: the summary of the run, as JSON.
    #[must_use]
    pub fn report(&mut self, source: Source, exact: Option<&str>) -> Report {
        let exact: Option<Value> = exact.and_then(|exact| serde_json::from_str(exact).ok());
        if exact.as_ref().is_some_and(idleness_is_inferred) {
            self.engine.doubt_idleness();
        }
        let cost = exact
            .as_ref()
            .and_then(|exact| exact["cost"]["program_seconds"].as_f64());
        self.engine.tracing_took((cost.unwrap_or(0.0) * 1e9) as u64);
        let untold = exact.as_ref().and_then(|exact| exact["no_findings"].as_str());
        let untold = untold.map(str::to_owned);
        let findings = match untold {
            None => self.engine.findings(),
            Some(_) => Vec::new(),
        };
        Report {
            untold,
            ..self.gatherer.report(source, exact, findings, self.engine.run())
        }
    }
}

/// Not everything that gives devices work was seen.
fn idleness_is_inferred(exact: &Value) -> bool {
    let works = exact["work"].as_array().map(Vec::as_slice).unwrap_or_default();
    works.iter().any(|work| work["gpu"]["certainty"] == "inferred")
}

impl Taker for Collector {
    fn start(&mut self, meta: &Meta) {
        self.gatherer.start(meta);
        self.engine.start(meta);
    }

    fn take(&mut self, event: &Event<'_>) {
        self.gatherer.take(event);
        self.engine.take(event);
    }
}

/// Reads a recording; `watch` is told how many bytes of how many are read, now and then.
///
/// # Errors
/// It cannot be read, is none, or nothing in it can be read.
pub fn load(path: &Path, watch: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    let reader = Reader::open(path)?;
    let mut collector = Collector::new();
    let end = reader.read_watched(path, &mut collector, watch);
    conclude(path, &mut collector, end)
}

fn conclude(path: &Path, collector: &mut Collector, end: End) -> Result<Report> {
    if let (0, None, Some(why)) = (end.rows, &end.summary, &end.cut) {
        bail!("nothing in {} can be read: {why}", path.display());
    }
    let source = Source {
        name: path.display().to_string(),
        rows: end.all_rows,
        cut: end.cut,
        ..Source::default()
    };
    Ok(collector.report(source, end.summary.as_deref()))
}
