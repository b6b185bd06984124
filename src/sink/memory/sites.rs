//! Who asked for what is outstanding, most bytes first.

use super::process::ages;
use super::stack;
use super::text::View;
use super::words::{place, plural};
use crate::catalog::{Family, Holder};
use crate::model::memory::{Origin, ProcessReport, Report, SiteReport};
use crate::sink::quantity::{bytes, escaped};
use std::fmt::Write;

/// Outstanding allocations by call site; before them what a framework has handed out of these.
pub fn outstanding(report: &Report, process: &ProcessReport, view: View, out: &mut String) {
    let tensors = process.sites.iter().filter(|site| site.family == Family::Tensor);
    let tensors: Vec<&SiteReport> = tensors.filter(|site| site.account.outstanding > 0).collect();
    if !tensors.is_empty() {
        list(
            "handed out to tensors, by call site, most bytes first",
            &tensors,
            report,
            view,
            out,
        );
    }
    let sites: Vec<&SiteReport> = held(process).collect();
    match (sites.is_empty(), process.origin) {
        (false, _) => list("outstanding by call site, most bytes first", &sites, report, view, out),
        (true, Origin::Start) => out.push_str("  nothing outstanding\n"),
        (true, Origin::Late) => out.push_str("  nothing outstanding of what was allocated since\n"),
    }
}

fn list(title: &str, sites: &[&SiteReport], report: &Report, view: View, out: &mut String) {
    let _ = writeln!(out, "  {title}:");
    for site in sites.iter().take(view.top) {
        entry(report, site, view, out);
    }
    let rest = sites.get(view.top..).unwrap_or_default();
    if !rest.is_empty() {
        let held: u64 = rest.iter().map(|site| site.account.held_bytes).sum();
        let more = plural(rest.len() as u64, "more call site");
        let _ = writeln!(
            out,
            "    {} from {more} (--top {} shows them)",
            bytes(held),
            sites.len()
        );
    }
}

/// Call sites of what devices and pinned host memory hold.
pub(super) fn held(process: &ProcessReport) -> impl Iterator<Item = &SiteReport> {
    let sites = process.sites.iter();
    sites.filter(|site| site.account.outstanding > 0 && site.family.holder() != Holder::Nobody)
}

fn entry(report: &Report, site: &SiteReport, view: View, out: &mut String) {
    let account = &site.account;
    let _ = writeln!(
        out,
        "    {} in {} ({}, {}), {}{}",
        view.bold(&bytes(account.held_bytes)),
        plural(account.outstanding, "allocation"),
        site.family.name(),
        place(site.device),
        ages(site.oldest_ns, site.newest_ns, account.outstanding),
        of_all(site),
    );
    match report.stacks.get(&site.site) {
        Some(frames) if !frames.is_empty() => write_stack(frames, view, out),
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

fn write_stack(frames: &[crate::model::frame::Frame], view: View, out: &mut String) {
    for (index, line) in stack::lines(frames).iter().enumerate() {
        let line = match index {
            0 => line.clone(),
            _ => view.dim(line),
        };
        let _ = writeln!(out, "      {line}");
    }
}
