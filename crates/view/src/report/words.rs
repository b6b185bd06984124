//! Words that every output of a report shares. What comes from the trace is not escaped here.

use super::{Copies, Hidden, Report, sum};
use crate::model::finding::Moment;
use crate::model::snapshot::{Figure, View};
use crate::model::work::{GraphReport, HiddenKind};
pub(crate) use crate::section::words::{at, bandwidth, per_second, percent};
pub(super) use crate::sink::findings::{at as at_place, cost, headline, place, stack};
use crate::sink::work::{graph_words, hidden_words};
use crate::text::quantity::{count, date, duration, plural};

/// The traced command, or the file.
#[must_use]
pub(crate) fn title(report: &Report) -> String {
    let command = report.source.meta.as_ref().map(|meta| meta.command.join(" "));
    command
        .filter(|command| !command.is_empty())
        .unwrap_or_else(|| report.source.name.clone())
}

/// Where, when, how long, and from what.
#[must_use]
pub(crate) fn circumstances(report: &Report) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(meta) = &report.source.meta {
        if !meta.host.is_empty() {
            words.push(format!("on {}", meta.host));
        }
        words.push(format!("{} UTC", moment_utc(meta.clock.start_unix_ns)));
    }
    words.push(format!("{} from first to last call", duration(report.wall_ns())));
    words.push(plural(report.source.rows, "row"));
    words
}

/// `2026-11-22 08:41:37`, of ns since 1970.
#[must_use]
pub(crate) fn moment_utc(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let day = date((seconds / 86_400) as i64);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{day} {hour:02}:{minute:02}:{second:02}")
}

/// `1,234`, and which layer it is of where that is not the driver's.
#[must_use]
pub(crate) fn figure(figure: Figure) -> String {
    let note = figure.note().map_or_else(String::new, |note| format!(" ({note})"));
    format!("{}{note}", count(figure.number))
}

/// What graphs did, a line each; none where there are none or it is not known.
#[must_use]
pub(crate) fn graphs(report: &Report) -> Vec<String> {
    let graphs = report.graphs().unwrap_or_default();
    graph_words(&GraphReport {
        launches: graphs.launches,
        known_launches: graphs.known_launches,
        kernels: graphs.kernels,
        copies: graphs.copies,
        memsets: graphs.memsets,
        captured: graphs.captured,
    })
}

/// `9,921 launches of 16, graphs ran 1,200 more`.
#[must_use]
pub(crate) fn kernels(report: &Report) -> String {
    let launches = sum(report.kernels.iter().map(|kernel| kernel.launches));
    let in_graphs = sum(report.kernels.iter().filter_map(|kernel| kernel.in_graphs));
    let more = match in_graphs {
        0 => String::new(),
        more => format!(", graphs ran {} more", count(more)),
    };
    let kinds = count(report.kernels.len() as u64);
    format!("{} of {kinds}{more}", plural(launches, "launch"))
}

/// `1.2 s in calls, all threads together`, and which layer that is of where it is not the driver's.
#[must_use]
pub(crate) fn waiting(report: &Report) -> String {
    let layer = match report.wait_calls.view {
        View::Driver => "",
        View::Runtime => " (runtime layer)",
    };
    format!("{} in calls, all threads together{layer}", duration(report.wait_ns()))
}

/// `≤ 937.0 ms in calls that nobody asked to wait`; `None`: there are none.
#[must_use]
pub(crate) fn unasked(report: &Report) -> Option<String> {
    let (ns, measured) = report.hidden_ns();
    let sign = if measured { "" } else { "≤ " };
    (ns > 0).then(|| format!("{sign}{} in calls that nobody asked to wait", duration(ns)))
}

/// Why such calls wait.
#[must_use]
pub(crate) fn hidden(wait: &Hidden) -> String {
    let known = HiddenKind::from_name(&wait.kind);
    known.map_or_else(|| wait.kind.clone(), |kind| hidden_words(kind).to_owned())
}

/// `host → device, pinned memory, blocking`.
#[must_use]
pub(crate) fn copies(copies: &Copies) -> String {
    let direction = match copies.direction.as_deref() {
        Some("HtoD") => "host → device",
        Some("DtoH") => "device → host",
        Some("DtoD") => "within a device",
        Some("PtoP") => "device → device",
        Some("HtoH") => "host → host",
        _ => "direction not known",
    };
    let host = match copies.host.as_deref() {
        Some("unknown") => ", host memory pinned or not",
        Some("pinned") => ", pinned memory",
        Some("pageable") => ", pageable memory",
        Some("managed") => ", managed memory",
        _ => "",
    };
    let manner = if copies.blocking { "blocking" } else { "asynchronous" };
    format!("{direction}{host}, {manner}")
}

/// `at 3.204 s for 12.3 ms: cudaMalloc of thread 1240`.
#[must_use]
pub(crate) fn moment(moment: &Moment) -> String {
    let length = match moment.ns {
        0 => String::new(),
        ns => format!(" for {}", duration(ns)),
    };
    let name = match moment.name.as_str() {
        "" => "nothing at work".to_owned(),
        name => name.to_owned(),
    };
    // what a device did is of no thread
    let thread = match moment.tid {
        0 => String::new(),
        tid => format!(", thread {tid}"),
    };
    format!("at {}{length}: {name}{thread}", at(moment.at))
}

/// What a report without findings says.
#[must_use]
pub(crate) fn healthy(report: &Report) -> String {
    match (&report.not_looked_for, report.run.weakness(|_| true)) {
        (Some(why), _) => format!("findings: not looked for: {why}"),
        (None, Some(_)) => "no findings in the calls that have rows; others were lost".to_owned(),
        (None, None) => match report.unexplained() {
            Some(_) => "no findings".to_owned(),
            None => "no findings: none of the rules applies".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(moment_utc(0), "1970-01-01 00:00:00");
        assert_eq!(moment_utc(951_782_400_000_000_000), "2000-02-29 00:00:00");
        assert_eq!(moment_utc(1_700_000_000_000_000_000), "2023-11-14 22:13:20");
        assert_eq!(moment_utc(4_107_542_399_000_000_000), "2100-02-28 23:59:59");
    }
}
