//! The live screen: one thread looks, which may take as long as programs make calls; one draws and listens to keys.

use super::children::Children;
use super::finder::{Finder, Wanted};
use super::handover::{Drawer, Looker, Wish, handover};
use super::live::{self, Close, Live};
use super::preview::Preview;
use super::wakes::Wakes;
use crate::cli::TopArgs;
use crate::probe;
use crate::refusal;
use crate::top::keys::{self, Action};
use crate::top::model::Frame;
use crate::top::model::history::History;
use crate::top::screen::{self, Aside, Screen};
use crate::top::state::State;
use crate::top::view::Scene;
use anyhow::{Context, Result, bail};
use crossterm::event::{Event, KeyEventKind};
use ratatui::layout::Rect;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The second look comes soon: with it there are rates.
const SOON: Duration = Duration::from_millis(500);
/// Between two looks at signals and at what there is to be drawn; keys are answered at once.
const PAUSE: Duration = Duration::from_millis(50);

/// Until q, a signal, or the end of the terminal.
///
/// # Errors
/// The terminal cannot be taken, or a process that was asked for is not there.
pub(super) fn run(args: &TopArgs, user: Option<String>) -> Result<ExitCode> {
    let wakes = Wakes::of_screen()?;
    let mut state = State {
        user,
        ..super::chosen(args)?
    };
    let screen = Screen::open(Aside::make()?)?;
    let (looker, drawer) = handover(args.delay);
    if args.findings {
        state.selected = super::looked_at(args);
        (state.pane, state.findings) = (true, state.selected);
    }
    let thread = std::thread::Builder::new().name("screen".to_owned());
    let drawing = thread
        .spawn(move || Session::new(screen, drawer, wakes, state).run())
        .context("failed to start the thread that draws")?;
    let looked = look(args, &looker);
    // ends the other one, where that has not ended this one
    drop(looker);
    // it may have panicked, and has said so
    let _ = drawing.join();
    looked?;
    match screen::has_panicked() {
        true => bail!("a thread has panicked"),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Looks as often as is wanted.
fn look(args: &TopArgs, looker: &Looker) -> Result<()> {
    let mut live = attached(args, looker)?;
    let (mut looks, mut due) = (0u64, Instant::now());
    while !looker.ends() {
        let (number, wish) = looker.take_wish();
        looker.lent(number, live.lend(&wish.lent));
        if wish.now || Instant::now() >= due {
            looks += 1;
            looker.give(live.look(wish.close));
            due = Instant::now() + if looks == 1 { SOON.min(wish.delay) } else { wish.delay };
        }
        live.step()?;
    }
    Ok(())
}

/// What is known without probes is shown meanwhile.
fn attached(args: &TopArgs, looker: &Looker) -> Result<Live> {
    let sampler = live::sampler(args)?;
    let _preview = Preview::begin(args, &sampler, looker.early())?;
    Live::start(args, &sampler)
}

/// What gpuscope does in a process of its own.
#[derive(Clone, Copy)]
enum Task {
    Recording,
    Leaks,
}

/// The thread that draws.
struct Session {
    screen: Screen,
    drawer: Drawer,
    children: Children,
    finder: Finder,
    wakes: Wakes,
    state: State,
    /// What keys have asked for, of a process that may have to be left to it first.
    pending: Option<(u32, Task)>,
    frame: Arc<Frame>,
    history: History,
    /// A process of which everything is wanted, and how often it is looked.
    wanted: (Option<Close>, Duration, BTreeSet<u32>),
    dirty: bool,
    /// How large the screen was.
    drawn: Rect,
    ends: bool,
}

impl Session {
    fn new(screen: Screen, drawer: Drawer, wakes: Wakes, state: State) -> Session {
        Session {
            wanted: (None, state.delay, BTreeSet::new()),
            pending: None,
            screen,
            drawer,
            children: Children::new(),
            finder: Finder::default(),
            wakes,
            state,
            frame: Arc::new(Frame {
                attaching: true,
                ..Frame::default()
            }),
            history: History::default(),
            dirty: true,
            drawn: Rect::default(),
            ends: false,
        }
    }

    fn run(mut self) {
        while !self.ends && !self.wakes.end() && !self.drawer.is_alone() {
            // who has no terminal any more has nothing to show
            if self.turn().is_err() {
                break;
            }
        }
    }

    fn turn(&mut self) -> Result<()> {
        self.take_what_came();
        if self.wakes.take_stop() {
            self.suspend()?;
        }
        if self.wakes.take_go_on() {
            self.screen.resume()?;
            self.dirty = true;
        }
        for event in self.screen.events()? {
            self.handle(event)?;
        }
        let area = self.screen.area();
        if self.dirty || area != self.drawn {
            self.drawn = area;
            self.draw(area)?;
        }
        self.want();
        probe::wait_for(self.screen.bell(), PAUSE);
        Ok(())
    }

    fn take_what_came(&mut self) {
        if let Some(frame) = self.drawer.take_frame() {
            self.take(frame);
        }
        let seen = self.frame.calls.as_ref().map_or(0, |calls| calls.seen);
        // who reads in them is not disturbed
        let calls = self.finder.calls(seen).filter(|_| self.state.pane_scroll == 0);
        if let Some(calls) = calls {
            self.dirty |= self.frame.calls.as_ref() != Some(&calls);
            Arc::make_mut(&mut self.frame).calls = Some(calls);
        }
        if let Some(found) = self.finder.take().filter(|_| self.state.findings.is_some()) {
            Arc::make_mut(&mut self.frame).findings = Some(found);
            self.dirty = true;
        }
        if let Some(words) = self.children.take_words() {
            self.say(words);
        }
    }

    fn take(&mut self, mut frame: Frame) {
        if !frame.attaching {
            self.history.take(&mut frame);
        }
        if self.frame.attaching && !frame.attaching && !self.state.pane {
            // the first of those few that were known is the first of all no longer
            self.state.selected = None;
        }
        frame.findings.clone_from(&self.frame.findings);
        frame.calls.clone_from(&self.frame.calls);
        self.frame = Arc::new(frame);
        self.dirty = true;
    }

    fn suspend(&mut self) -> Result<()> {
        self.dirty = true;
        self.screen.suspend()
    }

    fn draw(&mut self, area: Rect) -> Result<()> {
        self.dirty = false;
        let shown = self.state.shown(&self.frame);
        let room = scene(&shown, &self.history, &self.state).room(area);
        self.state.settle(&shown, room);
        let scene = scene(&shown, &self.history, &self.state);
        self.screen.draw(|area, buffer| scene.draw(area, buffer))
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        self.dirty = true;
        let frame = Arc::clone(&self.frame);
        let shown = self.state.shown(&frame);
        let scene = scene(&shown, &self.history, &self.state);
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let room = scene.room(self.screen.area());
                let action = keys::press(key, &mut self.state, &frame, room);
                self.act(action)?;
            }
            Event::Mouse(event) => {
                let area = self.screen.area();
                let (under, room) = (scene.under(area, event.column, event.row), scene.room(area));
                let action = keys::point(event, &mut self.state, &frame, room, under);
                self.act(action)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Has looked at what is chosen; at once where nothing is known of it.
    fn want(&mut self) {
        if self.state.findings.is_none() && self.frame.findings.is_some() {
            Arc::make_mut(&mut self.frame).findings = None;
            self.dirty = true;
        }
        if self.state.calls.is_none() && self.frame.calls.is_some() {
            Arc::make_mut(&mut self.frame).calls = None;
            self.dirty = true;
        }
        let older = self.state.single;
        let close = self.state.selected.filter(|_| self.state.pane);
        let close = close.map(|pid| Close { pid, older });
        let looked_at = self.look_at();
        let asked = self.pending.map(|(pid, _)| pid);
        let lent: BTreeSet<u32> = self.children.processes().chain(looked_at).chain(asked).collect();
        let wanted = (close, self.state.delay, lent);
        if wanted != self.wanted {
            self.drawer.want(Wish {
                close,
                delay: self.state.delay,
                now: close.is_some() && close != self.wanted.0,
                lent: wanted.2.clone(),
            });
            self.wanted = wanted;
        }
        self.look_closely();
        self.act_on_pending();
    }

    /// The process whose calls are wanted; none where it is traced by another one of ours, who has to be alone with it.
    fn look_at(&mut self) -> Option<u32> {
        let pid = self.state.calls.or(self.state.findings)?;
        let alone = self.drawer.traces_alone();
        let is_asked = self.pending.is_some_and(|(asked, _)| asked == pid);
        if alone && (is_asked || self.children.has(pid)) {
            (self.state.findings, self.state.calls) = (None, None);
            self.say(format!(
                "{pid} is being recorded or reported: it is traced by one at a time; r ends a recording"
            ));
            return None;
        }
        Some(pid)
    }

    /// Begins to look as soon as the process is left to it.
    fn look_closely(&mut self) {
        let (calls, findings) = (self.state.calls, self.state.findings);
        let wanted = calls.or(findings).map(|pid| Wanted {
            pid,
            calls: calls.is_some(),
        });
        // what is looked at already goes on while another process is left or taken back
        let wanted = wanted.filter(|wanted| self.drawer.has_lent() || self.finder.looks_at(*wanted));
        if let Err(error) = self.finder.look_at(wanted, self.drawer.traces_alone()) {
            (self.state.findings, self.state.calls) = (None, None);
            self.say(refusal::message(&error));
        }
    }

    /// Begins what was asked for as soon as its process is left to it.
    fn act_on_pending(&mut self) {
        let waits = self.drawer.traces_alone();
        let may = |(pid, _): &mut (u32, Task)| self.drawer.has_lent() && !(waits && self.finder.has(*pid));
        let Some((pid, task)) = self.pending.take_if(may) else {
            return;
        };
        let said = match task {
            Task::Recording => self.children.record(pid),
            Task::Leaks => self.children.leaks(pid),
        };
        self.say(said.unwrap_or_else(|error| refusal::message(&error)));
    }

    /// Begins that, unless the process is traced by another one of ours, who has to be alone with it.
    fn begin(&mut self, pid: u32, task: Task) {
        let alone = self.drawer.traces_alone();
        if alone && [self.state.calls, self.state.findings].contains(&Some(pid)) {
            self.say(format!(
                "the calls of {pid} are looked at: it is traced by one at a time; Esc ends that first"
            ));
        } else if alone && self.children.has(pid) {
            self.say(format!(
                "{pid} is being recorded or reported: it is traced by one at a time"
            ));
        } else {
            self.pending = Some((pid, task));
        }
    }

    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::Quit => self.ends = true,
            Action::Suspend => self.suspend()?,
            Action::Redraw => self.screen.forget()?,
            Action::Kill(pid) => self.kill(pid),
            Action::Record(pid) => match self.children.end_recording(pid) {
                Some(said) => self.say(said),
                None => self.begin(pid, Task::Recording),
            },
            Action::Leaks(pid) => self.begin(pid, Task::Leaks),
            Action::Nothing | Action::Seek(_) => {}
        }
        Ok(())
    }

    /// The process that was chosen, not one that has its number since.
    fn kill(&mut self, pid: u32) {
        let process = self.frame.process(pid);
        let is_there = process.is_some_and(|process| !process.ended);
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

fn scene<'a>(frame: &'a Frame, history: &'a History, state: &'a State) -> Scene<'a> {
    Scene { frame, history, state }
}
