//! Series as lines, in either form. They differ in the names of counters and infos in the head, in units and in the end.

use super::Format;
use crate::serve::metric::{Histogram, Kind, Metric, Value};
use crate::serve::series::{Family, Series};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The whole text.
pub(super) fn write(families: &[Family], format: Format) -> String {
    let mut writer = Writer {
        text: String::new(),
        owners: HashMap::new(),
    };
    for family in families {
        writer.head(family.metric, format);
        family.series.iter().for_each(|series| writer.series(series, format));
    }
    if format == Format::OpenMetrics {
        writer.text.push_str("# EOF\n");
    }
    writer.text
}

struct Writer {
    text: String,
    /// Labels of owners as text, each beginning with a comma.
    owners: HashMap<*const Vec<(String, String)>, Arc<str>>,
}

impl Writer {
    fn head(&mut self, metric: &Metric, format: Format) {
        let (name, kind, unit) = match format {
            Format::OpenMetrics => (family_name(metric), open_kind(metric.kind), metric.unit()),
            Format::Plain => (metric.name, plain_kind(metric.kind), ""),
        };
        self.push(&["# HELP ", name, " ", metric.help, "\n# TYPE ", name, " ", kind, "\n"]);
        if !unit.is_empty() {
            self.push(&["# UNIT ", name, " ", unit, "\n"]);
        }
    }

    fn series(&mut self, series: &Series, format: Format) {
        let labels = self.labels(series);
        let name = series.metric.name;
        match &series.value {
            Value::Histogram(histogram) => return self.histogram(name, &labels, histogram),
            _ if labels.is_empty() => self.push(&[name, " "]),
            _ => self.push(&[name, "{", &labels, "} "]),
        }
        match series.read_at {
            Some(at) => self.number_read_at(&series.value, at, format),
            None => self.number(&series.value),
        }
    }

    /// With the time as the format has it: seconds, or whole milliseconds.
    fn number_read_at(&mut self, value: &Value, at: SystemTime, format: Format) {
        self.number(value);
        self.text.pop();
        let ms = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let _ = match format {
            Format::OpenMetrics => writeln!(self.text, " {}.{:03}", ms / 1000, ms % 1000),
            Format::Plain => writeln!(self.text, " {ms}"),
        };
    }

    fn histogram(&mut self, name: &str, labels: &str, histogram: &Histogram) {
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
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        self.push(&[name, "_sum", open, labels, close, " "]);
        self.number(&Value::Number(histogram.sum));
        self.push(&[name, "_count", open, labels, close, " "]);
        self.whole(histogram.count);
    }

    /// Without braces.
    fn labels(&mut self, series: &Series) -> String {
        let mut text = String::with_capacity(256);
        for (name, value) in series.own_labels() {
            push_label(&mut text, name, value);
        }
        let owner = self.owners.entry(Arc::as_ptr(&series.owner)).or_insert_with(|| {
            let mut text = String::new();
            series
                .owner
                .iter()
                .for_each(|(name, value)| push_label(&mut text, name, value));
            text.into()
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

/// `,name="value"`
fn push_label(text: &mut String, name: &str, value: &str) {
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
