//! `gpuscope top`: what is known now, on a screen, as a page or as JSON lines.

mod children;
mod closeup;
mod finder;
mod handover;
mod interactive;
mod live;
mod preview;
#[cfg_attr(not(feature = "record"), path = "top/no_replay.rs")]
mod replay;
mod wakes;
mod worker;

use crate::cli::{ThemeChoice, TopArgs};
use crate::output::Output;
use crate::probe::{self, machine};
use crate::refusal::Usage;
use crate::top::columns;
use crate::top::model::history::History;
use crate::top::model::{Frame, Process};
use crate::top::state::{State, Theme};
use crate::top::{json, once, screen};
use crate::user::User;
use anyhow::{Result, bail};
use finder::{Finder, Wanted};
use live::{Close, Live};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wakes::Wakes;

/// It takes a while to attach; then a page goes without.
const FINDINGS_LATE: Duration = Duration::from_secs(10);

/// Shows until q, a signal, or, with `--once`, the first page.
///
/// # Errors
/// There is no terminal, a wrong option, or what cannot be written.
pub(crate) fn run(args: &TopArgs) -> Result<ExitCode> {
    probe::route_messages(args.verbose);
    if let Some(file) = &args.replay {
        return replay::run(file, args);
    }
    let user = args.user.as_deref().map(user_named).transpose()?;
    if args.once || args.json {
        return print(args, user);
    }
    check_terminal()?;
    interactive::run(args, user)
}

fn check_terminal() -> Result<()> {
    match screen::refused() {
        Some(why) => bail!(Usage(format!(
            "{why}\nhint: --once prints one page as text, --json an object each interval"
        ))),
        None => Ok(()),
    }
}

/// What was chosen on the command line.
///
/// # Errors
/// There is no such column.
fn chosen(args: &TopArgs) -> Result<State> {
    let named = |list: &String| columns::named(list).map_err(|why| Usage(format!("--columns {list}: {why}")));
    let theme = args.theme.map(|theme| match theme {
        ThemeChoice::Dark => Theme::Dark,
        ThemeChoice::Light => Theme::Light,
        ThemeChoice::Mono => Theme::Mono,
    });
    Ok(State {
        columns: args.columns.as_ref().map(named).transpose()?,
        theme: theme.unwrap_or_else(screen::usual_theme),
        ..State::new(args.delay)
    })
}

/// As processes' users are called.
fn user_named(word: &str) -> Result<String> {
    let user = User::named(word).map_err(|error| Usage(error.to_string()))?;
    Ok(crate::user::name_of(user.uid))
}

fn print(args: &TopArgs, user: Option<String>) -> Result<ExitCode> {
    let mut state = chosen(args)?;
    let wakes = Wakes::register()?;
    let mut finder = Finder::default();
    let looked_at = looked_at(args);
    let chosen = looked_at.or_else(|| args.pids.first().copied());
    let wanted = looked_at.map(|pid| Wanted { pid, calls: false });
    if machine::programs_refused().is_none() {
        // before this thread gives up what a tracer needs
        finder.look_at(wanted, false)?;
    }
    let mut live = Live::start(args, &live::sampler(args)?)?;
    let mut history = History::default();
    state.user = user;
    // of one process a page says all
    state.selected = chosen;
    state.pane = args.pids.len() == 1;
    state.findings = looked_at;
    let mut output = Output::stdout();
    // counted from here on, so that the next look has rates
    let older = args.lists().then(|| args.older_than.unwrap_or_default());
    let mut close = chosen.map(|pid| Close { pid, older });
    state.single = older;
    let mut first = live.look(close);
    let instead = close.filter(|_| looked_at.is_none());
    if let Some(worker) = instead.and_then(|close| instead_of(close.pid, &first)) {
        close = Some(Close { pid: worker, older });
        state.selected = Some(worker);
        first = live.look(close);
    }
    history.take(&mut first);
    let alone = live.lend(&looked_at.into_iter().collect());
    finder.look_at(wanted, alone)?;
    let mut due = Instant::now() + args.delay;
    let (mut found, until) = (None, due + FINDINGS_LATE);
    while !wakes.end() && !output.closed() {
        live.step()?;
        found = finder.take().or(found);
        let is_awaited = args.findings && found.is_none() && Instant::now() < until;
        if Instant::now() < due || is_awaited {
            continue;
        }
        due = (due + args.delay).max(Instant::now());
        let mut frame = live.look(close);
        history.take(&mut frame);
        frame.findings.clone_from(&found);
        let frame = kept(frame, &state);
        let text = match args.json {
            true => json::line(&frame),
            false => once::page(&frame, &history, &state, width()),
        };
        output.write(text.as_bytes());
        output.check()?;
        if args.once {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The process in which findings are looked for from the start.
fn looked_at(args: &TopArgs) -> Option<u32> {
    let named = args.pids.first().filter(|_| args.findings);
    named.map(|pid| worker::of(*pid))
}

/// Of a launcher that does nothing itself the first of those that it has started.
fn instead_of(pid: u32, frame: &Frame) -> Option<u32> {
    let descends = |process: &&Process| process.ancestors.contains(&pid);
    let first = frame.processes.iter().find(descends)?;
    frame.process(pid).is_none().then_some(first.pid)
}

/// Of the wanted user's processes alone.
fn kept(mut frame: Frame, state: &State) -> Frame {
    if state.user.is_some() {
        frame.processes.retain(|process| process.user == state.user);
    }
    frame
}

/// Of a page.
fn width() -> u16 {
    let stdout = std::io::stdout();
    let columns = super::screen::columns(&stdout).filter(|_| stdout.is_terminal());
    columns
        .and_then(|columns| u16::try_from(columns).ok())
        .unwrap_or(once::WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_that_does_nothing_itself_gives_way_to_what_it_has_started() {
        let process = |pid: u32, ancestors: &[u32]| Process {
            pid,
            ancestors: ancestors.to_vec(),
            ..Process::default()
        };
        let frame = Frame {
            processes: vec![process(30, &[1]), process(12, &[11, 10, 1]), process(13, &[11, 10, 1])],
            ..Frame::default()
        };
        assert_eq!(instead_of(10, &frame), Some(12));
        assert_eq!(instead_of(12, &frame), None, "it has a row of its own");
        assert_eq!(instead_of(99, &frame), None);
    }
}
