//! How a frame looks: from frame and state to cells of a terminal. Pure.
//!
//! ```text
//!  title ─ devices ─ notes ─ processes ─ pane of the selected one ─ keys, questions and messages
//! ```

mod colours;
pub(super) mod devices;
mod footer;
mod help;
mod pane;
pub(crate) mod setup;
mod spark;
#[cfg(test)]
mod tests;

use super::cells;
use super::columns::{ALWAYS, COLUMNS, Column, line, places, wanted};
use super::model::history::History;
use super::model::{Frame, Process};
use super::state::{Page, State};
use crate::text::quantity::{escaped, form, plural};
use crossterm::event::KeyCode;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// Smaller, nothing can be read.
const SMALLEST: (u16, u16) = (40, 8);
/// Of notes, where there is room; on a small screen there is one.
const MOST_NOTES: usize = 3;
const TALL: u16 = 36;
/// Of processes, beside an open pane.
const FEWEST_ROWS: usize = 3;

/// Everything that is drawn.
pub(crate) struct Scene<'a> {
    pub frame: &'a Frame,
    pub history: &'a History,
    pub state: &'a State,
}

/// What is at a place of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Under {
    Process(u32),
    /// Of a column, by its place.
    Heading(usize),
    /// What is done by that key, too.
    Key(KeyCode),
    Pane,
    Nothing,
}

type Lines = Vec<(Style, String)>;

/// What lies above the processes, and how many lines each part below it has.
struct Plan {
    above: Lines,
    rows: usize,
    pane: usize,
}

