//! The page of keys.

use super::{Lines, Scene};
use crate::text::quantity::escaped;
use crate::top::cells::folded;
use crate::top::state::Theme;
use ratatui::style::Style;

/// No longer than a line of 80 columns, and all of them on 24.
const KEYS: [(&str, &str); 23] = [
    ("F1  ?  h", "this page"),
    ("F10  q  Ctrl-C", "end"),
    (
        "↑ ↓  PgUp PgDn",
        "choose a process; with the pane open PgUp, PgDn move through it",
    ),
    ("Enter  Esc", "open, close the pane: what hangs, fails, waits, is held"),
    (
        "s  Enter again",
        "its calls as they come, at the cost of trace -p; Esc ends that",
    ),
    ("f", "what is wrong, waits by call site: traces its calls (trace -p)"),
    ("a", "its allocations one by one: address, age, line; again: older"),
    ("F2  C  S", "columns and colours; F12 says how to start with the same"),
    ("F3", "go to a row with a text in it; again: to the next one"),
    (
        "F4  /  \\",
        "only rows with a text: command, user, place; or a process id",
    ),
    ("u", "only processes of the chosen one's user; again: everybody's"),
    ("F5  t", "children below their parents"),
    ("F6  < >", "choose what to sort by; the column before or after"),
    ("+  -  I", "lowest first, highest first, the other way round"),
    ("M  P  L  W", "sort by memory held, SM share, launches, waiting"),
    ("F9  k", "end the chosen process (SIGTERM), which is asked twice"),
    ("space  z  Z", "freeze the screen; what happens is still counted"),
    ("d  D", "look more rarely, more often"),
    ("r  l", "record it, and end that (record -p); report its memory (leaks)"),
    ("n", "notes: what is not seen, lost, and what gpuscope itself takes"),
    ("Ctrl-Z  Ctrl-L", "leave the screen, fg comes back; draw it anew"),
    (
        "-  ≥  ≤  ≳  ≲",
        "not known; at least; at most; the same, inferred: no bound",
    ),
    ("wait", "of all its threads: two that wait all the time are 200%"),
];

pub(super) fn lines(theme: Theme) -> Lines {
    let mut lines = vec![(theme.heading(), "gpuscope top: keys (any key goes back)".to_owned())];
    lines.extend(
        KEYS.iter()
            .map(|(keys, what)| (Style::new(), format!("{keys:<15} {what}"))),
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
