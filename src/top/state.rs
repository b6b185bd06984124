//! What the user has chosen: order, filter, what is open. Pure; [keys](super::keys) change it.

use super::columns::{COLUMNS, Key};
use super::model::{Frame, Process};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// What is asked before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Which rows to keep.
    Filter,
    /// Which row to go to: what was typed so far.
    Search(String),
    /// Whether to end that process; `sure`: it was answered once.
    Kill { pid: u32, sure: bool },
}

/// A page of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Help,
    Notes,
    /// Columns and colours; the line that is chosen of it.
    Setup(usize),
    /// Which column orders the processes.
    Order(usize),
}

/// Colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// For a dark background.
    #[default]
    Dark,
    Light,
    /// None: bold and reversed instead.
    Mono,
}

impl Theme {
    pub(crate) const ALL: [Theme; 3] = [Theme::Dark, Theme::Light, Theme::Mono];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Theme::Dark => "dark",
            Theme::Light => "light",
            Theme::Mono => "mono",
        }
    }

    pub(crate) fn next(self) -> Theme {
        let place = Theme::ALL.iter().position(|theme| *theme == self).unwrap_or(0);
        Theme::ALL[(place + 1) % Theme::ALL.len()]
    }
}

/// What the user has chosen.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Place in [`COLUMNS`].
    pub sort: usize,
    pub reversed: bool,
    pub tree: bool,
    /// Places in [`COLUMNS`], in their order; `None`: those that say something.
    pub columns: Option<Vec<usize>>,
    pub theme: Theme,
    /// Shown are processes in whose row this occurs, whatever the case.
    pub filter: String,
    /// Whose alone; `None`: everybody's.
    pub user: Option<String>,
    pub question: Option<Question>,
    pub selected: Option<u32>,
    /// First row shown.
    pub scroll: usize,
    /// The third pane is open.
    pub pane: bool,
    /// Lines of it that are above its edge.
    pub pane_scroll: usize,
    /// Allocations are shown one by one in it, those that are as old.
    pub single: Option<Duration>,
    /// The process whose calls are traced to find what is wrong: the selected one, as long as the pane is open.
    pub findings: Option<u32>,
    /// The process whose calls are shown as they come, for as long.
    pub calls: Option<u32>,
    /// There is no screen: notes are written in full.
    pub on_paper: bool,
    /// What is shown instead of everything.
    pub page: Option<Page>,
    /// What is shown instead of what comes.
    pub frozen: Option<Arc<Frame>>,
    pub delay: Duration,
    /// Said in the last line until the next key.
    pub message: Option<String>,
    /// Place in a recording, where one is played.
    pub tape: Option<Tape>,
}

/// Where a recording is played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tape {
    pub at: usize,
    pub of: usize,
    pub(crate) paused: bool,
}

impl State {
    pub(crate) fn new(delay: Duration) -> State {
        State {
            sort: 0,
            reversed: false,
            tree: false,
            columns: None,
            theme: Theme::default(),
            filter: String::new(),
            user: None,
            question: None,
            selected: None,
            scroll: 0,
            pane: false,
            pane_scroll: 0,
            single: None,
            findings: None,
            calls: None,
            on_paper: false,
            page: None,
            frozen: None,
            delay,
            message: None,
            tape: None,
        }
        .sorted_by("held")
    }

    fn sorted_by(self, title: &str) -> State {
        let sort = COLUMNS.iter().position(|column| column.title == title).unwrap_or(0);
        State { sort, ..self }
    }

    /// What is shown of `frame`.
    pub(crate) fn shown(&self, frame: &Arc<Frame>) -> Arc<Frame> {
        Arc::clone(self.frozen.as_ref().unwrap_or(frame))
    }

    /// The rows in their order, each with how deep it is in the tree.
    pub(crate) fn rows<'a>(&self, frame: &'a Frame) -> Vec<(usize, &'a Process)> {
        let mut rows: Vec<&Process> = frame.processes.iter().filter(|process| self.keeps(process)).collect();
        rows.sort_by(|left, right| self.order(left, right));
        match self.tree {
            true => tree(&rows),
            false => rows.into_iter().map(|process| (0, process)).collect(),
        }
    }

    /// Whether its row is wanted.
    pub(crate) fn keeps(&self, process: &Process) -> bool {
        let of_user = self.user.is_none() || self.user == process.user;
        if self.filter.is_empty() {
            return of_user;
        }
        of_user && says(process, &self.filter)
    }

    /// Selects the next row, so many `further` or below, that has a text in it; around the end, too.
    pub(crate) fn find(&mut self, frame: &Frame, words: &str, further: usize) {
        let rows = self.rows(frame);
        let place = rows.iter().position(|(_, process)| Some(process.pid) == self.selected);
        let from = place.map_or(0, |place| place + further);
        let in_turn = (0..rows.len()).map(|step| rows[(from + step) % rows.len()].1);
        let found = in_turn.into_iter().find(|process| says(process, words));
        self.selected = found.map(|process| process.pid).or(self.selected);
        self.pane_scroll = 0;
    }

    /// Ended ones last.
    fn order(&self, left: &Process, right: &Process) -> Ordering {
        let key = |process: &Process| {
            COLUMNS
                .get(self.sort)
                .map_or(Key::Unknown, |column| (column.key)(process))
        };
        let by_key = key(left).cmp(&key(right));
        let by_key = if self.reversed { by_key.reverse() } else { by_key };
        let first = left.ended.cmp(&right.ended).then(by_key);
        first.then(left.pid.cmp(&right.pid))
    }

    /// Keeps the selection on something that is there.
    pub(crate) fn settle(&mut self, frame: &Frame, room: usize) {
        let rows = self.rows(frame);
        if frame.attaching && rows.is_empty() {
            return;
        }
        let place = rows.iter().position(|(_, process)| Some(process.pid) == self.selected);
        let place = place.unwrap_or(0);
        self.selected = rows.get(place).map(|(_, process)| process.pid);
        let (pane, selected) = (self.pane, self.selected);
        let is_open = |pid: &u32| pane && Some(*pid) == selected;
        self.findings = self.findings.filter(is_open);
        self.calls = self.calls.filter(is_open);
        let last_first = rows.len().saturating_sub(room);
        let lowest = place.saturating_sub(room.saturating_sub(1));
        self.scroll = self.scroll.clamp(lowest, place.max(lowest)).min(last_first.max(lowest));
    }

    /// Moves the selection by so many rows.
    pub(crate) fn step(&mut self, frame: &Frame, by: isize) {
        let rows = self.rows(frame);
        let place = rows.iter().position(|(_, process)| Some(process.pid) == self.selected);
        let place = place
            .unwrap_or(0)
            .saturating_add_signed(by)
            .min(rows.len().saturating_sub(1));
        self.selected = rows.get(place).map(|(_, process)| process.pid);
        self.pane_scroll = 0;
    }
}

