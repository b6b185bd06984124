//! What rows of users' files have summed up, as text and as JSON.

use crate::catalog::Fold;
use crate::frame::Frame;
use crate::frame::json::frame_json;
use crate::frame::lines::frame_lines;
use crate::model::aggregate::{Bucket, GroupName, GroupSums, Kinded, Report, Unit};
use crate::text::quantity::{bytes, count, duration, escaped, plural};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;

/// Groups shown for one row; the rest is one line.
const SHOWN: usize = 20;
/// Columns of the longest bar.
const BAR: u64 = 40;

/// Call stacks by site, innermost frame first.
type Stacks = HashMap<u64, Vec<Frame>>;

/// The reports of all rows as JSON objects.
pub(crate) fn to_json(reports: &[Report], stacks: &Stacks) -> Vec<Value> {
    let report = |report: &Report| {
        let groups = report.groups.iter().map(|group| group_json(report, group, stacks));
        json!({
            "layer": report.layer,
            "name": report.function,
            "aggregate": report.aggregate,
            "filter": Some(&report.filter).filter(|filter| !filter.is_empty()),
            "calls": report.calls,
            "passed": report.passed,
            "unknown": report.unknown,
            "groups": groups.collect::<Vec<_>>(),
        })
    };
    reports.iter().map(report).collect()
}

fn group_json(report: &Report, group: &GroupSums, stacks: &Stacks) -> Value {
    let mut value = json!({"by": name_json(&group.name, stacks), "count": group.count});
    if !matches!(report.fold, Fold::Count) {
        value["sum"] = number_json(group.sum);
    }
    if let Some((smallest, largest)) = group.extremes {
        value["min"] = number_json(smallest);
        value["max"] = number_json(largest);
    }
    if report.fold == Fold::Hist {
        let bucket = |bucket: &Bucket| json!({"from": bucket.from.map(number_json), "to": bucket.to.map(number_json), "count": bucket.count});
        value["buckets"] = group.buckets.iter().map(bucket).collect();
    }
    value
}

/// A number, or text where it is wider than 64 bits.
fn number_json(number: i128) -> Value {
    match (u64::try_from(number), i64::try_from(number)) {
        (Ok(number), _) => json!(number),
        (_, Ok(number)) => json!(number),
        _ => json!(number.to_string()),
    }
}

fn name_json(name: &GroupName, stacks: &Stacks) -> Value {
    match name {
        GroupName::All => Value::Null,
        GroupName::Number(Kinded::Plain(number)) => number_json(*number),
        GroupName::Number(Kinded::Bytes(number) | Kinded::Nanoseconds(number)) => json!(number),
        GroupName::Number(Kinded::Address(address)) => json!(format!("{address:#x}")),
        GroupName::Name(text) | GroupName::Text(text) => json!(text),
        GroupName::Process { pid, comm } => json!({"pid": pid, "comm": comm}),
        GroupName::Thread { pid, tid } => json!({"pid": pid, "tid": tid}),
        GroupName::Stack(site) => stacks.get(site).map_or_else(
            || json!({"unknown": no_stack(*site)}),
            |frames| frames.iter().map(frame_json).collect(),
        ),
    }
}

/// Whether its groups are call stacks.
pub(crate) fn is_by_stack(report: &Report) -> bool {
    let mut groups = report.groups.iter();
    groups.any(|group| matches!(group.name, GroupName::Stack(_)))
}

fn no_stack(site: u64) -> &'static str {
    match site {
        1 => "beyond the budget of stacks per second",
        _ => "its stack could not be kept",
    }
}

/// The reports of all rows as a section of the summary.
pub(crate) fn to_text(reports: &[Report], stacks: &Stacks) -> String {
    let mut out = String::new();
    for report in reports {
        report_text(report, stacks, &mut out);
    }
    out
}

fn report_text(report: &Report, stacks: &Stacks, out: &mut String) {
    let what = report.aggregate.as_ref().map(|what| format!("{} of ", escaped(what)));
    let what = what.unwrap_or_default();
    let _ = write!(
        out,
        "\n{} {}: {what}",
        escaped(&report.layer),
        escaped(&report.function)
    );
    let _ = match report.filter.is_empty() {
        true => writeln!(out, "{}", plural(report.passed, "call")),
        false => writeln!(
            out,
            "{} of {} with {}",
            count(report.passed),
            plural(report.calls, "call"),
            escaped(&report.filter)
        ),
    };
    if report.unknown > 0 {
        let _ = writeln!(
            out,
            "{:>12} calls not in it: what it needs of them could not be read",
            count(report.unknown)
        );
    }
    if report.aggregate.is_none() {
        return;
    }
    for group in report.groups.iter().take(SHOWN) {
        group_text(report, group, stacks, out);
    }
    if report.groups.len() > SHOWN {
        let rest: u64 = report.groups[SHOWN..].iter().map(|group| group.count).sum();
        let _ = writeln!(
            out,
            "{:>12} in {} more groups (--summary json has all)",
            count(rest),
            report.groups.len() - SHOWN
        );
    }
}

