//! The live screen: looks, keys, pictures, until somebody ends it.

use super::children::Children;
use super::live::Live;
use super::wakes::Wakes;
use crate::cli::TopArgs;
use crate::refusal;
use crate::top::keys::{self, Action};
use crate::top::model::Frame;
use crate::top::screen::{self, Screen};
use crate::top::state::State;
use crate::top::view::Scene;
use anyhow::Result;
use crossterm::event::{Event, KeyEventKind};
use ratatui::layout::Rect;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The second look comes soon: with it there are rates.
const SOON: Duration = Duration::from_millis(500);

struct Session {
    screen: Screen,
    live: Live,
    children: Children,
    wakes: Wakes,
    state: State,
    frame: Frame,
    due: Instant,
    dirty: bool,
    /// How large the screen was.
    drawn: Rect,
    ends: bool,
}

/// Until q, a signal, or the end of the terminal.
///
/// # Errors
/// The terminal cannot be taken, or a process that was asked for is not there.
pub(super) fn run(args: &TopArgs, user: Option<String>) -> Result<ExitCode> {
    let mut screen = Screen::open()?;
    let wakes = Wakes::of_screen()?;
    let style = ratatui::style::Style::new();
    screen.draw(|area, buffer| {
        buffer.set_stringn(0, 0, "gpuscope top: attaching …", area.width.into(), style);
    })?;
    let live = Live::start(args, screen.bell())?;
    let mut session = Session {
        screen,
        live,
        children: Children::new(),
        wakes,
        state: State {
            user,
            ..State::new(args.delay)
        },
        frame: Frame::default(),
        due: Instant::now(),
        dirty: true,
        drawn: Rect::default(),
        ends: false,
    };
    session.look();
    session.due = Instant::now() + SOON.min(args.delay);
    while !session.ends && !session.wakes.end() {
        // who has no terminal any more has nothing to show
        if session.turn().is_err() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Session {
    fn turn(&mut self) -> Result<()> {
        let area = self.screen.area();
        if self.dirty || area != self.drawn {
            self.drawn = area;
            self.draw()?;
        }
        self.live.step()?;
        if self.wakes.take_stop() {
            self.screen.suspend()?;
            self.dirty = true;
        }
        if self.wakes.take_go_on() {
            self.screen.resume()?;
            self.dirty = true;
        }
        for event in self.screen.events()? {
            self.handle(event)?;
        }
        if let Some(words) = self.children.take_words() {
            self.say(words);
        }
        if Instant::now() >= self.due {
            self.look();
        }
        Ok(())
    }

    fn look(&mut self) {
        let close = self.state.selected.filter(|_| self.state.pane);
        self.frame = self.live.look(close);
        self.due = Instant::now() + self.state.delay;
        self.dirty = true;
    }

    fn draw(&mut self) -> Result<()> {
        let area = self.screen.area();
        let room = self.room(area);
        let shown = self.state.shown(&self.frame).clone();
        self.state.settle(&shown, room);
        let scene = Scene {
            frame: &shown,
            history: self.live.history(),
            state: &self.state,
            theme: screen::theme(),
        };
        self.dirty = false;
        self.screen.draw(|area, buffer| scene.draw(area, buffer))
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            frame: self.state.shown(&self.frame),
            history: self.live.history(),
            state: &self.state,
            theme: screen::theme(),
        }
    }

    fn room(&self, area: Rect) -> usize {
        self.scene().room(area)
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        self.dirty = true;
        let area = self.screen.area();
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let room = self.room(area);
                let had_pane = (self.state.pane, self.state.selected);
                let action = keys::press(key, &mut self.state, &self.frame, room);
                self.act(action)?;
                if self.state.pane && had_pane != (self.state.pane, self.state.selected) {
                    self.look();
                }
            }
            Event::Mouse(event) => {
                let process = self.scene().process_at(area, event.row);
                keys::point(event, &mut self.state, &self.frame, process);
            }
            _ => {}
        }
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::Quit => self.ends = true,
            Action::Suspend => self.screen.suspend()?,
            Action::Redraw => self.screen.forget()?,
            Action::Kill(pid) => self.kill(pid),
            Action::Record(pid) => {
                let said = self.children.record(pid);
                self.say(said.unwrap_or_else(|error| refusal::message(&error)));
            }
            Action::Leaks(pid) => {
                let said = self.children.leaks(pid);
                self.say(said.unwrap_or_else(|error| refusal::message(&error)));
            }
            Action::Nothing | Action::Seek(_) => {}
        }
        Ok(())
    }

    /// The process that was chosen, not one that has its number since.
    fn kill(&mut self, pid: u32) {
        let is_there = self.frame.process(pid).is_some_and(|process| !process.ended);
        // SAFETY: plain numbers
        let sent = is_there && unsafe { libc::kill(pid.cast_signed(), libc::SIGTERM) } == 0;
        self.say(match (is_there, sent) {
            (true, true) => format!("process {pid} was asked to end (SIGTERM)"),
            (true, false) => format!("process {pid} may not be ended: {}", std::io::Error::last_os_error()),
            (false, _) => format!("process {pid} has ended already"),
        });
    }

    fn say(&mut self, words: String) {
        self.state.message = Some(words);
        self.dirty = true;
    }
}
