//! The last line: what is asked, what was said, or which keys there are.

use super::Scene;
use crate::text::quantity::escaped;
use crate::top::columns::COLUMNS;
use crate::top::state::{Question, Tape};
use ratatui::style::{Modifier, Style};
use unicode_width::UnicodeWidthStr;

/// As they stand beside one another, each with its rank: those of the highest go where there is no room.
const KEYS: [(u8, &str); 16] = [
    (0, "F1Help"),
    (3, "F2Setup"),
    (4, "F3Search"),
    (2, "F4Filter"),
    (4, "F5Tree"),
    (2, "F6Sort"),
    (3, "F9Kill"),
    (0, "F10Quit"),
    (1, "↵Pane"),
    (5, "f findings"),
    (7, "a allocations"),
    (8, "space freeze"),
    (9, "r record"),
    (10, "l leaks"),
    (11, "n notes"),
    (12, "u user"),
];
const REPLAY_KEYS: [(u8, &str); 8] = [
    (0, "F1Help"),
    (0, "F10Quit"),
    (1, "← → a second"),
    (2, "[ ] ten"),
    (4, "Home End"),
    (3, "space play"),
    (5, "F4Filter"),
    (6, "F6Sort"),
];

pub(super) fn line(scene: &Scene, width: usize) -> (Style, String) {
    let state = scene.state;
    let loud = Style::new().add_modifier(Modifier::REVERSED);
    if let Some(question) = &state.question {
        return (loud, asked(question, scene));
    }
    if let Some(message) = &state.message {
        return (loud, escaped(message));
    }
    let words = [
        state.tape.map(place),
        state.frozen.as_ref().map(|_| "frozen".to_owned()),
        (!state.filter.is_empty()).then(|| format!("filter {}", escaped(&state.filter))),
        state.user.as_ref().map(|user| format!("user {}", escaped(user))),
        COLUMNS.get(state.sort).map(|column| {
            let way = if state.reversed { " reversed" } else { "" };
            format!("by {}{way}", column.title)
        }),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let line = words.join(" │ ") + " │ ";
    let keys: &[(u8, &str)] = if state.tape.is_some() { &REPLAY_KEYS } else { &KEYS };
    let room = width.saturating_sub(line.width());
    (Style::new().add_modifier(Modifier::DIM), line + &fitting(keys, room))
}

/// In their order, as many as there is room for.
fn fitting(keys: &[(u8, &str)], room: usize) -> String {
    let mut by_rank: Vec<usize> = (0..keys.len()).collect();
    by_rank.sort_by_key(|place| keys[*place].0);
    let mut taken = 0;
    by_rank.retain(|place| {
        let more = keys[*place].1.width() + usize::from(taken > 0);
        let fits = taken + more <= room;
        taken += if fits { more } else { 0 };
        fits
    });
    by_rank.sort_unstable();
    let words: Vec<&str> = by_rank.into_iter().map(|place| keys[place].1).collect();
    words.join(" ")
}

fn asked(question: &Question, scene: &Scene) -> String {
    let command = |pid: u32| {
        scene
            .frame
            .process(pid)
            .map_or(String::new(), |process| escaped(&process.command))
    };
    match question {
        Question::Filter => format!(
            "filter: {}▏ (Enter keeps it, Esc shows all)",
            escaped(&scene.state.filter)
        ),
        Question::Search(words) => format!("search: {}▏ (F3 the next one, Enter ends)", escaped(words)),
        Question::Kill { pid, sure: false } => format!("SIGTERM to {pid}? y / n  {}", command(*pid)),
        Question::Kill { pid, sure: true } => format!("really end {pid}? y / n  {}", command(*pid)),
    }
}

fn place(tape: Tape) -> String {
    let way = if tape.paused { "paused" } else { "playing" };
    format!("{way}, {} of {}", tape.at + 1, tape.of)
}
