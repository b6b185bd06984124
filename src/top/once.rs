//! A frame as a page of text: the screen, as wide and as long as it needs to be.

use super::model::Frame;
use super::model::history::History;
use super::state::{State, Theme};
use super::view::Scene;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Without a terminal.
pub(crate) const WIDTH: u16 = 160;
const LONGEST: u16 = 2000;

/// All processes, and the pane of the selected one, where it is open; every note.
pub(crate) fn page(frame: &Frame, history: &History, state: &State, width: u16) -> String {
    let lines = frame.processes.len() + 2 * (frame.devices.len() + 2) + 8 * frame.notes.len() + 60;
    let area = Rect::new(0, 0, width, u16::try_from(lines).unwrap_or(LONGEST).min(LONGEST));
    let mut buffer = Buffer::empty(area);
    let mut state = state.clone();
    state.theme = Theme::Mono;
    state.on_paper = true;
    state.message = Some(frame.cost.clone().unwrap_or_default());
    let scene = Scene {
        frame,
        history,
        state: &state,
    };
    scene.draw(area, &mut buffer);
    text(&buffer)
}

/// Without styles; no line has spaces at its end, and of empty lines together one is left.
pub(crate) fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut out = String::new();
    let mut was_empty = false;
    for y in 0..area.height {
        let line = line(buffer, y);
        let is_empty = line.is_empty();
        if !(is_empty && was_empty) {
            out.push_str(&line);
            out.push('\n');
        }
        was_empty = is_empty;
    }
    out
}

fn line(buffer: &Buffer, y: u16) -> String {
    let mut line = String::new();
    let mut skip = 0;
    for x in 0..buffer.area.width {
        let Some(cell) = buffer.cell((x, y)) else { continue };
        // what a wide character covers
        if skip == 0 {
            line.push_str(cell.symbol());
        }
        let width = unicode_width::UnicodeWidthStr::width(cell.symbol());
        skip = skip.max(width).saturating_sub(1);
    }
    line.trim_end().to_owned()
}
