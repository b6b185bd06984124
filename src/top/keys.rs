//! What a key does: changes the state, or asks for something to be done. Pure. The mouse is `mouse`'s business.

mod mouse;

pub(crate) use mouse::point;

use super::columns::{COLUMNS, Key};
use super::model::Frame;
use super::state::{Page, Question, State};
use super::view::setup;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::sync::Arc;
use std::time::Duration;

/// What is to be done outside the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Quit,
    /// The screen is left until the shell comes back to us.
    Suspend,
    Kill(u32),
    /// Begin or end a recording.
    Record(u32),
    Leaks(u32),
    /// Go so many places in a recording.
    Seek(isize),
    /// Draw everything anew.
    Redraw,
}

const DELAYS: [u64; 8] = [100, 200, 500, 1000, 2000, 5000, 10_000, 60_000];
/// Of allocations, seconds.
const AGES: [u64; 5] = [0, 1, 10, 60, 600];
/// Further than any recording.
const FAR: isize = isize::MAX / 2;

/// `room`: rows of processes on the screen.
pub(crate) fn press(key: KeyEvent, state: &mut State, frame: &Arc<Frame>, room: usize) -> Action {
    let action = answered(key, state, frame, room);
    // several keys may come between two pictures: the next one must be about what this one has chosen
    let shown = state.shown(frame);
    state.settle(&shown, room);
    action
}

fn answered(key: KeyEvent, state: &mut State, frame: &Arc<Frame>, room: usize) -> Action {
    state.message = None;
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return with_control(key.code, state);
    }
    match state.page.take() {
        Some(Page::Setup(line)) => return set_up(key.code, state, line),
        Some(Page::Order(line)) => return choose_order(key.code, state, line),
        Some(_) => return Action::Nothing,
        None => {}
    }
    match state.question.clone() {
        Some(Question::Filter) => type_filter(key.code, state),
        Some(Question::Search(words)) => search(key.code, state, frame, words),
        Some(Question::Kill { pid, sure }) => answer(key.code, state, pid, sure),
        None if state.tape.is_some() => match play(key.code, state) {
            Some(action) => action,
            None => usual(key.code, state, frame, room),
        },
        None => usual(key.code, state, frame, room),
    }
}

fn with_control(code: KeyCode, state: &mut State) -> Action {
    match code {
        KeyCode::Char('u' | 'w') => empty(state),
        KeyCode::Char('c' | 'q') => Action::Quit,
        KeyCode::Char('z') => Action::Suspend,
        KeyCode::Char('l') => Action::Redraw,
        _ => Action::Nothing,
    }
}

/// What is typed, as in a shell.
fn empty(state: &mut State) -> Action {
    match state.question.as_mut() {
        Some(Question::Filter) => state.filter.clear(),
        Some(Question::Search(words)) => words.clear(),
        _ => {}
    }
    Action::Nothing
}

fn type_filter(code: KeyCode, state: &mut State) -> Action {
    match code {
        KeyCode::Enter => state.question = None,
        KeyCode::Esc => {
            state.filter.clear();
            state.question = None;
        }
        KeyCode::Backspace => drop(state.filter.pop()),
        KeyCode::Char(character) => state.filter.push(character),
        _ => {}
    }
    Action::Nothing
}

/// Goes to the first row that has what is typed; the same key again to the next one.
fn search(code: KeyCode, state: &mut State, frame: &Arc<Frame>, mut words: String) -> Action {
    let further = usize::from(matches!(code, KeyCode::F(3) | KeyCode::Down));
    match code {
        KeyCode::Backspace => drop(words.pop()),
        KeyCode::Char(character) => words.push(character),
        KeyCode::F(3) | KeyCode::Down => {}
        _ => {
            state.question = None;
            return Action::Nothing;
        }
    }
    state.find(&state.shown(frame), &words, further);
    state.question = Some(Question::Search(words));
    Action::Nothing
}

fn answer(code: KeyCode, state: &mut State, pid: u32, sure: bool) -> Action {
    let yes = matches!(code, KeyCode::Char('y' | 'Y'));
    state.question = (yes && !sure).then_some(Question::Kill { pid, sure: true });
    match yes && sure {
        true => Action::Kill(pid),
        false => Action::Nothing,
    }
}

/// On the page of columns and colours.
fn set_up(code: KeyCode, state: &mut State, line: usize) -> Action {
    let line = match code {
        KeyCode::Char(' ') | KeyCode::Enter => {
            setup::change(state, line);
            Some(line)
        }
        other => moved(other, line, setup::LINES),
    };
    state.page = line.map(Page::Setup);
    Action::Nothing
}

