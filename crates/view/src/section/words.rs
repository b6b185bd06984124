//! Numbers as people read them, which are neither counts, sizes nor durations.

use crate::text::quantity::count;

/// A moment of the trace: `12.345 s`.
#[must_use]
pub(crate) fn at(at_ns: i64) -> String {
    format!("{:.3} s", at_ns as f64 / 1e9)
}

/// `12.3 %`.
#[must_use]
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `1,234.5 h`, `0.05 h`: devices' time.
#[must_use]
pub(crate) fn hours(seconds: f64) -> String {
    let hours = seconds / 3600.0;
    match hours {
        _ if hours >= 1000.0 => {
            let tenths = (hours * 10.0).round() as u64;
            format!("{}.{} h", count(tenths / 10), tenths % 10)
        }
        _ if hours >= 10.0 || hours == 0.0 => format!("{hours:.1} h"),
        _ => format!("{hours:.2} h"),
    }
}

/// `+12.3 %`, `× 76`; `-`: there is nothing to compare with.
#[must_use]
pub(crate) fn change(change: Option<f64>) -> String {
    match change {
        None => "-".to_owned(),
        Some(change) if change >= 9.0 => format!("× {:.0}", change + 1.0),
        Some(change) => format!("{:+.1} %", change * 100.0),
    }
}

/// `12,345/s`, `0.5/s`: no more digits than it is worth.
#[must_use]
pub(crate) fn per_second(rate: f64) -> String {
    match rate {
        _ if rate >= 100.0 => format!("{}/s", count(rate.round() as u64)),
        _ => format!("{rate:.1}/s"),
    }
}

/// `12.3 GB/s`, in powers of ten as bandwidths are.
#[must_use]
pub(crate) fn bandwidth(bytes_per_second: f64) -> String {
    let units = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    let unit = units.into_iter().find(|(scale, _)| bytes_per_second >= *scale);
    let (scale, name) = unit.unwrap_or((1.0, "B/s"));
    format!("{:.1} {name}", bytes_per_second / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_naturally() {
        assert_eq!(bandwidth(12.34e9), "12.3 GB/s");
        assert_eq!(percent(0.1234), "12.3 %");
        let seconds = [0.0, 180.0, 126_000.0, 4_444_200.0];
        assert_eq!(seconds.map(hours), ["0.0 h", "0.05 h", "35.0 h", "1,234.5 h"]);
        assert_eq!([12_345.4, 0.5].map(per_second), ["12,345/s", "0.5/s"]);
        assert_eq!([Some(-0.5), Some(75.0), None].map(change), ["-50.0 %", "× 76", "-"]);
        assert_eq!(at(12_345_678_901), "12.346 s");
    }
}
