//! The page of columns and colours.

use super::columns::COLUMNS;
use super::{Lines, Scene};
use crate::top::state::State;
use ratatui::style::{Modifier, Style};

/// Columns, and last the theme.
pub(crate) const LINES: usize = COLUMNS.len() + 1;

/// What space does in a line of the page: shows or hides a column, or takes the next theme.
pub(crate) fn change(state: &mut State, line: usize) {
    if line >= COLUMNS.len() {
        state.theme = state.theme.next();
        return;
    }
    let mut chosen = state.columns.take().unwrap_or_else(|| (0..COLUMNS.len()).collect());
    match chosen.iter().position(|place| *place == line) {
        // a table without any column says nothing
        Some(at) if chosen.len() > 1 => drop(chosen.remove(at)),
        Some(_) => {}
        None => {
            let at = chosen.iter().position(|place| *place > line).unwrap_or(chosen.len());
            chosen.insert(at, line);
        }
    }
    let is_usual = chosen.iter().copied().eq(0..COLUMNS.len());
    state.columns = (!is_usual).then_some(chosen);
}

/// `chosen`: the line with the cursor; it is in sight.
pub(super) fn lines(scene: &Scene, chosen: usize, height: usize) -> Lines {
    let state = scene.state;
    let title = "gpuscope top: columns and colours (↑ ↓ choose, space changes, Esc goes back)";
    let mut lines = vec![(state.theme.heading(), title.to_owned())];
    let room = height.saturating_sub(2).max(1);
    let first = (chosen + 1).saturating_sub(room);
    for line in (first..LINES).take(room) {
        let style = match line == chosen {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        lines.push((style, words(state, line)));
    }
    lines
}

fn words(state: &State, line: usize) -> String {
    let Some(column) = COLUMNS.get(line) else {
        return format!("  theme: {}", state.theme.name());
    };
    let is_shown = state.columns.as_ref().is_none_or(|chosen| chosen.contains(&line));
    let mark = if is_shown { "x" } else { " " };
    format!("  [{mark}] {:<9} {}", column.title, column.about)
}
