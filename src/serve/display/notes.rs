//! What went wrong, what was lost, and what gpuscope costs.

use super::owners::who;
use super::pace::Rates;
use super::reading::{label, number, of, total};
use super::units::fine_percent;
use super::{Line, Look};
use crate::serve::metric::Sample;
use crate::text::quantity::{bytes, count as whole, escaped, plural};

/// Errors shown by name.
const ERRORS: usize = 4;
/// What NVML said longer ago is said to be old.
const OLD_SECONDS: f64 = 10.0;

pub(crate) fn lines(scrape: &[Sample], rates: &Rates) -> Vec<Line> {
    let mut lines = errors(scrape, rates);
    lines.extend(xids(scrape, rates));
    lines.extend(lost(scrape, rates));
    lines.extend(left_out(scrape));
    lines.extend(cost(scrape, rates));
    lines
}

/// Nothing is known of devices, or it is old.
pub(crate) fn nvml(scrape: &[Sample]) -> Option<Line> {
    let value = |name| of(scrape, name).map(number).next();
    if value("gpuscope_nvml_up") == Some(0.0) {
        let words = "NVML does not answer: nothing is known of devices (gpuscope doctor says why)";
        return Some((Look::Wrong, words.to_owned()));
    }
    let age = value("gpuscope_nvml_age_seconds").filter(|age| *age > OLD_SECONDS)?;
    Some((Look::Wrong, format!("what NVML said of devices is {age:.0} s old")))
}

/// `, 3 of them new`.
fn new(growth: Option<f64>) -> String {
    match growth {
        Some(growth) if growth > 0.0 => format!(", {} new", whole(growth as u64)),
        _ => String::new(),
    }
}

/// The newest first, then the most frequent.
fn errors(scrape: &[Sample], rates: &Rates) -> Vec<Line> {
    let mut all: Vec<(f64, f64, String)> = of(scrape, "gpuscope_api_errors_total")
        .map(|sample| {
            let growth = rates.growth(sample);
            let owner = sample
                .owner
                .as_deref()
                .map_or_else(String::new, |owner| format!("; {}", who(owner)));
            let (error, function) = (escaped(label(sample, "error")), escaped(label(sample, "function")));
            let times = whole(number(sample) as u64);
            let words = format!("{error} of {function}: {times}{}{owner}", new(growth));
            (growth.unwrap_or(0.0), number(sample), words)
        })
        .collect();
    all.sort_by(|left, right| {
        let first = right.0.total_cmp(&left.0).then(right.1.total_cmp(&left.1));
        first.then_with(|| left.2.cmp(&right.2))
    });
    let look = |growth: f64| if growth > 0.0 { Look::Wrong } else { Look::Plain };
    let shown = all.iter().take(ERRORS);
    let mut lines: Vec<Line> = shown.map(|(growth, _, words)| (look(*growth), words.clone())).collect();
    if all.len() > ERRORS {
        let rest = all.len() - ERRORS;
        lines.push((Look::Plain, format!("… and {rest} more kinds of errors")));
    }
    lines
}

pub(crate) fn xids(scrape: &[Sample], rates: &Rates) -> Option<Line> {
    let one = |sample: &Sample| {
        let (code, gpu) = (escaped(label(sample, "xid")), escaped(label(sample, "gpu")));
        format!(
            "{code} of GPU {gpu}: {}{}",
            whole(number(sample) as u64),
            new(rates.growth(sample))
        )
    };
    let all: Vec<String> = of(scrape, "gpuscope_gpu_xid_errors_total")
        .filter(|sample| number(sample) > 0.0)
        .map(one)
        .collect();
    (!all.is_empty()).then(|| (Look::Wrong, format!("Xid {}", all.join("; "))))
}

/// Of a reason of `gpuscope_lost_records_total`: what was lost.
fn lost_things(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "memory_ring" => "records of memory calls",
        "call_ring" => "rows of calls for the black box",
        "work_ring" => "records of launches, copies, waits",
        "driver_shares" => "times in the driver",
        "notices" => "notices of processes and files",
        "process_table" => "calls of too many processes",
        "late_probes" => "loads of libraries that ran before their probes were there",
        "nested_too_deeply" => "calls nested too deeply",
        "malformed" => "malformed records",
        _ => return None,
    })
}

pub(crate) fn lost(scrape: &[Sample], rates: &Rates) -> Option<Line> {
    let one = |sample: &Sample| {
        let reason = label(sample, "reason");
        let things = lost_things(reason).map_or_else(|| escaped(reason), str::to_owned);
        format!("{} {things}{}", whole(number(sample) as u64), new(rates.growth(sample)))
    };
    let all: Vec<String> = of(scrape, "gpuscope_lost_records_total")
        .filter(|sample| number(sample) > 0.0)
        .map(one)
        .collect();
    (!all.is_empty()).then(|| (Look::Wrong, format!("lost: {}", all.join("; "))))
}

/// Gaps, owners and series.
fn left_out(scrape: &[Sample]) -> Option<Line> {
    let some = |name, words: fn(u64) -> String| {
        total(scrape, name)
            .filter(|count| *count > 0.0)
            .map(|count| words(count as u64))
    };
    let all: Vec<String> = [
        some("gpuscope_coverage_gaps", |gaps| {
            format!("{} in coverage, which the landing page names", plural(gaps, "gap"))
        }),
        some("gpuscope_owners_merged_total", |merged| {
            format!("{} counted as other (--max-owners)", plural(merged, "process"))
        }),
        some("gpuscope_series_dropped", |dropped| {
            format!("{} series left out (--max-series)", whole(dropped))
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!all.is_empty()).then(|| (Look::Wrong, format!("not seen: {}", all.join("; "))))
}

/// Of gpuscope, and of its probes in the programs.
pub(crate) fn cost(scrape: &[Sample], rates: &Rates) -> Option<Line> {
    let share = |name| of(scrape, name).next().and_then(|sample| rates.per_second(sample));
    let own = share("process_cpu_seconds_total").map(|share| format!("{} of a core", fine_percent(share)));
    let memory = total(scrape, "process_resident_memory_bytes").map(|rss| bytes(rss as u64));
    let probes = share("gpuscope_probe_seconds_total");
    let probes = probes.map(|share| format!("; its probes take {} from the programs", fine_percent(share)));
    let own: Vec<String> = [own, memory].into_iter().flatten().collect();
    let words = || format!("gpuscope takes {}{}", own.join(", "), probes.unwrap_or_default());
    (!own.is_empty()).then(|| (Look::Plain, words()))
}