/// On the page of columns to order by.
fn choose_order(code: KeyCode, state: &mut State, line: usize) -> Action {
    match code {
        KeyCode::Char(' ') | KeyCode::Enter => state.sort = line,
        other => state.page = moved(other, line, COLUMNS.len()).map(Page::Order),
    }
    Action::Nothing
}

/// The line of a page of so many, after that key; `None`: the page is left.
fn moved(code: KeyCode, line: usize, of: usize) -> Option<usize> {
    match code {
        KeyCode::Up => Some(line.checked_sub(1).unwrap_or(of - 1)),
        KeyCode::Down => Some((line + 1) % of),
        KeyCode::Home | KeyCode::PageUp => Some(0),
        KeyCode::End | KeyCode::PageDown => Some(of - 1),
        _ => None,
    }
}

fn play(code: KeyCode, state: &mut State) -> Option<Action> {
    let action = match code {
        KeyCode::Left => Action::Seek(-1),
        KeyCode::Right => Action::Seek(1),
        KeyCode::Char('[') => Action::Seek(-10),
        KeyCode::Char(']') => Action::Seek(10),
        KeyCode::Home => Action::Seek(-FAR),
        KeyCode::End => Action::Seek(FAR),
        KeyCode::Char(' ' | 'z') => {
            if let Some(tape) = state.tape.as_mut() {
                tape.paused = !tape.paused;
            }
            Action::Nothing
        }
        KeyCode::Char('a' | 'f' | 's' | 'k' | 'r' | 'l') | KeyCode::F(9) => {
            state.message = Some("this is a recording: there is nobody to do that to".to_owned());
            Action::Nothing
        }
        _ => return None,
    };
    Some(action)
}

fn usual(code: KeyCode, state: &mut State, frame: &Arc<Frame>, room: usize) -> Action {
    match code {
        KeyCode::Char('q') | KeyCode::F(10) => return Action::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => state.page = Some(Page::Help),
        KeyCode::Char('C' | 'S') | KeyCode::F(2) => state.page = Some(Page::Setup(0)),
        KeyCode::F(6) => state.page = Some(Page::Order(state.sort)),
        KeyCode::F(12) => state.message = Some(setup::options(state)),
        KeyCode::Char('n') => state.page = Some(Page::Notes),
        KeyCode::Char('/' | '\\') | KeyCode::F(4) => state.question = Some(Question::Filter),
        KeyCode::F(3) => state.question = Some(Question::Search(String::new())),
        KeyCode::Char('u') => keep_user(state, frame),
        KeyCode::Char(' ' | 'z' | 'Z') => freeze(state, frame),
        KeyCode::Char('t') | KeyCode::F(5) => state.tree = !state.tree,
        KeyCode::Enter if state.pane && state.tape.is_none() => show_calls(state, frame),
        KeyCode::Enter => state.pane = !state.pane,
        KeyCode::Char('s') => show_calls(state, frame),
        KeyCode::Esc => close(state),
        KeyCode::Char('a') => list_allocations(state),
        KeyCode::Char('f') => look_for_findings(state, frame),
        KeyCode::Char('d') => change_delay(state, 1),
        KeyCode::Char('D') => change_delay(state, -1),
        KeyCode::Char('+') => turn(state, frame, true),
        KeyCode::Char('-') => turn(state, frame, false),
        KeyCode::Up | KeyCode::Down | KeyCode::Home | KeyCode::End | KeyCode::PageUp | KeyCode::PageDown => {
            walk(code, state, frame, room);
        }
        KeyCode::Char('<' | ',' | '>' | '.' | 'I' | 'M' | 'P' | 'L' | 'W') => order(code, state),
        KeyCode::Char('k') | KeyCode::F(9) => {
            let living = state.selected.filter(|pid| *pid > 0);
            state.question = living.map(|pid| Question::Kill { pid, sure: false });
        }
        KeyCode::Char('r') => return state.selected.map_or(Action::Nothing, Action::Record),
        KeyCode::Char('l') => return state.selected.map_or(Action::Nothing, Action::Leaks),
        other => state.message = unknown(other),
    }
    Action::Nothing
}

/// Whoever presses it is used to another screen.
fn unknown(code: KeyCode) -> Option<String> {
    let name = match code {
        KeyCode::Char(character) => character.to_string(),
        KeyCode::F(number) => format!("F{number}"),
        KeyCode::Tab => "Tab".to_owned(),
        _ => return None,
    };
    Some(format!("{name} does nothing here: ? shows what keys do"))
}

fn freeze(state: &mut State, frame: &Arc<Frame>) {
    state.frozen = match state.frozen.take() {
        Some(_) => None,
        None => Some(Arc::clone(frame)),
    };
}

