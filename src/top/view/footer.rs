//! The last line: what is asked, what was said, or which keys there are.

use super::Scene;
use super::columns::COLUMNS;
use crate::text::quantity::escaped;
use crate::top::state::{Question, Tape};
use ratatui::style::{Modifier, Style};
use unicode_width::UnicodeWidthStr;

/// The most important first: those behind them go where there is no room.
const KEYS: [&str; 15] = [
    "q quit",
    "? help",
    "/ filter",
    "<> sort",
    "Enter details",
    "f findings",
    "a allocations",
    "t tree",
    "F2 columns",
    "space freeze",
    "k kill",
    "r record",
    "l leaks",
    "n notes",
    "+ - pace",
];
const REPLAY_KEYS: [&str; 8] = [
    "q quit",
    "? help",
    "← → a second",
    "[ ] ten",
    "Home End",
    "space play",
    "/ filter",
    "<> sort",
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
        COLUMNS.get(state.sort).map(|column| {
            let way = if state.reversed { " reversed" } else { "" };
            format!("by {}{way}", column.title)
        }),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let mut line = words.join(" │ ") + " │";
    let keys: &[&str] = if state.tape.is_some() { &REPLAY_KEYS } else { &KEYS };
    for key in keys {
        let fits = line.width() + 2 + key.width() <= width;
        if !fits {
            break;
        }
        line.push_str(if line.ends_with('│') { " " } else { "  " });
        line.push_str(key);
    }
    (Style::new().add_modifier(Modifier::DIM), line)
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
        Question::Kill { pid, sure: false } => format!("SIGTERM to {pid}? y / n  {}", command(*pid)),
        Question::Kill { pid, sure: true } => format!("really end {pid}? y / n  {}", command(*pid)),
    }
}

fn place(tape: Tape) -> String {
    let way = if tape.paused { "paused" } else { "playing" };
    format!("{way}, {} of {}", tape.at + 1, tape.of)
}
