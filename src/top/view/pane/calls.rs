//! Calls of the selected process as they come.

use crate::text::quantity::{count, escaped};
use crate::top::cells::folded;
use crate::top::model::{Calls, Process};
use crate::top::view::{Lines, Scene};
use ratatui::style::{Modifier, Style};

const SOON: &str =
    "its calls are traced from now on, as gpuscope trace -p does; each costs it more than the screen does";

/// The newest last, as many as `height` has room for; `None`: nobody wants them.
pub(super) fn lines(scene: &Scene, process: &Process, width: usize, height: usize) -> Option<Lines> {
    (scene.state.calls == Some(process.pid)).then_some(())?;
    let told = scene.frame.calls.as_ref().filter(|calls| calls.pid == process.pid);
    let title = (Style::new().add_modifier(Modifier::BOLD), title(told));
    let room = height.saturating_sub(1);
    let plain = |words: String| (Style::new(), words);
    let body: Lines = match told {
        None => folded(SOON, width, ["", ""]).into_iter().map(plain).collect(),
        Some(Calls { why: Some(why), .. }) => {
            let words = folded(&format!("not traced: {}", escaped(why)), width, ["", "  "]);
            words
                .into_iter()
                .map(|line| (scene.state.theme.wrong(), line))
                .collect()
        }
        Some(calls) => {
            let hidden = scene.state.pane_scroll.min(calls.lines.len().saturating_sub(room));
            let until = calls.lines.len() - hidden;
            let from = until.saturating_sub(room);
            calls.lines.range(from..until).map(|line| plain(line.clone())).collect()
        }
    };
    Some(std::iter::once(title).chain(body).collect())
}

fn title(told: Option<&Calls>) -> String {
    let seen = told.map_or(0, |calls| calls.seen);
    let keys = "Esc ends that; PgUp goes back, and then they stand still";
    format!("calls as they come, {} so far ({keys})", count(seen))
}
