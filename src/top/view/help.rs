//! The page of keys.

use super::cells::folded;
use super::{Lines, Scene};
use crate::text::quantity::escaped;
use crate::top::state::Theme;
use ratatui::style::Style;

const KEYS: [(&str, &str); 21] = [
    ("q  F10  Ctrl-C", "end"),
    ("?  h  F1", "this page"),
    (
        "↑ ↓  PgUp PgDn",
        "choose a process; with Enter's pane open PgUp and PgDn move through it",
    ),
    (
        "Enter",
        "what the chosen process does, holds and waits for; Esc closes it",
    ),
    (
        "/  F4  \\",
        "show rows with a text in them: command, user, place, or a whole process id",
    ),
    ("< >  F6", "sort by the column before or after; I turns the order"),
    ("M  P  L  W", "sort by memory held, SM share, launches, waiting"),
    ("F2  C", "columns of processes, and colours"),
    (
        "n",
        "all notes: what is not seen, what was lost, what gpuscope itself takes",
    ),
    ("t  F5", "children below their parents"),
    ("space  z", "freeze the screen; what happens is still counted"),
    ("+ -", "look more or less often"),
    ("k  F9", "end the chosen process, which is asked twice"),
    (
        "f",
        "look for what is wrong with it: traces each of its calls, as trace -p does",
    ),
    (
        "a",
        "allocations one by one: address, size, age, call site; again: only older ones",
    ),
    ("r", "begin and end a recording of the chosen process (record -p)"),
    ("l", "a leak report of the chosen process (leaks -p), for ten seconds"),
    ("Ctrl-Z", "leave the screen; fg comes back"),
    ("", ""),
    ("-  ≥  ≤  ~", "not known; at least; at most; inferred, no bound"),
    (
        "wait",
        "time of threads in waits for the GPU: two threads that wait all the time are 200%",
    ),
];

pub(super) fn lines(theme: Theme) -> Lines {
    let mut lines = vec![(theme.heading(), "gpuscope top: keys (any key goes back)".to_owned())];
    lines.extend(
        KEYS.iter()
            .map(|(keys, what)| (Style::new(), format!("  {keys:<21} {what}"))),
    );
    lines
}

/// What is not seen, what went wrong, and what gpuscope takes, in full.
pub(super) fn notes(scene: &Scene, width: usize) -> Lines {
    let mut lines = vec![(
        scene.state.theme.heading(),
        "gpuscope top: notes (any key goes back)".to_owned(),
    )];
    for note in scene.frame.notes.iter().chain(&scene.frame.cost) {
        lines.extend(
            folded(&escaped(note), width, ["- ", "  "])
                .into_iter()
                .map(|line| (Style::new(), line)),
        );
    }
    lines
}
