//! One plot over time: drawn here, so that it is there without any script; values for the pointer go with it.

use super::super::words;
use crate::section::html::Text;
use crate::text::quantity;
use std::fmt::Write;

/// The drawing's own units; the page stretches it.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    BytesPerSecond,
    PerSecond,
    Threads,
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::PerSecond => "/s",
            Unit::Threads => "threads",
        }
    }

    pub(super) fn written(self, value: f64) -> String {
        match self {
            Unit::Bytes => quantity::bytes(value as u64),
            Unit::BytesPerSecond => words::bandwidth(value),
            Unit::PerSecond => words::per_second(value),
            // upwards, so that a little is not shown as nothing
            Unit::Threads => format!("{:.2}", (value * 100.0).ceil() / 100.0),
        }
    }
}

/// One line of a plot.
pub(super) struct Series {
    pub name: String,
    /// When (ns), and how much. The value holds until the next.
    pub points: Vec<(i64, f64)>,
}

/// Time from left to right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub from_ns: i64,
    pub to_ns: i64,
}

impl Span {
    fn length(self) -> f64 {
        (self.to_ns.saturating_sub(self.from_ns)).max(1) as f64
    }

    pub(super) fn x(self, at: i64) -> f64 {
        let part = at.saturating_sub(self.from_ns) as f64 / self.length();
        part.clamp(0.0, 1.0) * WIDTH
    }
}

/// A figure with all of `series`.
pub(super) fn figure(id: &str, title: &str, unit: Unit, span: Span, series: &[Series], page: &mut String) {
    let most = series
        .iter()
        .flat_map(|one| &one.points)
        .map(|(_, value)| *value)
        .fold(0.0, f64::max);
    let top = if most > 0.0 { most * 1.05 } else { 1.0 };
    let _ = write!(
        page,
        "<figure class=\"plot\" id=\"{id}\" data-unit=\"{}\" data-series=\"",
        unit.word()
    );
    values(series, page);
    let _ = write!(
        page,
        "\">\n<figcaption><span>{title} <small>at most {}</small></span><span class=\"legend\">",
        unit.written(most)
    );
    for (index, one) in series.iter().enumerate() {
        if !one.name.is_empty() {
            let _ = write!(page, "<span class=\"s{}\">{}</span>", index % 6, Text(&one.name));
        }
    }
    let _ = write!(
        page,
        "</span></figcaption>\n<div class=\"area\">\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{title}\">\n\
         <path class=\"grid\" d=\"M0 50H{WIDTH}M0 0H{WIDTH}\"/>\n"
    );
    for (index, one) in series.iter().enumerate() {
        draw(index % 6, one, span, top, page);
    }
    page.push_str("</svg><i class=\"cursor\"></i></div>\n</figure>\n");
}

fn draw(index: usize, series: &Series, span: Span, top: f64, page: &mut String) {
    let y = |value: f64| HEIGHT - value / top * HEIGHT;
    let mut path = String::new();
    for (place, (at, value)) in series.points.iter().enumerate() {
        let (x, y) = (span.x(*at), y(*value));
        let _ = match place {
            0 => write!(path, "M{x:.1} {y:.2}"),
            _ => write!(path, "H{x:.1}V{y:.2}"),
        };
    }
    if path.is_empty() {
        return;
    }
    let first = span.x(series.points[0].0);
    let _ = write!(path, "H{WIDTH}");
    let _ = writeln!(
        page,
        "<path class=\"fill s{index}\" d=\"{path}V{HEIGHT}H{first:.1}Z\"/>"
    );
    let _ = writeln!(page, "<path class=\"line s{index}\" d=\"{path}\"/>");
}

/// `[["name",[[at, value], …]], …]`, in ns and the unit of the plot.
fn values(series: &[Series], page: &mut String) {
    let all: Vec<serde_json::Value> = series
        .iter()
        .map(|one| {
            let points: Vec<(i64, f64)> = one.points.iter().map(|(at, value)| (*at, round(*value))).collect();
            serde_json::json!([one.name, points])
        })
        .collect();
    let _ = write!(page, "{}", Text(&serde_json::Value::from(all).to_string()));
}

/// Four digits are more than a plot shows.
fn round(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let scale = 10f64.powf(3.0 - value.log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next() {
        let series = Series {
            name: "<b>".to_owned(),
            points: vec![(0, 50.0), (500, 100.0)],
        };
        let mut page = String::new();
        let span = Span {
            from_ns: 0,
            to_ns: 1000,
        };
        figure("x", "X", Unit::PerSecond, span, &[series], &mut page);
        assert!(page.contains("d=\"M0.0 52.38H500.0V4.76H1000\""), "{page}");
        assert!(!page.contains("<b>"), "{page}");
    }

    #[test]
    fn values_keep_four_digits() {
        assert_eq!(
            (round(123_456.0), round(0.0), round(0.012_345_6)),
            (123_500.0, 0.0, 0.012_35)
        );
    }
}
