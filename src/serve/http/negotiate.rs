//! Which of our formats a client asks for: `Accept` and `Accept-Encoding`. Pure.

pub use crate::serve::exposition::Format;

/// One range of a list such as `text/plain;version=0.0.4;q=0.5, */*`.
struct Range<'a> {
    name: &'a str,
    version: Option<&'a str>,
    /// In thousandths.
    weight: u16,
}

/// The format for a value of `Accept`; the plain text where nothing is asked for that we have.
#[must_use]
pub(crate) fn format(accept: &str) -> Format {
    let mut best = (Format::Plain, 0);
    for range in ranges(accept) {
        if let Some(format) = range.format().filter(|_| range.weight > best.1) {
            best = (format, range.weight);
        }
    }
    best.0
}

/// Whether a value of `Accept-Encoding` takes gzip.
#[must_use]
pub(crate) fn gzip(accept_encoding: &str) -> bool {
    let weight_of = |wanted: &str| {
        let fits = |range: &Range<'_>| range.name.eq_ignore_ascii_case(wanted);
        ranges(accept_encoding).find(fits).map(|range| range.weight)
    };
    let weight = weight_of("gzip")
        .or_else(|| weight_of("x-gzip"))
        .or_else(|| weight_of("*"));
    weight.is_some_and(|weight| weight > 0)
}

impl Range<'_> {
    fn format(&self) -> Option<Format> {
        let is = |name: &str| self.name.eq_ignore_ascii_case(name);
        if is("application/openmetrics-text") {
            let known = matches!(self.version, None | Some("0.0.1" | "1.0.0"));
            return known.then_some(Format::OpenMetrics);
        }
        if is("text/plain") {
            return matches!(self.version, None | Some("0.0.4" | "1.0.0")).then_some(Format::Plain);
        }
        (is("*/*") || is("text/*")).then_some(Format::Plain)
    }
}

fn ranges(list: &str) -> impl Iterator<Item = Range<'_>> {
    list.split(',').map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let mut range = Range {
            name: parts.next().unwrap_or_default(),
            version: None,
            weight: 1000,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim() {
                "q" | "Q" => range.weight = weight(value),
                "version" => range.version = Some(value),
                _ => {}
            }
        }
        range
    })
}

/// `0.25` as 250; what is no number is 0, so that it is asked for least.
fn weight(text: &str) -> u16 {
    let number = text.parse::<f32>().unwrap_or(0.0);
    // a float is cut to the range of the integer, and what is no number is 0
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let thousandths = (number.clamp(0.0, 1.0) * 1000.0) as u16;
    thousandths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Prometheus 2.53 sends.
    const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;\
        version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

    #[test]
    fn the_heaviest_range_that_is_ours_wins() {
        for (accept, expected) in [
            ("", Format::Plain),
            ("*/*", Format::Plain),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Format::Plain),
            (PROMETHEUS, Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", Format::OpenMetrics),
            ("application/openmetrics-text;version=9.0.0,text/plain", Format::Plain),
            ("application/openmetrics-text;q=0.1, text/plain;q=0.2", Format::Plain),
            (
                "text/plain;q=0.1, application/openmetrics-text;q=0.2",
                Format::OpenMetrics,
            ),
            ("application/openmetrics-text;q=0", Format::Plain),
            ("application/json", Format::Plain),
            ("application/openmetrics-text;q=x", Format::Plain),
        ] {
            assert_eq!(format(accept), expected, "{accept}");
        }
    }

    #[test]
    fn gzip_is_given_to_who_takes_it() {
        for taken in ["gzip", "deflate, gzip;q=0.5", "GZIP", "x-gzip", "*", "br;q=1, *;q=0.1"] {
            assert!(gzip(taken), "{taken}");
        }
        for refused in [
            "",
            "identity",
            "gzip;q=0",
            "gzip;q=0, *",
            "deflate",
            "gzip;q=-1",
            "gzip;q=nan",
        ] {
            assert!(!gzip(refused), "{refused}");
        }
    }
}
