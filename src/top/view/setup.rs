//! The page of columns and colours.

use super::{Lines, Scene};
use crate::top::columns::COLUMNS;
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

/// What starts another one that looks the same.
pub(crate) fn options(state: &State) -> String {
    let usual = State::new(state.delay);
    let names = |chosen: &Vec<usize>| {
        let titles: Vec<&str> = chosen.iter().map(|place| COLUMNS[*place].title).collect();
        format!(" --columns {}", titles.join(","))
    };
    let words = [
        state.columns.as_ref().map(names),
        (state.theme != usual.theme).then(|| format!(" --theme {}", state.theme.name())),
        state.user.as_ref().map(|user| format!(" --user {user}")),
        Some(format!(" --delay {}ms", state.delay.as_millis())),
    ];
    let words: String = words.into_iter().flatten().collect();
    format!("nothing is kept in a file; the same again: gpuscope top{words}")
}

/// `chosen`: the line with the cursor.
pub(super) fn lines(scene: &Scene, chosen: usize, (width, height): (usize, usize)) -> Lines {
    let title = "gpuscope top: columns and colours (↑ ↓ choose, space changes, Esc goes back)";
    let shown = scene.columns(width);
    page(scene.state, title, (chosen, LINES), height, |state, line| {
        words(state, &shown, line)
    })
}

/// The page of what processes are ordered by.
pub(super) fn orders(scene: &Scene, chosen: usize, height: usize) -> Lines {
    let title = "gpuscope top: order by (↑ ↓ choose, Enter takes it, Esc goes back)";
    page(scene.state, title, (chosen, COLUMNS.len()), height, |state, line| {
        let mark = if line == state.sort { "*" } else { " " };
        let column = &COLUMNS[line];
        format!("  {mark} {:<9} {}", column.title, column.about)
    })
}

/// The chosen line is in sight.
fn page(
    state: &State,
    title: &str,
    (chosen, of): (usize, usize),
    height: usize,
    words: impl Fn(&State, usize) -> String,
) -> Lines {
    let mut lines = vec![(state.theme.heading(), title.to_owned())];
    let room = height.saturating_sub(2).max(1);
    let first = (chosen + 1).saturating_sub(room);
    for line in (first..of).take(room) {
        let style = match line == chosen {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        lines.push((style, words(state, line)));
    }
    lines
}

/// `shown`: columns that there is room for, and something to say in.
fn words(state: &State, shown: &[usize], line: usize) -> String {
    let Some(column) = COLUMNS.get(line) else {
        return format!("  theme: {}", state.theme.name());
    };
    let is_wanted = state.columns.as_ref().is_none_or(|chosen| chosen.contains(&line));
    let (mark, why) = match (is_wanted, shown.contains(&line)) {
        (true, true) => ("x", ""),
        (true, false) => ("-", " (no room now, or nothing to say)"),
        (false, _) => (" ", ""),
    };
    format!("  [{mark}] {:<9} {}{why}", column.title, column.about)
}
