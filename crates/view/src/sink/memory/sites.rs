//! Who asked for what is outstanding, most bytes first.

use super::view::View;
use super::words::{ages, place, since};
use crate::catalog::{Family, Holder};
use crate::frame::Language;
use crate::frame::lines::frame_lines;
use crate::model::memory::{Origin, PeakReport, ProcessReport, Report, SiteReport, Sum};
use crate::text::quantity::{bytes, escaped, plural};
use std::fmt::Write;

/// One call site in a list.
struct Line<'a> {
    site: &'a SiteReport,
    bytes: u64,
    count: u64,
    /// What else there is to say.
    more: String,
}

/// Outstanding allocations by call site; before them what a framework has handed out of these. Where much of what
/// was once held is gone, also who held it when most was held.
pub(crate) fn outstanding(report: &Report, process: &ProcessReport, view: View, out: &mut String) {
    let tensors = now(process, |site| site.family == Family::Tensor);
    if !tensors.is_empty() {
        let title = "handed out to tensors, by call site, most bytes first";
        list(title, &tensors, report, view, out);
    }
    let held = now(process, |site| site.family.holder() != Holder::Nobody);
    match (held.is_empty(), process.origin) {
        (false, _) => list("outstanding by call site, most bytes first", &held, report, view, out),
        (true, Origin::Start) => out.push_str("  nothing outstanding\n"),
        (true, Origin::Late) => out.push_str("  nothing outstanding of what was allocated since\n"),
    }
    for peak in process.peaks.iter().filter(|peak| has_fallen(process, peak)) {
        let what = match peak.sum {
            Sum::Memory => "held",
            Sum::Tensors => "handed out to tensors",
        };
        let title = format!(
            "{what} at the peak, {} at {:.2} s, by call site",
            bytes(peak.bytes),
            since(report, peak.at)
        );
        list(&title, &at_peak(process, peak.sum), report, view, out);
    }
}

fn now(process: &ProcessReport, wanted: impl Fn(&SiteReport) -> bool) -> Vec<Line<'_>> {
    let sites = process.sites.iter();
    let outstanding = sites.filter(|site| site.account.outstanding > 0 && wanted(site));
    outstanding
        .map(|site| Line {
            site,
            bytes: site.account.held_bytes,
            count: site.account.outstanding,
            more: format!(
                ", {}{}",
                ages(site.oldest_ns, site.newest_ns, site.account.outstanding),
                of_all(site)
            ),
        })
        .collect()
}

fn at_peak(process: &ProcessReport, sum: Sum) -> Vec<Line<'_>> {
    let sites = process.sites.iter();
    let held = sites.filter(|site| site.peak_count > 0 && Sum::of(site.family) == Some(sum));
    let mut lines: Vec<Line<'_>> = held
        .map(|site| Line {
            site,
            bytes: site.peak_bytes,
            count: site.peak_count,
            more: String::new(),
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    lines
}

/// Whether less than nineteen twentieths of the peak is held now.
fn has_fallen(process: &ProcessReport, peak: &PeakReport) -> bool {
    let now = match peak.sum {
        Sum::Memory => process.held_bytes(),
        Sum::Tensors => process.tensors.as_ref().map_or(0, |tensors| tensors.tensor_bytes),
    };
    now < peak.bytes - peak.bytes / 20
}

fn list(title: &str, lines: &[Line<'_>], report: &Report, view: View, out: &mut String) {
    let _ = writeln!(out, "  {title}:");
    for line in lines.iter().take(view.top) {
        entry(report, line, view, out);
    }
    let rest = lines.get(view.top..).unwrap_or_default();
    if !rest.is_empty() {
        let held = rest.iter().map(|line| line.bytes).fold(0, u64::saturating_add);
        let more = plural(rest.len() as u64, "more call site");
        let _ = writeln!(
            out,
            "    {} from {more} (--top {} shows them)",
            bytes(held),
            lines.len()
        );
    }
}

/// Call sites of what devices and pinned host memory hold.
pub(super) fn held(process: &ProcessReport) -> impl Iterator<Item = &SiteReport> {
    let sites = process.sites.iter();
    sites.filter(|site| site.account.outstanding > 0 && site.family.holder() != Holder::Nobody)
}

fn entry(report: &Report, line: &Line<'_>, view: View, out: &mut String) {
    let site = line.site;
    let _ = writeln!(
        out,
        "    {} in {} ({}, {}){}",
        view.bold(&bytes(line.bytes)),
        plural(line.count, "allocation"),
        site.family.name(),
        place(site.device),
        line.more,
    );
    match report.stacks.get(&site.site) {
        Some(frames) if !frames.is_empty() => {
            write_stack(frames, view, out);
            // Python frames are read from the interpreter, whatever native ones are missing between them
            let native = frames.last().is_some_and(|frame| frame.language == Language::Native);
            if native && report.truncated.contains(&site.site) {
                let _ = writeln!(
                    out,
                    "      {}",
                    view.dim("… the stack goes on, where it could not be followed")
                );
            }
        }
        _ => drop(writeln!(out, "      {}", unknown(site))),
    }
}

/// What is known without a stack.
fn unknown(site: &SiteReport) -> String {
    match site.function.as_str() {
        "" => "call site not known".to_owned(),
        function => format!("by {}; call site not known", escaped(function)),
    }
}

/// How many of those that this site made are still there.
fn of_all(site: &SiteReport) -> String {
    let account = &site.account;
    match account.allocations == account.outstanding {
        true => String::new(),
        false => format!("; of {} in all", plural(account.allocations, "allocation")),
    }
}

fn write_stack(frames: &[crate::frame::Frame], view: View, out: &mut String) {
    for (index, line) in frame_lines(frames).iter().enumerate() {
        let line = match index {
            0 => line.clone(),
            _ => view.dim(line),
        };
        let _ = writeln!(out, "      {line}");
    }
}
