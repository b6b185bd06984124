//! Words that all texts about memory share.

use crate::catalog::Family;
use crate::model::memory::{HOST, ProcessReport, Report, UNKNOWN_DEVICE};
use crate::text::quantity::{duration, escaped};

const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;

/// `python 1234`.
pub(crate) fn name(process: &ProcessReport) -> String {
    match process.comm.as_str() {
        "" => format!("process {}", process.pid),
        comm => format!("{} {}", escaped(comm), process.pid),
    }
}

/// Where memory lies.
pub(crate) fn place(device: i16) -> String {
    match device {
        HOST => "host".to_owned(),
        UNKNOWN_DEVICE => "unknown device".to_owned(),
        number => format!("device {number}"),
    }
}

/// How long something has been there.
pub(crate) fn age(ns: u64) -> String {
    match ns {
        _ if ns < 2 * MINUTE_NS => duration(ns),
        _ if ns < 2 * HOUR_NS => format!("{} min", ns / MINUTE_NS),
        _ => format!("{:.1} h", ns as f64 / HOUR_NS as f64),
    }
}

/// What a family is, where its name does not say it.
pub(crate) fn explained(family: Family) -> &'static str {
    match family {
        Family::Device => "cuMemAlloc and its like",
        Family::Managed => "moves between host and device",
        Family::Async => "stream-ordered, from a pool",
        Family::Physical => "cuMemCreate",
        Family::Array => "cuArrayCreate",
        Family::Mipmapped => "cuMipmappedArrayCreate",
        Family::Graph => "allocated by graphs",
        Family::Pinned => "host memory that the driver allocated",
        Family::Registered => "the program's own host memory, pinned",
        Family::Reserved => "addresses without memory",
        Family::Mapped => "physical memory at its addresses",
        Family::Ipc => "another process's memory",
        Family::External => "another API's memory",
        Family::View => "a window on another API's memory",
        Family::Imported => "physical memory of another process",
        Family::Tensor => "handed out by a framework, of memory above",
        Family::Multicast => "objects that several devices write to",
    }
}

/// Seconds after the beginning.
pub(super) fn since(report: &Report, at: u64) -> f64 {
    at.saturating_sub(report.started_at) as f64 / 1e9
}

/// How old what is outstanding is.
pub(super) fn ages(oldest_ns: u64, newest_ns: u64, outstanding: u64) -> String {
    match outstanding {
        1 => format!("{} old", age(oldest_ns)),
        _ => format!("oldest {}, newest {}", age(oldest_ns), age(newest_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_as_long_as_it_sounds() {
        assert_eq!(age(90_000_000_000), "90.00 s");
        assert_eq!(age(3 * MINUTE_NS + 1), "3 min");
        assert_eq!(age(9 * HOUR_NS / 2), "4.5 h");
    }
}
