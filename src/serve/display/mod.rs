//! `--display-interval`: a page for people, of the same samples that everybody gets.
//!
//! ```text
//!  samples ─► pace (what grew since the page before) ─► devices, owners, kernels, notes ─► table (columns) ─► page
//! ```
//!
//! Owns words and layout; where and when pages are printed is the command's business.

mod columns;
mod devices;
pub(crate) mod kernels;
pub(crate) mod notes;
pub(crate) mod owners;
mod pace;
pub(crate) mod reading;
pub(crate) mod units;
pub(crate) mod waited;

pub use pace::Pace;
pub(crate) use pace::Rates;

use super::metric::Sample;
use crate::text::quantity::plural;
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
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Heading,
    Wrong,
}

pub(crate) type Line = (Look, String);

/// A page about `scrape`, ends with a line end.
#[must_use]
pub fn page(scrape: &[Sample], rates: &Rates, view: View) -> String {
    let mut lines = vec![title(scrape, rates)];
    lines.extend(devices::lines(scrape));
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
    lines.extend(owners::lines(scrape, rates, view.top.min(room)));
    lines.extend(kernels);
    lines.extend(notes);
    lines.iter().fold(String::new(), |mut out, line| {
        write_line(line, view, &mut out);
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

fn write_line((look, text): &Line, view: View, out: &mut String) {
    let cut = match view.width {
        Some(width) if text.chars().count() > width => {
            let kept: String = text.chars().take(width.saturating_sub(1)).collect();
            format!("{kept}…")
        }
        _ => text.clone(),
    };
    let _ = match (view.colour, look) {
        (true, Look::Heading) => writeln!(out, "{BOLD}{cut}{PLAIN}"),
        (true, Look::Wrong) => writeln!(out, "{RED}{cut}{PLAIN}"),
        _ => writeln!(out, "{cut}"),
    };
}
