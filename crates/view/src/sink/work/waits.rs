//! Where threads waited for a device: by function and stream, then waits that the program does not seem to ask for.

use super::Stacks;
use super::words::{hidden, name, stream};
use crate::model::work::{Certainty, ProcessReport};
use crate::sink::memory::Apart;
use crate::text::quantity::{count, duration, escaped, plural};
use std::collections::BTreeMap;
use std::fmt::Write;

const SHOWN: usize = 8;
const SITES: usize = 3;

/// Waits of one kind, from everywhere.
#[derive(Default)]
struct Line {
    what: String,
    count: u64,
    total_ns: u64,
    /// `None`: not kept.
    max_ns: Option<u64>,
    /// Not all of that time need have been spent waiting.
    at_most: bool,
    /// Time and calls by call site.
    sites: BTreeMap<u64, (u64, u64)>,
}

/// What waits, most time first.
pub(crate) fn section(processes: &[ProcessReport], stacks: &Stacks, out: &mut String) {
    let (waits, hidden) = (waits(processes), hidden_waits(processes));
    if waits.is_empty() && hidden.is_empty() {
        return;
    }
    out.push('\n');
    if !waits.is_empty() {
        heading(&waits, out);
        list(&waits, stacks, out);
    }
    if !hidden.is_empty() {
        let legend = match hidden.iter().any(|line| line.at_most) {
            true => "; ≤: inferred, not all of the time in the calls need be waiting",
            false => "",
        };
        let what = "waits that nobody asked for (some may be among those above";
        let _ = writeln!(out, "{:>12} {:>10}  {what}{legend})", "total", "calls");
        list(&hidden, stacks, out);
    }
}

fn heading(waits: &[Line], out: &mut String) {
    let total = waits.iter().fold(0u64, |sum, line| sum.saturating_add(line.total_ns));
    let calls = waits.iter().fold(0u64, |sum, line| sum.saturating_add(line.count));
    let _ = writeln!(
        out,
        "waiting for the GPU: {} in {}, all threads together",
        duration(total),
        plural(calls, "call")
    );
    let _ = writeln!(
        out,
        "{:>12} {:>10} {:>10} {:>10}  call",
        "total", "calls", "mean", "max"
    );
}

fn list(lines: &[Line], stacks: &Stacks, out: &mut String) {
    for line in lines.iter().take(SHOWN) {
        row(line, stacks, out);
    }
    let rest = lines.get(SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let total = rest.iter().fold(0u64, |sum, line| sum.saturating_add(line.total_ns));
        let _ = writeln!(
            out,
            "{:>12} in {} more (--summary json has all)",
            duration(total),
            rest.len()
        );
    }
}

fn row(line: &Line, stacks: &Stacks, out: &mut String) {
    let total = match line.at_most {
        true => format!("≤ {}", duration(line.total_ns)),
        false => duration(line.total_ns),
    };
    let _ = write!(out, "{total:>12} {:>10}", count(line.count));
    if let Some(max_ns) = line.max_ns {
        let mean = line.total_ns.checked_div(line.count).unwrap_or(0);
        let _ = write!(out, " {:>10} {:>10}", duration(mean), duration(max_ns));
    }
    let _ = write!(out, "  {}", line.what);
    let places = places(line, stacks);
    if let [([_, calls], place)] = places.as_slice()
        && *calls == line.count
    {
        let _ = writeln!(out, ", from {place}");
        return;
    }
    out.push('\n');
    for ([total, calls], place) in places.iter().take(SITES) {
        let calls = plural(*calls, "call");
        let _ = writeln!(out, "{:>16} in {calls} from {place}", duration(*total));
    }
}

/// Time, calls and place of those call sites that are known, most time first.
fn places(line: &Line, stacks: &Stacks) -> Vec<([u64; 2], String)> {
    let sites = line.sites.iter();
    let known = sites.filter_map(|(site, (total, calls))| Some((stacks.get(site)?.as_slice(), [*total, *calls])));
    Apart::sums(&known.collect::<Vec<_>>())
}

fn waits(processes: &[ProcessReport]) -> Vec<Line> {
    let mut lines: BTreeMap<_, Line> = BTreeMap::new();
    for (index, process) in processes.iter().enumerate() {
        for wait in &process.waits {
            let line = lines.entry((index, &wait.function, wait.stream)).or_default();
            let of = wait.stream.map_or("whole context".to_owned(), stream);
            line.what = format!("{}, {of}{}", escaped(&wait.function), whose(process, processes));
            line.max_ns = line.max_ns.max(Some(wait.max_ns));
            line.add(wait.site, wait.count, wait.total_ns);
        }
    }
    most_first(lines.into_values())
}

fn hidden_waits(processes: &[ProcessReport]) -> Vec<Line> {
    let mut lines: BTreeMap<_, Line> = BTreeMap::new();
    for (index, process) in processes.iter().enumerate() {
        for wait in &process.hidden {
            let line = lines.entry((index, wait.kind, wait.certainty)).or_default();
            line.what = format!("{}{}", hidden(wait.kind), whose(process, processes));
            line.at_most = wait.certainty != Certainty::Measured;
            line.add(wait.site, wait.count, wait.total_ns);
        }
    }
    most_first(lines.into_values())
}

/// Said only where there are several.
fn whose(process: &ProcessReport, all: &[ProcessReport]) -> String {
    match all.len() {
        1 => String::new(),
        _ => format!(", {}", name(process)),
    }
}

fn most_first(lines: impl Iterator<Item = Line>) -> Vec<Line> {
    let mut lines: Vec<Line> = lines.collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.total_ns));
    lines
}

impl Line {
    fn add(&mut self, site: u64, calls: u64, total_ns: u64) {
        self.count = self.count.saturating_add(calls);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        let sum = self.sites.entry(site).or_default();
        *sum = (sum.0.saturating_add(total_ns), sum.1.saturating_add(calls));
    }
}