fn group_text(report: &Report, group: &GroupSums, stacks: &Stacks, out: &mut String) {
    if report.fold == Fold::Hist {
        if let Some(name) = name_text(&group.name) {
            let _ = writeln!(out, "  {name}: {}", plural(group.count, "call"));
        }
        stack_text(&group.name, stacks, out);
        histogram_text(report.unit, &group.buckets, out);
        return;
    }
    let _ = write!(out, "{:>12}", first_column(report, group));
    let _ = match report.fold {
        Fold::Stats => write!(out, "  {}", stats_text(report.unit, group)),
        Fold::Count => Ok(()),
        _ => write!(out, "  in {}", plural(group.count, "call")),
    };
    let _ = match name_text(&group.name) {
        Some(name) => writeln!(out, "  {name}"),
        None => writeln!(out),
    };
    stack_text(&group.name, stacks, out);
}

fn first_column(report: &Report, group: &GroupSums) -> String {
    match (report.fold, group.extremes) {
        (Fold::Sum, _) => amount(report.unit, group.sum),
        (Fold::Min, Some((smallest, _))) => amount(report.unit, smallest),
        (Fold::Max, Some((_, largest))) => amount(report.unit, largest),
        _ => count(group.count),
    }
}

fn stats_text(unit: Unit, group: &GroupSums) -> String {
    let (smallest, largest) = group.extremes.unwrap_or_default();
    let mean = group.sum / i128::from(group.count.max(1));
    format!(
        "sum {}, mean {}, min {}, max {}",
        amount(unit, group.sum),
        amount(unit, mean),
        amount(unit, smallest),
        amount(unit, largest)
    )
}

fn amount(unit: Unit, number: i128) -> String {
    let size = u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX);
    let text = match unit {
        Unit::Plain => count(size),
        Unit::Bytes => bytes(size),
        Unit::Nanoseconds => duration(size),
    };
    if number < 0 { format!("-{text}") } else { text }
}

fn name_text(name: &GroupName) -> Option<String> {
    Some(match name {
        GroupName::All | GroupName::Stack(_) => return None,
        GroupName::Number(Kinded::Plain(number)) => amount(Unit::Plain, *number),
        GroupName::Number(Kinded::Bytes(number)) => amount(Unit::Bytes, i128::from(*number)),
        GroupName::Number(Kinded::Nanoseconds(number)) => amount(Unit::Nanoseconds, i128::from(*number)),
        GroupName::Number(Kinded::Address(address)) => format!("{address:#x}"),
        GroupName::Name(text) => escaped(text),
        GroupName::Text(text) => format!("\"{}\"", escaped(text)),
        GroupName::Process { pid, comm } => format!("{} {pid}", escaped(comm.as_deref().unwrap_or("?"))),
        GroupName::Thread { pid, tid } => format!("{pid}/{tid}"),
    })
}

fn stack_text(name: &GroupName, stacks: &Stacks, out: &mut String) {
    let GroupName::Stack(site) = name else { return };
    match stacks.get(site) {
        Some(frames) => {
            for line in frame_lines(frames) {
                let _ = writeln!(out, "{:14}{line}", "");
            }
        }
        None => drop(writeln!(out, "{:14}({})", "", no_stack(*site))),
    }
}

fn histogram_text(unit: Unit, buckets: &[Bucket], out: &mut String) {
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1).max(1);
    for bucket in buckets {
        let bar = (u128::from(bucket.count) * u128::from(BAR) / u128::from(most)) as usize;
        let _ = writeln!(
            out,
            "  {:>24} {:>12} |{:<width$}|",
            range(unit, bucket),
            count(bucket.count),
            "@".repeat(bar),
            width = BAR as usize
        );
    }
}

fn range(unit: Unit, bucket: &Bucket) -> String {
    match (bucket.from, bucket.to) {
        (None, _) => "less than 0".to_owned(),
        (Some(0), Some(1)) => "0".to_owned(),
        (Some(from), Some(to)) => format!("{} to < {}", whole(unit, from), whole(unit, to)),
        (Some(from), None) => format!("{} or more", whole(unit, from)),
    }
}

/// A power of two, exactly.
fn whole(unit: Unit, number: i128) -> String {
    match unit {
        Unit::Plain => count(u64::try_from(number).unwrap_or(u64::MAX)),
        Unit::Nanoseconds => format!("{} ns", count(u64::try_from(number).unwrap_or(u64::MAX))),
        Unit::Bytes => bytes(u64::try_from(number).unwrap_or(u64::MAX)).replace(".0 ", " "),
    }
}

#[cfg(test)]
#[path = "aggregate_tests.rs"]
mod tests;
