//! The last line: what is asked, what was said, or which keys there are.

use super::Scene;
use crate::text::quantity::escaped;
use crate::top::columns::COLUMNS;
use crate::top::state::{Question, Tape};
use crossterm::event::KeyCode;
use ratatui::style::{Modifier, Style};
use unicode_width::UnicodeWidthStr;

/// What is said of a key, what it is, and its rank: those of the highest go where there is no room.
type Shown = (u8, &'static str, KeyCode);

/// As they stand beside one another.
const KEYS: [Shown; 17] = [
    (0, "F1Help", KeyCode::F(1)),
    (3, "F2Setup", KeyCode::F(2)),
    (4, "F3Search", KeyCode::F(3)),
    (2, "F4Filter", KeyCode::F(4)),
    (4, "F5Tree", KeyCode::F(5)),
    (2, "F6Sort", KeyCode::F(6)),
    (3, "F9Kill", KeyCode::F(9)),
    (0, "F10Quit", KeyCode::F(10)),
    (1, "↵Pane", KeyCode::Enter),
    (5, "f findings", KeyCode::Char('f')),
    (6, "s calls", KeyCode::Char('s')),
    (7, "a allocations", KeyCode::Char('a')),
    (8, "space freeze", KeyCode::Char(' ')),
    (9, "r record", KeyCode::Char('r')),
    (10, "l leaks", KeyCode::Char('l')),
    (11, "n notes", KeyCode::Char('n')),
    (12, "u user", KeyCode::Char('u')),
];
const REPLAY_KEYS: [Shown; 8] = [
    (0, "F1Help", KeyCode::F(1)),
    (0, "F10Quit", KeyCode::F(10)),
    (1, "← → a second", KeyCode::Right),
    (2, "[ ] ten", KeyCode::Char(']')),
    (4, "Home End", KeyCode::Home),
    (3, "space play", KeyCode::Char(' ')),
    (5, "F4Filter", KeyCode::F(4)),
    (6, "F6Sort", KeyCode::F(6)),
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
    let before = before(scene, width);
    let keys = fitting(keys(scene), width.saturating_sub(before.width()));
    let keys: Vec<&str> = keys.into_iter().map(|(_, words, _)| words).collect();
    (Style::new().add_modifier(Modifier::DIM), before + &keys.join(" "))
}

/// The key whose words are there.
pub(super) fn key_at(scene: &Scene, width: usize, x: usize) -> Option<KeyCode> {
    if scene.state.question.is_some() || scene.state.message.is_some() {
        return None;
    }
    let mut from = before(scene, width).width();
    for (_, words, code) in fitting(keys(scene), width.saturating_sub(from)) {
        if (from..from + words.width()).contains(&x) {
            return Some(code);
        }
        from += words.width() + 1;
    }
    None
}

fn keys(scene: &Scene) -> &'static [Shown] {
    if scene.state.tape.is_some() {
        &REPLAY_KEYS
    } else {
        &KEYS
    }
}

/// What is as it is not usually.
fn before(scene: &Scene, width: usize) -> String {
    let state = scene.state;
    let hidden = (!scene.columns(width).contains(&state.sort)).then_some(state.sort);
    let words = [
        state.tape.map(place),
        state.frozen.as_ref().map(|_| "frozen".to_owned()),
        (!state.filter.is_empty()).then(|| format!("filter {}", escaped(&state.filter))),
        state.user.as_ref().map(|user| format!("user {}", escaped(user))),
        // that of a column in sight is marked in its heading
        hidden
            .and_then(|column| COLUMNS.get(column))
            .map(|column| format!("by {}", column.title)),
        state.reversed.then(|| "reversed".to_owned()),
    ];
    words.into_iter().flatten().map(|words| words + " │ ").collect()
}

/// In their order, as many as there is room for.
fn fitting(keys: &[Shown], room: usize) -> Vec<Shown> {
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
    by_rank.into_iter().map(|place| keys[place]).collect()
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
