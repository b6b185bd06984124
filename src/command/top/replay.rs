//! Plays a recording: its totals of each second, forwards by themselves, and wherever keys go.

use super::wakes::Wakes;
use super::{check_terminal, width};
use crate::cli::TopArgs;
use crate::command::{reading, rights};
use crate::model::snapshot::Snapshot;
use crate::output::Output;
use crate::probe;
use crate::record::{Record, Taker};
use crate::top::keys::{self, Action};
use crate::top::model::Frame;
use crate::top::model::history::{History, SPAN};
use crate::top::replay::{Totals, frames};
use crate::top::screen::{Aside, Screen};
use crate::top::state::{State, Tape};
use crate::top::view::Scene;
use crate::top::{json, once};
use crate::trace::Files;
use anyhow::{Result, bail};
use crossterm::event::{Event, KeyEventKind};
use ratatui::layout::Rect;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks at keys and signals.
const PAUSE: Duration = Duration::from_millis(50);

/// Shows the recording at `path` on a screen; with `--once` its last totals, with `--json` all of them.
///
/// # Errors
/// It is none, has no totals, or there is no terminal.
pub(super) fn run(path: &Path, args: &TopArgs) -> Result<ExitCode> {
    let screen = !args.once && !args.json;
    if screen {
        check_terminal()?;
    }
    let files = Files::open(path)?;
    let stderr = screen.then(Aside::make).transpose()?.flatten();
    rights::for_reading();
    let frames = load(&files)?;
    if !screen {
        return print(&frames, args);
    }
    Player::open(frames, super::chosen(args)?, stderr)?.play()
}

/// Totals of each second, and of the end.
#[derive(Default)]
struct Taken {
    tape: Vec<Totals>,
    latest: i64,
}

impl Taken {
    fn add(&mut self, at: i64, totals: &str) {
        let read = serde_json::from_str(totals)
            .ok()
            .and_then(|value| Snapshot::read(&value).ok());
        self.tape.extend(read.map(|snapshot| Totals { at, snapshot }));
    }
}

impl Taker for Taken {
    fn take(&mut self, record: &Record<'_>) {
        self.latest = self.latest.max(record.at);
    }

    fn totals(&mut self, at: i64, totals: &str) {
        self.add(at, totals);
    }
}

fn load(files: &Files) -> Result<Vec<Frame>> {
    let recording = files.recording()?;
    let started = recording.meta().clock.start_unix_ns as f64 / 1e9;
    let mut taken = Taken::default();
    let end = reading::read(recording, files, "reading", &mut taken);
    if let Some(summary) = &end.summary {
        let at = taken.latest;
        taken.add(at, summary);
    }
    if taken.tape.is_empty() {
        bail!(
            "{} has no totals to be played\nhint: gpuscope report says what its rows say; recordings of gpuscope record have totals of each second",
            files.path().display()
        );
    }
    let mut notes = vec![
        "a recording has no devices; functions, kernels and failures are of all processes together (*)".to_owned(),
    ];
    notes.extend(end.cut.map(|why| format!("the recording: {why}")));
    Ok(frames(&taken.tape, started, &notes))
}

fn print(frames: &[Frame], args: &TopArgs) -> Result<ExitCode> {
    let mut output = Output::stdout();
    if args.json {
        let last = if args.once { frames.len().saturating_sub(1) } else { 0 };
        frames
            .iter()
            .skip(last)
            .for_each(|frame| output.write(json::line(frame).as_bytes()));
    } else if let Some(frame) = frames.last() {
        let mut state = super::chosen(args)?;
        (state.pane, state.selected) = (true, Some(0));
        output.write(once::page(frame, &History::default(), &state, width()).as_bytes());
    }
    output.check()?;
    Ok(ExitCode::SUCCESS)
}

struct Player {
    screen: Screen,
    wakes: Wakes,
    state: State,
    frames: Vec<Arc<Frame>>,
    history: History,
    due: Instant,
    dirty: bool,
    /// How large the screen was.
    drawn: Rect,
    ends: bool,
}

