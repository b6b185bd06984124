//! `gpuscope doctor`: what works here, what does not, and the cure; with a PID, what of that process can be seen.
//!
//! Owns the words and colours only; the facts come from [`crate::probe::machine`].

use crate::catalog::Catalog;
use crate::inside::{self, standby, standby::Standby};
use crate::probe::machine::coverage::{self, Coverage};
use crate::probe::machine::mapped::MappedLibrary;
use crate::probe::machine::{self, Check, State};
use crate::refusal::hint_apart;
use crate::text::quantity::escaped;
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
    #[serde(serialize_with = "name_of")]
    agent: Option<Standby>,
}

fn name_of<S: serde::Serializer>(standing: &Option<Standby>, serializer: S) -> Result<S::Ok, S::Error> {
    standing.map(Standby::name).serialize(serializer)
}

/// Prints the report; the status is 0 when tracing is possible and 1 when it is not.
///
/// # Errors
/// When there is no process `pid`, or when the report cannot be written.
pub(crate) fn run(pid: Option<u32>, json: bool) -> Result<ExitCode> {
    let process = pid.map(covered).transpose()?;
    let mut checks = machine::checks();
    let inside = inside_check();
    let from_inside = inside.state == State::Ok;
    checks.push(inside);
    let agent = pid.map(standby::of);
    let refused = process.as_ref().is_some_and(|process| process.refusal.is_some());
    let carries = agent.is_none_or(|standing| standing == Standby::Ready);
    let report = Report {
        possible: (machine::can_trace(&checks) || (from_inside && carries)) && !refused,
        tier: machine::best_tier(&checks).map(|tier| tier.name()),
        inside: from_inside,
        checks,
        process,
        agent,
    };
    let written = if json {
        std::io::stdout()
            .lock()
            .write_all((serde_json::to_string(&report)? + "\n").as_bytes())
    } else {
        anstream::stdout().lock().write_all(render(&report).as_bytes())
    };
    written.context("failed to write the report")?;
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

fn covered(pid: u32) -> Result<Coverage> {
    let catalog = Catalog::builtin().context("failed to read the built-in tables")?;
    coverage::coverage(pid, &catalog)
}

fn render(report: &Report) -> String {
    let mut text = String::new();
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in &report.checks {
        render_check(&mut text, check, width);
    }
    if let Some(process) = &report.process {
        render_process(&mut text, report, process);
    }
    let _ = writeln!(text, "\n{BOLD}{}{BOLD:#}", verdict(report));
    text
}

fn verdict(report: &Report) -> String {
    let limited = report.checks.iter().filter(|check| check.state != State::Ok).count();
    let refused = report.process.as_ref().filter(|process| process.refusal.is_some());
    match (report.tier, refused) {
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

fn render_process(text: &mut String, report: &Report, process: &Coverage) {
    let inner = process
        .inner_pid
        .map_or_else(String::new, |pid| format!(", {pid} in its own PID namespace"));
    let _ = writeln!(
        text,
        "\n{BOLD}process {} ({}){BOLD:#}{inner}",
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
    if let Some(standing) = report.agent {
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