impl Scene<'_> {
    /// Draws all of it.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
            let words = format!("too small: {}x{} at least", SMALLEST.0, SMALLEST.1);
            put(buffer, area, 0, Style::new(), &words);
            return;
        }
        match self.state.page {
            Some(Page::Help) => return self.draw_lines(area, buffer, help::lines(self.state.theme)),
            Some(Page::Notes) => return self.draw_lines(area, buffer, help::notes(self, area.width.into())),
            Some(Page::Setup(line)) => {
                let size = (area.width.into(), area.height.into());
                return self.draw_lines(area, buffer, setup::lines(self, line, size));
            }
            Some(Page::Order(line)) => {
                return self.draw_lines(area, buffer, setup::orders(self, line, area.height.into()));
            }
            None => {}
        }
        let plan = self.plan(area);
        let mut lines = plan.above;
        let heading = lines.len();
        lines.extend(self.processes(area.width.into(), plan.rows));
        let top = lines.len();
        self.draw_lines(area, buffer, lines);
        self.mark_order(area, buffer, heading);
        if plan.pane > 0 {
            let rect = Rect {
                y: area.y + top as u16,
                height: plan.pane as u16,
                ..area
            };
            pane::draw(self, rect, buffer);
        }
        let (style, words) = footer::line(self, area.width.into());
        put(buffer, area, area.height - 1, style, &words);
    }

    /// The heading of the column that rows are ordered by.
    fn mark_order(&self, area: Rect, buffer: &mut Buffer, line: usize) {
        let width = usize::from(area.width);
        let places = places(&COLUMNS, &self.columns(width), width);
        let of_order = places.into_iter().find(|(column, _)| *column == self.state.sort);
        if let Some((_, cells)) = of_order {
            let rect = Rect {
                x: area.x + cells.start as u16,
                y: area.y + line as u16,
                width: cells.len() as u16,
                height: 1,
            };
            buffer.set_style(rect.intersection(area), Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    /// Rows of processes that there is room for.
    pub(crate) fn room(&self, area: Rect) -> usize {
        self.plan(area).rows
    }

    /// What is at a place of the screen.
    pub(crate) fn under(&self, area: Rect, x: u16, y: u16) -> Under {
        let (x, y) = (usize::from(x), usize::from(y));
        if y + 1 == usize::from(area.height) {
            return footer::key_at(self, area.width.into(), x).map_or(Under::Nothing, Under::Key);
        }
        let plan = self.plan(area);
        let heading = plan.above.len();
        match y.checked_sub(heading) {
            None => Under::Nothing,
            Some(0) => self
                .column_at(area.width.into(), x)
                .map_or(Under::Nothing, Under::Heading),
            Some(row) if row > plan.rows => Under::Pane,
            Some(row) => {
                let rows = self.state.rows(self.frame);
                let process = rows.get(self.state.scroll + row - 1);
                process.map_or(Under::Nothing, |(_, process)| Under::Process(process.pid))
            }
        }
    }

    fn column_at(&self, width: usize, x: usize) -> Option<usize> {
        let places = places(&COLUMNS, &self.columns(width), width);
        let at = places.into_iter().find(|(_, cells)| cells.contains(&x));
        at.map(|(column, _)| column)
    }

    /// The columns that are shown, by their places in [`COLUMNS`].
    fn columns(&self, width: usize) -> Vec<usize> {
        let kept = || self.frame.processes.iter().filter(|process| self.state.keeps(process));
        let is_known = |column: &Column<Process>| {
            let sorts = COLUMNS
                .get(self.state.sort)
                .is_some_and(|sort| sort.title == column.title);
            (column.rank <= ALWAYS && !column.rare) || sorts || kept().any(|process| (column.text)(process).is_some())
        };
        wanted(self.state.columns.as_deref(), width, is_known)
    }

    fn plan(&self, area: Rect) -> Plan {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let mut above = vec![(self.state.theme.heading(), self.title())];
        let devices = devices::lines(&self.frame.devices, Some(self.history), width);
        let most = (height / 2).saturating_sub(1).max(2);
        let hidden = devices.len().saturating_sub(most);
        let shown = devices.into_iter().take(most);
        above.extend(shown.map(|(look, text)| (self.state.theme.of(look), text)));
        if hidden > 0 {
            above.push((Style::new(), format!("… and {hidden} more lines of devices")));
        }
        above.extend(match self.state.on_paper {
            true => self.all_notes(width),
            false => self.notes(if area.height < TALL { 1 } else { MOST_NOTES }),
        });
        // the heading of processes and the last line
        let rest = height.saturating_sub(above.len() + 2);
        let pane = if self.state.pane {
            rest - self.rows_beside_pane(rest)
        } else {
            0
        };
        Plan {
            above,
            rows: rest - pane,
            pane,
        }
    }

    /// As many as there are processes, and a third of all lines at most.
    fn rows_beside_pane(&self, rest: usize) -> usize {
        let processes = self.state.rows(self.frame).len();
        processes.min(rest / 3).max(FEWEST_ROWS).min(rest)
    }

    fn title(&self) -> String {
        let frame = self.frame;
        let rates = match frame.over_seconds {
            Some(seconds) => format!("rates over {seconds:.1} s"),
            None => "rates with the next look".to_owned(),
        };
        // processes that are not told apart are none
        let told = frame.processes.iter().filter(|process| process.pid != 0);
        if self.state.tape.is_some() {
            let known = plural(told.count() as u64, "process");
            return format!(
                "gpuscope top: a recording at {:.0} s: {known} with memory or work; {rates}",
                frame.elapsed_seconds
            );
        }
        let living = told.filter(|process| !process.ended);
        let (traced, others): (Vec<&Process>, Vec<&Process>) = living.partition(|process| process.traced);
        let (traced, others) = (traced.len(), others.len());
        let devices = plural(frame.devices.len() as u64, "GPU");
        if frame.attaching {
            let known = plural(others as u64, "process");
            return match frame.devices.is_empty() {
                true => "gpuscope top: attaching …".to_owned(),
                false => format!(
                    "gpuscope top: attaching … {devices}; {known} by the driver, what they do comes with probes"
                ),
            };
        }
        let others = if others > 0 {
            format!(", {others} not traced")
        } else {
            String::new()
        };
        format!(
            "gpuscope top at {:.0} s: {devices}, {traced} {} traced{others}; {rates}",
            frame.elapsed_seconds,
            form(traced as u64, "process", "processes")
        )
    }

    /// The first `most`, and how many more there are.
    fn notes(&self, most: usize) -> Lines {
        let notes = &self.frame.notes;
        let more = notes.len().saturating_sub(most);
        let note = |(place, words): (usize, &String)| match more > 0 && place + 1 == most {
            true => format!("(and {more} more: n) {}", escaped(words)),
            false => escaped(words),
        };
        let shown = notes.iter().take(most).enumerate().map(note);
        shown.map(|words| (self.state.theme.doubt(), words)).collect()
    }

    /// In full: nobody can press a key to see more.
    fn all_notes(&self, width: usize) -> Lines {
        let folded = |note: &String| cells::folded(&escaped(note), width, ["", "  "]);
        let lines = self.frame.notes.iter().flat_map(folded);
        lines.map(|words| (self.state.theme.doubt(), words)).collect()
    }

    /// The heading, and so many rows.
    fn processes(&self, width: usize, room: usize) -> Lines {
        let rows = self.state.rows(self.frame);
        let chosen = self.columns(width);
        let mut lines = vec![(
            self.state.theme.heading(),
            line(&COLUMNS, &chosen, width, |column| column.title.to_owned()),
        )];
        for (depth, process) in rows.iter().skip(self.state.scroll).take(room) {
            let text = line(&COLUMNS, &chosen, width, |column| cell(process, column, *depth));
            lines.push((self.style_of(process), text));
        }
        if rows.is_empty() {
            lines.push((Style::new(), self.nobody()));
        }
        lines.resize(room + 1, (Style::new(), String::new()));
        lines
    }

    fn style_of(&self, process: &Process) -> Style {
        let style = match (process.ended, super::model::rate(process.errors)) {
            (true, _) => Style::new().add_modifier(Modifier::DIM),
            (false, Some(errors)) if errors > 0.0 => self.state.theme.wrong(),
            _ => Style::new(),
        };
        match Some(process.pid) == self.state.selected {
            true => style.add_modifier(Modifier::REVERSED),
            false => style,
        }
    }

    fn nobody(&self) -> String {
        match (self.state.filter.is_empty(), self.frame.processes.is_empty()) {
            (false, false) => format!("no process has {:?} in its row; / changes that", self.state.filter),
            _ if self.frame.attaching => "processes come with the probes".to_owned(),
            _ if self.frame.partial => {
                "no process is seen that uses CUDA; not all can be seen, as notes say".to_owned()
            }
            _ => "no process uses CUDA".to_owned(),
        }
    }

    fn draw_lines(&self, area: Rect, buffer: &mut Buffer, lines: Lines) {
        for (y, (style, text)) in (0..area.height).zip(lines) {
            put(buffer, area, y, style, &text);
        }
    }
}

fn cell(process: &Process, column: &Column<Process>, depth: usize) -> String {
    let text = (column.text)(process).unwrap_or_else(|| "-".to_owned());
    match (column.title, depth) {
        ("command", 1..) => format!("{}└ {text}", "  ".repeat(depth - 1)),
        _ => text,
    }
}

/// A line that is cut at the edge; its style goes as far as its text.
fn put(buffer: &mut Buffer, area: Rect, y: u16, style: Style, text: &str) {
    if y < area.height {
        let text = cells::cut(text, area.width.into());
        buffer.set_stringn(area.x, area.y + y, text, area.width.into(), style);
    }
}