impl Player {
    fn open(frames: Vec<Frame>, chosen: State, stderr: Option<Aside>) -> Result<Player> {
        let wakes = Wakes::of_screen()?;
        let mut state = chosen;
        (state.pane, state.selected) = (true, Some(0));
        state.tape = Some(Tape {
            of: frames.len(),
            ..Tape::default()
        });
        let mut player = Player {
            screen: Screen::open(stderr)?,
            wakes,
            state,
            frames: frames.into_iter().map(Arc::new).collect(),
            history: History::default(),
            due: Instant::now(),
            dirty: true,
            drawn: Rect::default(),
            ends: false,
        };
        player.seek(0);
        Ok(player)
    }

    fn play(mut self) -> Result<ExitCode> {
        while !self.ends && !self.wakes.end() {
            if self.turn().is_err() {
                break;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn turn(&mut self) -> Result<()> {
        if self.wakes.take_stop() {
            self.screen.suspend()?;
        }
        if self.wakes.take_go_on() {
            self.screen.resume()?;
            self.dirty = true;
        }
        for event in self.screen.events()? {
            self.handle(&event)?;
        }
        if Instant::now() >= self.due && self.tape().is_some_and(|tape| !tape.paused) {
            self.seek(1);
        }
        let area = self.screen.area();
        if self.dirty || area != self.drawn {
            self.drawn = area;
            self.draw()?;
        }
        probe::wait_for(self.screen.bell(), PAUSE);
        Ok(())
    }

    fn tape(&self) -> Option<Tape> {
        self.state.tape
    }

    /// Goes so many places, and remembers what was up to there.
    fn seek(&mut self, by: isize) {
        let Some(tape) = self.state.tape.as_mut() else { return };
        tape.at = tape.at.saturating_add_signed(by).min(tape.of.saturating_sub(1));
        let at = tape.at;
        self.history = History::default();
        let now = self.frames.get(at).map_or(0.0, |frame| frame.elapsed_seconds);
        let shown = self.frames.iter_mut().take(at + 1);
        for frame in shown.filter(|frame| frame.elapsed_seconds >= now - SPAN) {
            self.history.take(Arc::make_mut(frame));
        }
        let next = self.frames.get(at + 1).map_or(0.0, |frame| frame.elapsed_seconds - now);
        self.due = Instant::now() + Duration::from_secs_f64(next.clamp(0.1, 5.0));
        self.dirty = true;
    }

    fn frame(&self) -> &Arc<Frame> {
        let place = self.tape().map_or(0, |tape| tape.at);
        // there is at least one
        &self.frames[place]
    }

    fn draw(&mut self) -> Result<()> {
        let area = self.screen.area();
        let mut state = self.state.clone();
        let room = self.scene(&state).room(area);
        state.settle(self.frame(), room);
        self.state = state;
        self.dirty = false;
        let place = self.tape().map_or(0, |tape| tape.at);
        let scene = Scene {
            frame: &self.frames[place],
            history: &self.history,
            state: &self.state,
        };
        self.screen.draw(|area, buffer| scene.draw(area, buffer))
    }

    fn scene<'a>(&'a self, state: &'a State) -> Scene<'a> {
        Scene {
            frame: self.frame(),
            history: &self.history,
            state,
        }
    }

    fn handle(&mut self, event: &Event) -> Result<()> {
        self.dirty = true;
        let area = self.screen.area();
        let frame = Arc::clone(self.frame());
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let room = self.scene(&self.state).room(area);
                let action = keys::press(*key, &mut self.state, &frame, room);
                self.act(&action)?;
            }
            Event::Mouse(event) => {
                let scene = self.scene(&self.state);
                let (under, room) = (scene.under(area, event.column, event.row), scene.room(area));
                let action = keys::point(*event, &mut self.state, &frame, room, under);
                self.act(&action)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<()> {
        match action {
            Action::Quit => self.ends = true,
            Action::Suspend => self.screen.suspend()?,
            Action::Redraw => self.screen.forget()?,
            Action::Seek(by) => self.seek(*by),
            _ => {}
        }
        Ok(())
    }
}
