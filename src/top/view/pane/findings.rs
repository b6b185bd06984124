//! What is wrong with the selected process, and why its devices were idle.

use super::Section;
use crate::model::snapshot::Finding;
use crate::text::quantity::{count, duration, escaped, plural};
use crate::top::cells::{folded, percent};
use crate::top::model::{Findings, Idle, Process, WaitSite};
use crate::top::view::Scene;

/// Of each; JSON has all.
const MOST: usize = 5;
const MOST_WAITS: usize = 12;
const HOW: &str = "not looked for: f does (--findings where there is no screen), at the cost of trace -p";
const SOON: &str = "its calls are traced from now on: what is wrong is said after a second";
const WHY: &str = "why they were idle is measured where it is recorded what the GPU executes (run, record)";

/// Both, each where there is something to say.
pub(super) fn sections(scene: &Scene, process: &Process, width: usize) -> Vec<Section> {
    let told = scene.frame.findings.as_ref().filter(|told| told.pid == process.pid);
    match told {
        Some(told) => vec![wrong(told, width), waits(told), idle(told, width)],
        None if !process.traced || process.ended || scene.state.tape.is_some() => Vec::new(),
        None => vec![Section {
            title: "what is wrong".to_owned(),
            lines: plain(match scene.state.findings == Some(process.pid) {
                true => folded(SOON, width, ["", ""]),
                false => folded(HOW, width, ["", ""]),
            }),
        }],
    }
}

fn wrong(told: &Findings, width: usize) -> Section {
    let looked = duration((told.seconds * 1e9) as u64);
    let found = told.findings.as_deref().unwrap_or_default();
    let why = told.not_looked_for.iter();
    let mut lines = plain(
        why.flat_map(|why| folded(&format!("not looked for: {}", escaped(why)), width, ["", "  "]))
            .collect(),
    );
    let shown = found.iter().take(MOST).enumerate();
    lines.extend(shown.flat_map(|(place, finding)| finding_lines(place + 1, finding, width)));
    if found.len() > MOST {
        lines.push((false, plural((found.len() - MOST) as u64, "more finding")));
    }
    let title = match (&told.findings, found.len()) {
        (None, _) => "what is wrong".to_owned(),
        (Some(_), 0) => format!("what is wrong: nothing was found in {looked} of its calls"),
        (Some(_), _) => format!("what is wrong, by {looked} of its calls"),
    };
    if lines.is_empty() && told.findings.is_some() {
        lines.push((false, String::new()));
    }
    Section { title, lines }
}

/// As a summary says it.
fn finding_lines(number: usize, finding: &Finding, width: usize) -> Vec<(bool, String)> {
    let place = finding
        .place
        .as_ref()
        .map_or_else(String::new, |place| format!(", at {}", escaped(place)));
    let by = format!("{}, {}", escaped(&finding.rule), escaped(&finding.certainty));
    let cost = match finding.cost_ns {
        0 => format!("({by})"),
        ns => format!("{} of the time, {} ({by})", percent(finding.share), duration(ns)),
    };
    let head = folded(
        &(escaped(&finding.title) + &place),
        width,
        [&format!("{number}. "), "   "],
    );
    let what = folded(&escaped(&finding.what), width, ["   ", "   "]);
    let cure = folded(&format!("do: {}", escaped(&finding.cure)), width, ["   ", "       "]);
    let head = head.into_iter().map(|line| (finding.grave, line));
    head.chain(plain(vec![format!("   {cost}")]))
        .chain(plain(what))
        .chain(plain(cure))
        .collect()
}

fn waits(told: &Findings) -> Section {
    let one = |wait: &WaitSite| {
        let at_most = if wait.is_at_most { "≤" } else { "" };
        let time = format!("{at_most}{}", duration((wait.seconds * 1e9) as u64));
        let share = format!(
            "{at_most}{}",
            percent(wait.seconds / told.seconds.max(f64::MIN_POSITIVE))
        );
        let hidden = if wait.hidden { " (hidden)" } else { "" };
        let place = wait.place.as_deref().map_or("(no call stack)".to_owned(), escaped);
        let words = format!(
            "{:>9} {time:>9} {share:>5}  {place}: {}{hidden}",
            count(wait.calls),
            escaped(&wait.what)
        );
        (false, words)
    };
    Section {
        title: "    calls      time share  waits by call site".to_owned(),
        lines: told.waits.iter().take(MOST_WAITS).map(one).collect(),
    }
}

fn idle(told: &Findings, width: usize) -> Section {
    let mut lines: Vec<String> = told.idle.iter().flat_map(|idle| idle_lines(idle, width)).collect();
    if !told.idle.is_empty() && told.idle.iter().all(|idle| idle.causes.is_empty()) {
        lines.extend(folded(WHY, width, ["   ", "   "]));
    }
    Section {
        title: "idle, and why".to_owned(),
        lines: plain(lines),
    }
}

fn idle_lines(idle: &Idle, width: usize) -> Vec<String> {
    let of = idle
        .device
        .map_or("its devices".to_owned(), |device| format!("device {device}"));
    let time = |seconds: f64| duration((seconds * 1e9) as u64);
    let share = percent(idle.seconds / idle.of_seconds.max(f64::MIN_POSITIVE));
    let sign = idle.sign();
    let head = format!(
        "{of}: idle {sign}{share}, {sign}{} of {} ({})",
        time(idle.seconds),
        time(idle.of_seconds),
        escaped(&idle.certainty)
    );
    let causes = idle.causes.iter().take(MOST).flat_map(|cause| {
        let place = cause
            .place
            .as_ref()
            .map_or_else(String::new, |place| format!(", at {}", escaped(place)));
        let share = percent(cause.idle_ns as f64 / (idle.seconds * 1e9).max(1.0));
        let before = format!("{:>9} {share:>4}  ", duration(cause.idle_ns));
        folded(
            &(escaped(&cause.words()) + &place),
            width,
            [&before, "                "],
        )
    });
    std::iter::once(head).chain(causes).collect()
}

fn plain(lines: Vec<String>) -> Vec<(bool, String)> {
    lines.into_iter().map(|line| (false, line)).collect()
}