/// All of them, then those that are as old, then none.
fn list_allocations(state: &mut State) {
    let place = AGES
        .iter()
        .position(|age| state.single == Some(Duration::from_secs(*age)));
    let next = place.map_or(0, |place| place + 1);
    state.single = AGES.get(next).copied().map(Duration::from_secs);
    state.pane |= state.single.is_some();
    state.pane_scroll = 0;
}

/// Of the selected process, or no longer.
fn look_for_findings(state: &mut State, frame: &Arc<Frame>) {
    state.findings = living(state, frame).filter(|pid| state.findings != Some(*pid));
    state.pane |= state.findings.is_some();
}

/// The same.
fn show_calls(state: &mut State, frame: &Arc<Frame>) {
    state.calls = living(state, frame).filter(|pid| state.calls != Some(*pid));
    state.pane |= state.calls.is_some();
    state.pane_scroll = 0;
}

/// The selected process, if it can be traced.
fn living(state: &State, frame: &Arc<Frame>) -> Option<u32> {
    let shown = state.shown(frame);
    let shown = state.selected.and_then(|pid| shown.process(pid));
    let living = shown.filter(|process| process.pid > 0 && !process.ended);
    living.map(|process| process.pid)
}

/// What was opened last is closed first.
fn close(state: &mut State) {
    match (state.pane, state.filter.is_empty()) {
        (true, _) if state.calls.take().is_some() => state.pane_scroll = 0,
        (true, _) => (state.pane, state.single) = (false, None),
        (false, false) => state.filter.clear(),
        (false, true) => state.frozen = None,
    }
}

fn walk(code: KeyCode, state: &mut State, frame: &Arc<Frame>, room: usize) {
    let shown = state.shown(frame);
    let page = room.max(1) as isize;
    match code {
        KeyCode::PageUp if state.pane => scroll_pane(state, -5),
        KeyCode::PageDown if state.pane => scroll_pane(state, 5),
        KeyCode::Up => state.step(&shown, -1),
        KeyCode::Down => state.step(&shown, 1),
        KeyCode::PageUp => state.step(&shown, -page),
        KeyCode::PageDown => state.step(&shown, page),
        KeyCode::Home => state.step(&shown, -FAR),
        _ => state.step(&shown, FAR),
    }
}

/// Goes so many lines down in the pane. What comes as it happens is seen from its end.
fn scroll_pane(state: &mut State, lines: isize) {
    let by = if state.calls.is_some() { -lines } else { lines };
    state.pane_scroll = state.pane_scroll.saturating_add_signed(by);
}

fn order(code: KeyCode, state: &mut State) {
    let by = |title: &str| COLUMNS.iter().position(|column| column.title == title);
    let chosen = match code {
        KeyCode::Char('I') => {
            state.reversed = !state.reversed;
            return;
        }
        KeyCode::Char('<' | ',') => Some((state.sort + COLUMNS.len() - 1) % COLUMNS.len()),
        KeyCode::Char('M') => by("held"),
        KeyCode::Char('P') => by("sm"),
        KeyCode::Char('L') => by("launch/s"),
        KeyCode::Char('W') => by("wait"),
        _ => Some((state.sort + 1) % COLUMNS.len()),
    };
    state.sort = chosen.unwrap_or(state.sort);
}

/// As the column has it: numbers are shown highest first, names and process ids lowest first.
fn turn(state: &mut State, frame: &Arc<Frame>, lowest_first: bool) {
    let shown = state.shown(frame);
    let Some(column) = COLUMNS.get(state.sort) else { return };
    let mut keys = shown.processes.iter().map(column.key);
    let is_usual = !matches!(keys.find(|key| *key != Key::Unknown), Some(Key::Number(_)));
    state.reversed = is_usual != lowest_first;
}

/// Of the chosen process's user alone; again: everybody's.
fn keep_user(state: &mut State, frame: &Arc<Frame>) {
    let shown = state.shown(frame);
    let chosen = state.selected.and_then(|pid| shown.process(pid));
    let user = chosen.and_then(|process| process.user.clone());
    state.user = user.filter(|_| state.user.is_none());
}

fn change_delay(state: &mut State, by: isize) {
    let now = state.delay.as_millis() as u64;
    let next = match by > 0 {
        true => DELAYS.into_iter().find(|delay| *delay > now),
        false => DELAYS.into_iter().rev().find(|delay| *delay < now),
    };
    state.delay = Duration::from_millis(next.unwrap_or(now));
    state.message = Some(format!("every {:.1} s", state.delay.as_secs_f64()));
}

#[cfg(test)]
mod tests;
