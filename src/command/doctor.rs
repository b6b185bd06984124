//! `gpuscope doctor`: what works here, what does not, and the cure; with a PID, what of that process can be seen, and of who descends
//! from it.
//!
//! Owns the words and colours only; the facts come from [`crate::probe::machine`].

use super::stdout::closed_is_fine;
use crate::catalog::Catalog;
use crate::discover;
use crate::inside::{self, standby, standby::Standby};
use crate::probe::machine::coverage::{self, Coverage};
use crate::probe::machine::mapped::MappedLibrary;
use crate::probe::machine::{self, Check, State};
use crate::refusal::hint_apart;
use crate::text::quantity::{escaped, plural};
use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const FAIR: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Descendants that are shown; JSON has all.
const MOST_SHOWN: usize = 8;

#[derive(Serialize)]
struct Report {
    /// Whether calls can be traced: on this machine and, if one was asked for, of that process.
    possible: bool,
    /// How probes are attached; `None`: they cannot be.
    tier: Option<&'static str>,
    /// Whether what is started can be traced from inside.
    inside: bool,
    checks: Vec<Check>,
    process: Option<Coverage>,
    /// Whether that process can be traced from inside.
    agent: Option<Standby>,
    /// Those who descend from it and use CUDA.
    descendants: Vec<Descendant>,
    /// How many descend from it and may not be looked at.
    hidden_descendants: usize,
}

#[derive(Serialize)]
struct Descendant {
    process: Coverage,
    agent: Standby,
}