/// Whatever the case; a number is a process.
fn says(process: &Process, words: &str) -> bool {
    let words = words.to_lowercase();
    let texts = [
        process.command.as_str(),
        &process.comm,
        &process.place,
        process.user.as_deref().unwrap_or_default(),
    ];
    let is_named = texts.iter().any(|text| text.to_lowercase().contains(&words));
    is_named || process.pid.to_string() == words
}

/// Each below the nearest of its ancestors that is there.
fn tree<'a>(rows: &[&'a Process]) -> Vec<(usize, &'a Process)> {
    let there: HashSet<u32> = rows.iter().map(|process| process.pid).collect();
    let parent = |process: &Process| process.ancestors.iter().copied().find(|pid| there.contains(pid));
    let mut out = Vec::with_capacity(rows.len());
    let roots = rows.iter().filter(|process| parent(process).is_none());
    for root in roots {
        add_with_children(root, 0, rows, &parent, &mut out);
    }
    out
}

fn add_with_children<'a>(
    process: &'a Process,
    depth: usize,
    rows: &[&'a Process],
    parent: &dyn Fn(&Process) -> Option<u32>,
    out: &mut Vec<(usize, &'a Process)>,
) {
    out.push((depth, process));
    for child in rows.iter().filter(|child| parent(child) == Some(process.pid)) {
        add_with_children(child, depth + 1, rows, parent, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, command: &str, held: f64, ancestors: &[u32]) -> Process {
        Process {
            pid,
            command: command.to_owned(),
            held_bytes: Some(held),
            ancestors: ancestors.to_vec(),
            ..Process::default()
        }
    }

    fn frame() -> Frame {
        Frame {
            processes: vec![
                process(10, "python train.py", 5.0, &[1]),
                process(11, "worker", 9.0, &[10, 1]),
                process(12, "Jupyter", 7.0, &[1]),
            ],
            ..Frame::default()
        }
    }

    fn pids(state: &State, frame: &Frame) -> Vec<u32> {
        state.rows(frame).iter().map(|(_, process)| process.pid).collect()
    }

    #[test]
    fn who_holds_most_is_first() {
        let mut state = State::new(Duration::from_secs(1));
        assert_eq!(pids(&state, &frame()), [11, 12, 10]);
        state.reversed = true;
        assert_eq!(pids(&state, &frame()), [10, 12, 11]);
    }

    #[test]
    fn a_tree_has_children_below_their_parents() {
        let mut state = State::new(Duration::from_secs(1));
        state.tree = true;
        let frame = frame();
        let rows: Vec<(usize, u32)> = state
            .rows(&frame)
            .iter()
            .map(|(depth, process)| (*depth, process.pid))
            .collect();
        assert_eq!(rows, [(0, 12), (0, 10), (1, 11)]);
    }

    #[test]
    fn a_filter_looks_at_names_whatever_their_case_and_at_whole_numbers() {
        let mut state = State::new(Duration::from_secs(1));
        state.filter = "jup".to_owned();
        assert_eq!(pids(&state, &frame()), [12]);
        state.filter = "10".to_owned();
        assert_eq!(pids(&state, &frame()), [10]);
        state.filter = "nothing".to_owned();
        assert!(pids(&state, &frame()).is_empty());
    }

    #[test]
    fn the_selection_stays_on_its_process_and_in_sight() {
        let mut state = State::new(Duration::from_secs(1));
        let frame = frame();
        state.settle(&frame, 2);
        assert_eq!((state.selected, state.scroll), (Some(11), 0));
        state.step(&frame, 5);
        state.settle(&frame, 2);
        assert_eq!((state.selected, state.scroll), (Some(10), 1));
        state.reversed = true;
        state.settle(&frame, 2);
        assert_eq!((state.selected, state.scroll), (Some(10), 0));
    }
}
