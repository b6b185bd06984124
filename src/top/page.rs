//! The page of `serve --display-interval`: devices and owners as the screen has them, and of all owners together the busiest
//! kernels, what fails, and what is not seen.
//!
//! Owns which of that is on a page, and in which order. Where and when pages are printed is the command's business.

use super::cells::{bytes, count, cut};
use super::columns::{COLUMNS, Column, fitting, line, mark};
use super::model::{self, Process, rate};
use super::view::devices;
use crate::serve::display::{Line, Look, Rates, kernels, notes, reading};
use crate::serve::metric::Sample;
use crate::text::quantity::{count as whole, plural};
use std::fmt::Write;

/// How a page is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Columns, longer lines are cut; `None`: there is no end.
    pub width: Option<usize>,
    /// Lines; fewer owners are shown where it would be longer. `None`: no end.
    pub height: Option<usize>,
    /// Owners shown at most.
    pub top: usize,
    /// Headings in bold, what is wrong in red; for terminals alone.
    pub colour: bool,
}

/// Of owners, where a page has no room.
const FEWEST: usize = 3;
/// Of kernels, and the part of a page's lines that they take at most.
const KERNELS: usize = 5;
const KERNEL_SHARE: usize = 8;
/// As wide as nothing that is shown.
const ENDLESS: usize = 4096;
/// What is of one process alone is in no row of an owner; kernels have lines of their own.
const NOT_OF_OWNERS: [&str; 8] = ["pid", "user", "grow/s", "stuck", "cost", "kernel", "rank", "where"];
/// The column that has what an owner is called.
const NAMED: &str = "command";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// A page about `scrape`, ends with a line end.
#[must_use]
pub fn page(scrape: &[Sample], rates: &Rates, view: View) -> String {
    let width = view.width.unwrap_or(ENDLESS);
    let mut owners = model::owners(scrape, rates);
    let devices = model::devices_of(scrape, rates, &owners);
    let mut lines = vec![title(scrape, rates)];
    lines.extend(devices::lines(&devices, None, width));
    lines.extend(notes::nvml(scrape));
    let notes = notes::lines(scrape, rates);
    let most = view
        .height
        .map_or(KERNELS, |height| (height / KERNEL_SHARE).min(KERNELS));
    let kernels = kernels::lines(scrape, rates, most);
    // one for the heading, one for how many more there are
    let taken = lines.len() + notes.len() + kernels.len() + 2;
    let room = view
        .height
        .map_or(view.top, |height| height.saturating_sub(taken).max(FEWEST));
    owners.sort_by(busiest_first);
    lines.extend(rows(&owners, width, view.top.min(room)));
    lines.extend(kernels);
    lines.extend(notes);
    lines.iter().fold(String::new(), |mut out, line| {
        write_line(line, width, view.colour, &mut out);
        out
    })
}

fn title(scrape: &[Sample], rates: &Rates) -> Line {
    let processes = reading::total(scrape, "gpuscope_traced_processes");
    let over = match rates.over_seconds {
        Some(seconds) => format!("; rates over {seconds:.1} s"),
        None => "; rates with the next page".to_owned(),
    };
    let devices = reading::of(scrape, "gpuscope_gpu_info").count() as u64;
    let devices = (devices > 0).then(|| format!(", {}", plural(devices, "GPU")));
    let traced = processes.map(|count| format!(", {} traced", plural(count as u64, "process")));
    let known: String = devices.into_iter().chain(traced).collect();
    let words = format!("gpuscope at {:.0} s{known}{over}", rates.at_seconds);
    (Look::Heading, words)
}

/// Who holds most, then who calls most.
fn busiest_first(left: &Process, right: &Process) -> std::cmp::Ordering {
    let busy = |owner: &Process| [owner.held_bytes, rate(owner.calls)].map(|value| value.unwrap_or(0.0));
    let ([held, calls], [other_held, other_calls]) = (busy(left), busy(right));
    let first = other_held.total_cmp(&held).then(other_calls.total_cmp(&calls));
    first.then_with(|| left.command.cmp(&right.command))
}

/// The heading, a line for each of the first `top`, and what the others do in sum.
fn rows(owners: &[Process], width: usize, top: usize) -> Vec<Line> {
    if owners.is_empty() {
        return Vec::new();
    }
    let (shown, rest) = owners.split_at(top.min(owners.len()));
    let says = |column: &Column<Process>| {
        let is_of_owners = !NOT_OF_OWNERS.contains(&column.title);
        is_of_owners && shown.iter().any(|owner| (column.text)(owner).is_some())
    };
    let chosen = fitting(&COLUMNS, width, says);
    let heading = line(&COLUMNS, &chosen, width, |column| match column.title {
        NAMED => "who".to_owned(),
        title => title.to_owned(),
    });
    let cell = |owner: &Process, column: &Column<Process>| match column.title {
        NAMED => format!("{}{}", mark(owner), owner.command),
        _ => (column.text)(owner).unwrap_or_else(|| "-".to_owned()),
    };
    let row = |owner: &Process| {
        let text = line(&COLUMNS, &chosen, width, |column| cell(owner, column));
        let fails = rate(owner.errors).is_some_and(|errors| errors > 0.0);
        (if fails { Look::Wrong } else { Look::Plain }, text)
    };
    let heading = std::iter::once((Look::Heading, heading));
    let more = (!rest.is_empty()).then(|| (Look::Plain, more(rest)));
    heading.chain(shown.iter().map(row)).chain(more).collect()
}

/// What is not shown, in sum.
fn more(rest: &[Process]) -> String {
    let sum = |of: fn(&Process) -> Option<f64>| rest.iter().filter_map(of).sum::<f64>();
    let (calls, held) = (count(sum(|one| rate(one.calls))), bytes(sum(|one| one.held_bytes)));
    format!("… and {} more: {calls} calls/s, {held} held", whole(rest.len() as u64))
}

fn write_line((look, text): &Line, width: usize, colour: bool, out: &mut String) {
    let cut = cut(text.trim_end(), width);
    let _ = match (colour, look) {
        (true, Look::Heading) => writeln!(out, "{BOLD}{cut}{PLAIN}"),
        (true, Look::Wrong) => writeln!(out, "{RED}{cut}{PLAIN}"),
        _ => writeln!(out, "{cut}"),
    };
}