/// Prints the report; the status is 0 when tracing is possible and 1 when it is not.
///
/// # Errors
/// When there is no process `pid`, or when the report cannot be written.
pub(crate) fn run(pid: Option<u32>, json: bool) -> Result<ExitCode> {
    let looked_at = pid.map(look_at).transpose()?;
    let (process, descendants, hidden_descendants) = match looked_at {
        Some((process, (descendants, hidden))) => (Some(process), descendants, hidden),
        None => (None, Vec::new(), 0),
    };
    let mut checks = machine::checks();
    let inside = inside_check();
    let from_inside = inside.state == State::Ok;
    checks.push(inside);
    let agent = pid.map(standby::of);
    let refused = process.as_ref().is_some_and(|process| process.refusal.is_some());
    let mut all = agent.into_iter().chain(descendants.iter().map(|one| one.agent));
    let carries = agent.is_none() || all.any(|standing| standing == Standby::Ready);
    let report = Report {
        possible: (machine::can_trace(&checks) || (from_inside && carries)) && !refused,
        tier: machine::best_tier(&checks).map(|tier| tier.name()),
        inside: from_inside,
        checks,
        process,
        agent,
        descendants,
        hidden_descendants,
    };
    let written = if json {
        std::io::stdout()
            .lock()
            .write_all((serde_json::to_string(&report)? + "\n").as_bytes())
    } else {
        anstream::stdout().lock().write_all(render(&report).as_bytes())
    };
    closed_is_fine(written)?;
    Ok(if report.possible {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether commands can be traced from inside, for which no right is needed.
fn inside_check() -> Check {
    const NAME: &str = "inside";
    const USUAL_CURE: &str = "set TMPDIR to a folder that may be written and is not mounted noexec";
    match inside::is_possible(false) {
        Ok(()) => Check::ok(
            NAME,
            "run, record and leaks trace what they start from inside, which needs no right; also as root (--engine kernel: from outside)",
        ),
        Err(error) => {
            let said = error.to_string();
            let (why, hint) = hint_apart(&said);
            Check::missing(
                NAME,
                format!(
                    "what is started cannot be traced from inside: {}",
                    why.replace('\n', "; ")
                ),
                hint.unwrap_or(USUAL_CURE),
            )
        }
    }
}

/// A process, and its descendants.
fn look_at(pid: u32) -> Result<(Coverage, (Vec<Descendant>, usize))> {
    let catalog = Catalog::builtin().context("failed to read the built-in tables")?;
    Ok((coverage::coverage(pid, &catalog)?, descendants(pid, &catalog)))
}

/// Those of a process that map something of CUDA, and how many may not be looked at.
fn descendants(pid: u32, catalog: &Catalog) -> (Vec<Descendant>, usize) {
    let (mut using, mut hidden) = (Vec::new(), 0);
    for pid in discover::descendants([pid]).into_iter().filter(|one| *one != pid) {
        // one that has ended meanwhile is none
        let Ok(process) = coverage::coverage(pid, catalog) else {
            continue;
        };
        if !process.libraries.is_empty() {
            let agent = standby::of(pid);
            using.push(Descendant { process, agent });
        } else if process.refusal.is_some() {
            hidden += 1;
        }
    }
    (using, hidden)
}

fn render(report: &Report) -> String {
    let mut text = String::new();
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in &report.checks {
        render_check(&mut text, check, width);
    }
    if let Some(process) = &report.process {
        render_process(&mut text, report.agent, process, None);
        for one in report.descendants.iter().take(MOST_SHOWN) {
            render_process(&mut text, Some(one.agent), &one.process, Some(process.pid));
        }
        let more = report
            .descendants
            .iter()
            .skip(MOST_SHOWN)
            .map(|one| one.process.pid.to_string());
        let more: Vec<String> = more.collect();
        if !more.is_empty() {
            let number = plural(more.len() as u64, "descendant");
            let _ = writeln!(text, "\n{number} more that use CUDA: {}", more.join(", "));
        }
        if report.hidden_descendants > 0 {
            let number = plural(report.hidden_descendants as u64, "descendant");
            let _ = writeln!(text, "\n{number} may not be looked at, or traced");
        }
    }
    let _ = writeln!(text, "\n{BOLD}{}{BOLD:#}", verdict(report));
    text
}

fn verdict(report: &Report) -> String {
    let limited = report.checks.iter().filter(|check| check.state != State::Ok).count();
    let refused = report.process.as_ref().filter(|process| process.refusal.is_some());
    match (report.tier, refused) {
        (None, _) if report.possible && report.agent.is_some_and(|agent| agent != Standby::Ready) => {
            "What descends from this process can be traced here, from inside, by the user whose it is.".to_owned()
        }
        (None, _) if report.possible && report.agent.is_some() => {
            "This process can be traced here, from inside, by the user whose it is.".to_owned()
        }
        (None, _) if report.possible => {
            "run, record and leaks work here, from inside. What runs already cannot be traced \
            (trace, serve) unless it was started by gpuscope preload: for that, begin with the first cure above."
                .to_owned()
        }
        (None, _) => "Tracing is not possible here; begin with the first cure above.".to_owned(),
        (Some(_), Some(process)) => format!("Process {} cannot be traced.", process.pid),
        (Some(tier), None) if limited == 0 => format!("Tracing is possible here, with {tier}."),
        (Some(tier), None) => format!("Tracing is possible here, with {tier}; {limited} limits are named above."),
    }
}

fn render_check(text: &mut String, check: &Check, width: usize) {
    let style = style(check.state);
    let state = check.state.name();
    let _ = writeln!(
        text,
        "{style}{state:<7}{style:#}  {:<width$}  {}",
        check.name,
        escaped(&check.detail)
    );
    if let Some(cure) = &check.cure {
        let _ = writeln!(text, "{:7}  {:width$}  {DIM}cure: {}{DIM:#}", "", "", escaped(cure));
    }
}

fn style(state: State) -> Style {
    match state {
        State::Ok => GOOD,
        State::Limited => FAIR,
        State::Missing => BAD,
    }
}

fn render_agent(text: &mut String, standing: Standby, pid: u32) {
    let style = if standing == Standby::Ready { GOOD } else { DIM };
    let _ = writeln!(text, "  {style}inside{style:#}  {}", escaped(&standing.words(pid)));
    if standing != Standby::Absent {
        let _ = writeln!(text, "          {DIM}{}{DIM:#}", escaped(&standing.hint(pid)));
    }
}

/// `of`: from whom it descends.
fn render_process(text: &mut String, agent: Option<Standby>, process: &Coverage, of: Option<u32>) {
    let inner = process
        .inner_pid
        .map_or_else(String::new, |pid| format!(", {pid} in its own PID namespace"));
    let of = of.map_or_else(String::new, |pid| format!(", which descends from {pid}"));
    let _ = writeln!(
        text,
        "\n{BOLD}process {} ({}){BOLD:#}{inner}{of}",
        process.pid,
        escaped(&process.comm)
    );
    if let Some(reason) = &process.refusal {
        let lines = reason.lines().map(escaped).collect::<Vec<_>>().join("\n  ");
        let _ = writeln!(text, "  {BAD}not traced:{BAD:#} {lines}");
    }
    let width = process
        .libraries
        .iter()
        .map(|library| library.layer.len())
        .max()
        .unwrap_or(0);
    for library in &process.libraries {
        render_library(text, library, width);
    }
    if let Some(standing) = agent {
        render_agent(text, standing, process.pid);
    }
    for gap in &process.gaps {
        let _ = writeln!(text, "  {FAIR}not seen{FAIR:#}  {}", escaped(gap));
    }
}

fn render_library(text: &mut String, library: &MappedLibrary, width: usize) {
    let MappedLibrary { kind, hookable, of, .. } = library;
    let style = if hookable == of { GOOD } else { FAIR };
    let (kind, path) = (kind.name(), escaped(&library.path));
    let layer = escaped(&library.layer);
    let _ = write!(
        text,
        "  {layer:<width$}  {kind:<8}  {style}{hookable:>4} of {of:<4}{style:#}  {path}"
    );
    let marks = [
        (library.deleted, "deleted"),
        (library.mount_namespace_differs, "in another mount namespace"),
    ];
    for (_, mark) in marks.iter().filter(|(set, _)| *set) {
        let _ = write!(text, " ({mark})");
    }
    text.push('\n');
    if let Some(note) = &library.note {
        let _ = writeln!(text, "  {:width$}  {:8}  {DIM}{}{DIM:#}", "", "", escaped(note));
    }
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
