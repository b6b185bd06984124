//! From samples to the message of OTLP. Pure.

use super::name::{self, Instrument, Name};
use crate::serve::metric::{Histogram as Counts, Metric, Sample, Value};
use crate::serve::series::{self, Family, Series};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{self as otlp, metric::Data, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// When values were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When gpuscope was started.
    pub start: SystemTime,
    /// When the samples were gathered.
    pub end: SystemTime,
}

impl Span {
    fn start_ns(self) -> u64 {
        nanoseconds(self.start)
    }

    /// Not before the start, whatever has happened to the clock.
    fn end_ns(self) -> u64 {
        nanoseconds(self.end).max(self.start_ns())
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The message; the module `series` says what becomes of invalid and doubled samples. Metrics that OpenTelemetry
/// gives one name are one.
#[must_use]
pub(crate) fn request(samples: &[Sample], span: Span, resource: Resource) -> ExportMetricsServiceRequest {
    let scope = InstrumentationScope {
        name: "gpuscope".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let metrics = otlp::ScopeMetrics {
        scope: Some(scope),
        metrics: metrics(&series::families(samples), span),
        ..otlp::ScopeMetrics::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![otlp::ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![metrics],
            ..otlp::ResourceMetrics::default()
        }],
    }
}

fn metrics(families: &[Family], span: Span) -> Vec<otlp::Metric> {
    let mut metrics: Vec<otlp::Metric> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for family in families {
        let name = name::name_of(family.metric);
        let place = *known.entry(name.name.to_string()).or_insert_with(|| {
            metrics.push(empty(&name, family.metric));
            metrics.len() - 1
        });
        let points = family.series.iter();
        match &mut metrics[place].data {
            Some(Data::Sum(sum)) => sum
                .data_points
                .extend(points.filter_map(|series| number(series, &name, span))),
            Some(Data::Gauge(gauge)) => gauge
                .data_points
                .extend(points.filter_map(|series| number(series, &name, span))),
            Some(Data::Histogram(histogram)) => histogram
                .data_points
                .extend(points.filter_map(|series| counts(series, &name, span))),
            _ => {}
        }
    }
    metrics
}

fn empty(name: &Name, metric: &Metric) -> otlp::Metric {
    let sum = |is_monotonic| {
        Data::Sum(otlp::Sum {
            data_points: Vec::new(),
            aggregation_temporality: otlp::AggregationTemporality::Cumulative.into(),
            is_monotonic,
        })
    };
    let data = match name.instrument {
        Instrument::Counter | Instrument::OlderCounter => sum(true),
        Instrument::UpDownCounter => sum(false),
        Instrument::Gauge => Data::Gauge(otlp::Gauge::default()),
        Instrument::Histogram => Data::Histogram(otlp::Histogram {
            data_points: Vec::new(),
            aggregation_temporality: otlp::AggregationTemporality::Cumulative.into(),
        }),
    };
    otlp::Metric {
        name: name.name.to_string(),
        description: metric.help.to_owned(),
        unit: name.unit.to_owned(),
        data: Some(data),
        ..otlp::Metric::default()
    }
}

/// When a point began to count; 0: not known, or it does not count.
fn start_ns(instrument: Instrument, span: Span) -> u64 {
    match instrument {
        Instrument::Counter | Instrument::Histogram => span.start_ns(),
        Instrument::OlderCounter | Instrument::UpDownCounter | Instrument::Gauge => 0,
    }
}

#[allow(clippy::cast_precision_loss)]
fn number(series: &Series, name: &Name, span: Span) -> Option<otlp::NumberDataPoint> {
    let value = match &series.value {
        Value::Integer(number) => i64::try_from(*number).map_or(
            number_data_point::Value::AsDouble(*number as f64),
            number_data_point::Value::AsInt,
        ),
        Value::Number(number) => number_data_point::Value::AsDouble(*number),
        Value::Histogram(_) => return None,
    };
    Some(otlp::NumberDataPoint {
        attributes: attributes(series, name),
        start_time_unix_nano: start_ns(name.instrument, span),
        time_unix_nano: series.read_at.map_or_else(|| span.end_ns(), nanoseconds),
        value: Some(value),
        ..otlp::NumberDataPoint::default()
    })
}

fn counts(series: &Series, name: &Name, span: Span) -> Option<otlp::HistogramDataPoint> {
    let Value::Histogram(Counts { sum, count, buckets }) = &series.value else {
        return None;
    };
    let above = count.saturating_sub(series::within(buckets));
    Some(otlp::HistogramDataPoint {
        attributes: attributes(series, name),
        start_time_unix_nano: start_ns(name.instrument, span),
        time_unix_nano: span.end_ns(),
        count: *count,
        sum: Some(*sum),
        bucket_counts: buckets.iter().map(|(_, count)| *count).chain([above]).collect(),
        explicit_bounds: buckets.iter().map(|(edge, _)| *edge).collect(),
        ..otlp::HistogramDataPoint::default()
    })
}

fn attributes(series: &Series, name: &Name) -> Vec<KeyValue> {
    let labels = series.labels().map(|(label, value)| {
        let attribute = name::attribute(series.metric, label);
        match value.parse() {
            Ok(number) if attribute == "process.pid" => key_value(attribute, any_value::Value::IntValue(number)),
            _ => text(attribute, value),
        }
    });
    let fixed = name.attributes.iter().map(|(key, value)| text(key, value));
    let hardware = name.name.starts_with("hw.");
    let gpu = series.labels().find(|(label, _)| hardware && *label == "gpu");
    let gpu = gpu.map(|(_, index)| text("hw.name", &format!("GPU {index}")));
    labels.chain(fixed).chain(gpu).collect()
}

/// An attribute with a text.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    key_value(key, any_value::Value::StringValue(value.to_owned()))
}

fn key_value(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
