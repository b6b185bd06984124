//! Series as lines, in either form. They differ in the names of counters and infos in the head, in units and in the end.

use super::Format;
use crate::serve::metric::{Histogram, Kind, Metric, Value};
use crate::serve::series::{Family, Series};
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The whole text.
pub(super) fn write(families: &[Family], format: Format) -> String {
    let mut writer = Writer::new(format, 0);
    writer.families(families);
    writer.finish()
}

/// A text that grows.
pub(super) struct Writer {
    format: Format,
    pub(super) text: String,
    /// Labels of owners as text, each beginning with a comma.
    owners: HashMap<*const Vec<(String, String)>, Arc<str>>,
}

impl Writer {
    /// `bytes`: that the text may have.
    pub(super) fn new(format: Format, bytes: usize) -> Writer {
        Writer {
            format,
            text: String::with_capacity(bytes),
            owners: HashMap::new(),
        }
    }

    pub(super) fn families(&mut self, families: &[Family]) {
        for family in families {
            self.head(family.metric);
            family.series.iter().for_each(|series| self.series(series));
        }
        // the next families may have others in their place
        self.owners.clear();
    }

    /// The text with its end.
    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    pub(super) fn head(&mut self, metric: &Metric) {
        let (name, kind, unit) = match self.format {
            Format::OpenMetrics => (family_name(metric), open_kind(metric.kind), metric.unit()),
            Format::Plain => (metric.name, plain_kind(metric.kind), ""),
        };
        self.push(&["# HELP ", name, " ", metric.help, "\n# TYPE ", name, " ", kind, "\n"]);
        if !unit.is_empty() {
            self.push(&["# UNIT ", name, " ", unit, "\n"]);
        }
    }

    fn series(&mut self, series: &Series) {
        let labels = self.labels(series);
        self.lines(series.metric, &labels, &series.value, series.read_at);
    }

    /// The lines of one series; `labels` without braces. Where in the text these stand then.
    pub(super) fn lines(
        &mut self,
        metric: &Metric,
        labels: &str,
        value: &Value,
        read_at: Option<SystemTime>,
    ) -> Range<usize> {
        let name = metric.name;
        if let Value::Histogram(histogram) = value {
            return self.histogram(name, labels, histogram);
        }
        let place = self.labelled(name, "", labels);
        match read_at {
            Some(at) => self.number_read_at(value, at),
            None => self.number(value),
        }
        place
    }

    /// A name with its labels, and where these stand.
    fn labelled(&mut self, name: &str, suffix: &str, labels: &str) -> Range<usize> {
        let (open, close) = if labels.is_empty() { ("", " ") } else { ("{", "} ") };
        self.push(&[name, suffix, open, labels, close]);
        let end = self.text.len() - close.len();
        end - labels.len()..end
    }

    /// With the time as the format has it: seconds, or whole milliseconds.
    fn number_read_at(&mut self, value: &Value, at: SystemTime) {
        self.number(value);
        self.text.pop();
        let ms = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let _ = match self.format {
            Format::OpenMetrics => writeln!(self.text, " {}.{:03}", ms / 1000, ms % 1000),
            Format::Plain => writeln!(self.text, " {ms}"),
        };
    }

    fn histogram(&mut self, name: &str, labels: &str, histogram: &Histogram) -> Range<usize> {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut so_far = 0;
        for (edge, count) in &histogram.buckets {
            so_far += count;
            self.push(&[name, "_bucket{", labels, comma, "le=\""]);
            self.shortest(*edge);
            self.push(&["\"} "]);
            self.whole(so_far);
        }
        self.push(&[name, "_bucket{", labels, comma, "le=\"+Inf\"} "]);
        self.whole(histogram.count);
        self.labelled(name, "_sum", labels);
        self.number(&Value::Number(histogram.sum));
        let place = self.labelled(name, "_count", labels);
        self.whole(histogram.count);
        place
    }

    /// Without braces.
    fn labels(&mut self, series: &Series) -> String {
        let mut text = String::with_capacity(256);
        for (name, value) in series.own_labels() {
            push_label(&mut text, name, value);
        }
        let owner = self.owners.entry(Arc::as_ptr(&series.owner)).or_insert_with(|| {
            let owner = series.owner.iter();
            labels_text(owner.map(|(name, value)| (name.as_str(), value.as_str()))).into()
        });
        text.push_str(owner);
        if !text.is_empty() {
            text.remove(0);
        }
        text
    }

    fn number(&mut self, value: &Value) {
        match value {
            Value::Integer(number) => return self.whole(*number),
            Value::Number(number) => self.shortest(*number),
            Value::Histogram(_) => {}
        }
        self.text.push('\n');
    }

    /// The shortest text that is read as the same number.
    fn shortest(&mut self, number: f64) {
        // writing into a string does not fail
        let _ = write!(self.text, "{number:?}");
    }

    fn whole(&mut self, number: u64) {
        self.push(&[itoa::Buffer::new().format(number), "\n"]);
    }

    fn push(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.text.push_str(part));
    }
}

/// Each label as `,name="value"`.
pub(super) fn labels_text<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    labels.for_each(|(name, value)| push_label(&mut text, name, value));
    text
}

/// `,name="value"`
pub(super) fn push_label(text: &mut String, name: &str, value: &str) {
    [",", name, "=\""].into_iter().for_each(|part| text.push_str(part));
    let mut rest = value;
    while let Some(at) = rest.find(['\\', '"', '\n']) {
        text.push_str(&rest[..at]);
        text.push_str(match rest.as_bytes()[at] {
            b'\\' => "\\\\",
            b'"' => "\\\"",
            _ => "\\n",
        });
        rest = &rest[at + 1..];
    }
    text.push_str(rest);
    text.push('"');
}

/// The name in the head of OpenMetrics.
fn family_name(metric: &Metric) -> &str {
    let suffix = match metric.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    metric.name.strip_suffix(suffix).unwrap_or(metric.name)
}

fn open_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
        Kind::Info => "info",
    }
}

/// Here an info is a gauge.
fn plain_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Info => "gauge",
        other => open_kind(other),
    }
}
