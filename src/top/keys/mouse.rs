//! What the mouse does.

use super::{Action, press, scroll_pane};
use crate::top::model::Frame;
use crate::top::state::{Page, State};
use crate::top::view::Under;
use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use std::sync::Arc;

/// `under`: what it points at; `room`: rows of processes on the screen.
pub(crate) fn point(event: MouseEvent, state: &mut State, frame: &Arc<Frame>, room: usize, under: Under) -> Action {
    let is_click = event.kind == MouseEventKind::Down(MouseButton::Left);
    match state.page {
        Some(Page::Help | Page::Notes) if is_click => state.page = None,
        Some(_) => {}
        None if state.question.is_some() => {}
        None => return freely(event, state, frame, room, under),
    }
    Action::Nothing
}

/// Nothing is asked, and no page is open.
fn freely(event: MouseEvent, state: &mut State, frame: &Arc<Frame>, room: usize, under: Under) -> Action {
    let shown = state.shown(frame);
    match (event.kind, under) {
        (MouseEventKind::ScrollUp, Under::Pane) => scroll_pane(state, -3),
        (MouseEventKind::ScrollDown, Under::Pane) => scroll_pane(state, 3),
        (MouseEventKind::ScrollUp, _) => state.step(&shown, -3),
        (MouseEventKind::ScrollDown, _) => state.step(&shown, 3),
        (MouseEventKind::Down(MouseButton::Left), under) => return click(state, frame, room, under),
        _ => {}
    }
    Action::Nothing
}

fn click(state: &mut State, frame: &Arc<Frame>, room: usize, under: Under) -> Action {
    match under {
        Under::Process(pid) => {
            // as a second click opens a file
            state.pane ^= state.selected == Some(pid);
            state.selected = Some(pid);
        }
        Under::Heading(column) if state.sort == column => state.reversed = !state.reversed,
        Under::Heading(column) => (state.sort, state.reversed) = (column, false),
        Under::Key(code) => return press(KeyEvent::from(code), state, frame, room),
        Under::Pane | Under::Nothing => {}
    }
    Action::Nothing
}
