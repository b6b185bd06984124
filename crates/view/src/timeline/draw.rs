//! Lanes as lines of text.

use super::axis::axis;
use super::bins::{Bins, CATEGORIES, Cell, Row, cause_of};
use super::lane::Lane;
use super::survey::Survey;
use crate::model::activity::Why;
use crate::text::quantity::{count, duration, escaped, plural};
use std::collections::BTreeSet;

const LABEL: usize = 17;
/// Behind each lane: how busy it was.
const SHARE: usize = 6;
const RESET: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Of each of [`CATEGORIES`]: its letter where there are no colours, its colour.
const SIGNS: [(char, &str); CATEGORIES.len()] = [
    ('s', "\x1b[31m"),
    ('c', "\x1b[34m"),
    ('l', "\x1b[32m"),
    ('m', "\x1b[33m"),
    ('g', "\x1b[36m"),
    ('d', "\x1b[35m"),
    ('x', "\x1b[95m"),
    ('t', "\x1b[96m"),
    ('e', "\x1b[94m"),
    ('q', "\x1b[90m"),
    ('r', "\x1b[91m"),
    ('o', "\x1b[37m"),
];

/// How it is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the picture.
    pub width: usize,
    pub colour: bool,
}

impl Look {
    /// Columns that are time.
    #[must_use]
    pub fn columns(self) -> usize {
        self.width.saturating_sub(LABEL + SHARE).max(10)
    }
}

/// The picture. `file`: what is shown.
#[must_use]
pub fn draw(file: &str, survey: &Survey<'_>, bins: &Bins<'_>, look: Look) -> String {
    let mut picture = Picture {
        look,
        lines: Vec::new(),
        seen: BTreeSet::new(),
        causes: BTreeSet::new(),
    };
    picture.head(file, survey, bins);
    let mut lanes: Vec<&Lane> = bins.rows.keys().collect();
    lanes.sort_by_key(|lane| (lane.pid() == 0, lane.pid(), *lane));
    let mut place = (0, 0);
    for lane in lanes {
        if let Some(row) = bins.rows.get(lane) {
            picture.title(lane, survey, &mut place);
            picture.lane(lane, row, survey, bins);
        }
    }
    picture.legend(survey, bins);
    picture.lines.join("\n") + "\n"
}

struct Picture {
    look: Look,
    lines: Vec<String>,
    /// Classes that occur.
    seen: BTreeSet<u8>,
    /// The same of causes of idle time.
    causes: BTreeSet<Why>,
}

impl Picture {
    fn paint(&self, code: &str, text: &str) -> String {
        match self.look.colour && !text.is_empty() {
            true => format!("{code}{text}{RESET}"),
            false => text.to_owned(),
        }
    }

    fn cut(&self, text: &str) -> String {
        let width = self.look.width;
        match text.chars().count() > width {
            true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
            false => text.to_owned(),
        }
    }

    fn head(&mut self, file: &str, survey: &Survey<'_>, bins: &Bins<'_>) {
        let of = survey.meta.as_ref().map(|meta| meta.command.join(" "));
        let of = of.filter(|command| !command.is_empty());
        let title = of.map_or_else(
            || escaped(file),
            |command| format!("{}: {}", escaped(file), escaped(&command)),
        );
        let title = self.cut(&title);
        self.lines.push(self.paint(BOLD, &title));
        let column = bins.window.ns() / bins.columns as u64;
        let scale = format!("{}, {} a column", duration(bins.window.ns()), duration(column));
        self.lines.push(self.paint(DIM, &scale));
        for line in axis(bins.window, bins.columns) {
            let line = format!("{:LABEL$}{line}", "");
            self.lines.push(self.paint(DIM, &line));
        }
    }

    /// A line before the first lane of a process, and of a thread that is not its first.
    fn title(&mut self, lane: &Lane, survey: &Survey<'_>, place: &mut (u32, u32)) {
        let pid = lane.pid();
        let tid = match lane {
            Lane::Layer { tid, .. } | Lane::Range { tid, .. } => *tid,
            _ => pid,
        };
        if pid != 0 && place.0 != pid {
            let name = Some(escaped(survey.process(pid))).filter(|name| !name.is_empty());
            let title = format!("{}process {pid}", name.map(|name| name + ", ").unwrap_or_default());
            self.lines.push(self.paint(BOLD, &self.cut(&title)));
            *place = (pid, pid);
        }
        if pid != 0 && place.1 != tid {
            let title = match tid == pid {
                true => " all threads".to_owned(),
                false => self.cut(&format!(" thread {tid} {}", escaped(survey.thread(pid, tid)))),
            };
            self.lines.push(title.trim_end().to_owned());
            place.1 = tid;
        }
    }

    fn lane(&mut self, lane: &Lane, row: &Row, survey: &Survey<'_>, bins: &Bins<'_>) {
        let column_ns = bins.window.ns() / bins.columns as u64;
        let cells: String = match lane {
            Lane::Layer { .. } | Lane::Gpu { .. } | Lane::Overhead { .. } => self.heights(row, column_ns.max(1)),
            Lane::Range { .. } => self.flags(row, '━', BOLD),
            Lane::Stream { .. } => self.marks(row),
            Lane::Steps { .. } => self.paint(DIM, &numbers(row)),
            Lane::Idle { .. } => self.idle(row),
            Lane::Lost => self.flags(row, '!', RED),
            Lane::Xid => self.flags(row, 'X', RED),
        };
        let label: String = label(lane).chars().take(LABEL - 1).collect();
        let share = match lane {
            Lane::Layer { .. } | Lane::Gpu { .. } | Lane::Overhead { .. } | Lane::Idle { .. } | Lane::Range { .. } => {
                percent(row.busy_ns, bins.window.ns())
            }
            _ => short(row.rows),
        };
        self.lines.push(format!("{label:LABEL$}{cells}{share:>SHARE$}"));
        let about = match lane {
            Lane::Layer { .. } | Lane::Gpu { .. } | Lane::Overhead { .. } | Lane::Range { .. } => {
                top(row, bins.window.ns())
            }
            Lane::Lost => format!("{} have no line here", plural(survey.lost, "call")),
            _ => String::new(),
        };
        if !about.is_empty() {
            let about = self.cut(&format!("{:LABEL$}{about}", ""));
            self.lines.push(self.paint(DIM, &about));
        }
    }

    fn heights(&mut self, row: &Row, column_ns: u64) -> String {
        self.cells(row, |look, cell, (category, ns)| {
            let (letter, _) = SIGNS[usize::from(category)];
            let eighths = (u128::from(ns) * 8).div_ceil(u128::from(column_ns)).clamp(1, 8) as usize;
            match (look.colour, eighths > 4) {
                _ if cell.rows == 0 && ns == 0 => ' ',
                (true, _) => HEIGHTS[eighths - 1],
                (false, true) => letter.to_ascii_uppercase(),
                (false, false) => letter,
            }
        })
    }

    fn marks(&mut self, row: &Row) -> String {
        self.cells(row, |look, cell, (category, _)| match (cell.rows, look.colour) {
            (0, _) => ' ',
            (_, true) => '▪',
            (_, false) => SIGNS[usize::from(category)].0,
        })
    }

    fn cells(&mut self, row: &Row, sign: impl Fn(Look, &Cell, (u8, u64)) -> char) -> String {
        let (mut text, mut colour) = (String::new(), "");
        for cell in &row.cells {
            let most = cell.most();
            let sign = most.map_or(' ', |most| sign(self.look, cell, most));
            let wanted = match most {
                Some((category, _)) if sign != ' ' => {
                    self.seen.insert(category);
                    SIGNS[usize::from(category)].1
                }
                _ => "",
            };
            if self.look.colour && wanted != colour {
                text.push_str(if wanted.is_empty() { RESET } else { wanted });
                colour = wanted;
            }
            text.push(sign);
        }
        text.push_str(if colour.is_empty() { "" } else { RESET });
        text
    }

    /// What took most of the idle time of each column.
    fn idle(&mut self, row: &Row) -> String {
        let mut signs = String::new();
        for cell in &row.cells {
            let cause = cell.most().map(|(number, _)| cause_of(number));
            self.causes.extend(cause.flatten());
            signs.push(cause.map_or(' ', sign_of));
        }
        self.paint(DIM, &signs)
    }

    fn flags(&self, row: &Row, flag: char, code: &str) -> String {
        let is_set = |cell: &Cell| cell.rows > 0 || cell.ns.iter().any(|(_, ns)| *ns > 0);
        let flags = row.cells.iter().map(|cell| if is_set(cell) { flag } else { ' ' });
        self.paint(code, &flags.collect::<String>())
    }

    fn legend(&mut self, survey: &Survey<'_>, bins: &Bins<'_>) {
        let mut entries: Vec<(String, usize)> = Vec::new();
        for category in &self.seen {
            let (letter, code) = SIGNS[usize::from(*category)];
            let name = CATEGORIES[usize::from(*category)];
            let sign = if self.look.colour { '█' } else { letter };
            let entry = format!("{} {name}", self.paint(code, &sign.to_string()));
            entries.push((entry, name.len() + 2));
        }
        let has = |kind: fn(&Lane) -> bool| bins.rows.keys().any(kind);
        let follows = |row: &Row| {
            row.cells
                .iter()
                .any(|cell| cell.ns.iter().any(|(cause, _)| *cause == 0))
        };
        let mut idle = bins.rows.iter().filter(|(lane, _)| matches!(lane, Lane::Idle { .. }));
        if idle.any(|(_, row)| follows(row)) {
            let words = "░ GPU surely idle";
            entries.push((words.to_owned(), words.chars().count()));
        }
        if has(|lane| matches!(lane, Lane::Range { .. })) {
            let words = "━ outermost ranges (NVTX)";
            entries.push((words.to_owned(), words.chars().count()));
        }
        self.lines.push(String::new());
        self.wrap(entries);
        self.wrap_causes();
        if !self.look.colour && !self.seen.is_empty() {
            self.lines.push("a capital: more than half of the time".to_owned());
        }
        if has(|lane| matches!(lane, Lane::Steps { .. })) {
            self.lines
                .push("steps: | where one begins, and its number (inferred); how many".to_owned());
        }
        if has(|lane| matches!(lane, Lane::Stream { .. })) {
            self.lines
                .push("streams: when work was submitted, not when it ran; how many submissions".to_owned());
        }
        if has(|lane| matches!(lane, Lane::Gpu { .. })) {
            self.lines
                .push("gpu: when a device ran what a stream was given, by CUPTI's number of it".to_owned());
        }
        let hidden = survey.lanes.len().saturating_sub(bins.rows.len());
        if hidden > 0 {
            let words = format!(
                "{} not shown (--lanes, --filter)",
                plural(hidden as u64, "less busy lane")
            );
            self.lines.push(words);
        }
    }

    fn wrap_causes(&mut self) {
        let causes = self.causes.iter();
        let words = causes.map(|why| format!("{} {}", sign_of(Some(*why)), why.name()));
        let mut entries: Vec<(String, usize)> = words.map(|words| (words.clone(), words.chars().count())).collect();
        if !entries.is_empty() {
            let words = "idle, as measured:";
            entries.insert(0, (words.to_owned(), words.len()));
        }
        self.wrap(entries);
    }

    fn wrap(&mut self, entries: Vec<(String, usize)>) {
        let (mut line, mut length) = (String::new(), 0);
        for (entry, width) in entries {
            if length > 0 && length + 2 + width > self.look.width {
                self.lines.push(std::mem::take(&mut line));
                length = 0;
            }
            if length > 0 {
                line.push_str("  ");
                length += 2;
            }
            line.push_str(&entry);
            length += width;
        }
        if length > 0 {
            self.lines.push(line);
        }
    }
}

/// Of a cause of idle time; without one it follows from calls.
fn sign_of(why: Option<Why>) -> char {
    match why {
        None => '░',
        Some(Why::Profiler) => 'o',
        Some(Why::SyncReturn) => 's',
        Some(Why::Memory) => 'm',
        Some(Why::Code) => 'j',
        Some(Why::Launch) => 'l',
        Some(Why::Call) => 'c',
        Some(Why::NoProcessor) => 'p',
        Some(Why::Blocked) => 'b',
        Some(Why::HostCode) => 'h',
        Some(Why::Unsampled) => 'u',
        Some(Why::KernelWait) => 'k',
        Some(Why::Dependency) => 'd',
        Some(Why::HostFunction) => 'f',
        Some(Why::Other) => '?',
    }
}

/// Where steps begin, and the numbers of those that there is room for.
fn numbers(row: &Row) -> String {
    let mut text = String::new();
    let ends = row.begins.keys().skip(1).copied().chain([row.cells.len()]);
    for ((column, number), end) in row.begins.iter().zip(ends) {
        text.extend(std::iter::repeat_n(' ', column.saturating_sub(text.len())));
        text.push('|');
        let digits = number.to_string();
        // and something between it and the next
        if column + digits.len() + 1 < end {
            text.push_str(&digits);
        }
    }
    format!("{text:width$}", width = row.cells.len())
}

fn label(lane: &Lane) -> String {
    match lane {
        Lane::Range { .. } => "  ranges".to_owned(),
        Lane::Layer { layer, .. } => format!("  {}", escaped(layer.name())),
        Lane::Stream { stream: 0, .. } => "  default stream".to_owned(),
        Lane::Stream { stream, .. } => {
            let digits = format!("{stream:x}");
            let last = digits.len().saturating_sub(6);
            let dots = if last > 0 { "…" } else { "0x" };
            format!("  stream {dots}{}", &digits[last..])
        }
        Lane::Gpu { device, stream, .. } => format!("  gpu{device} stream {stream}"),
        Lane::Overhead { .. } => "  CUPTI itself".to_owned(),
        Lane::Idle { device: None, .. } => "  idle".to_owned(),
        Lane::Idle { device: Some(one), .. } => format!("  gpu{one} idle"),
        Lane::Steps { .. } => "  steps".to_owned(),
        Lane::Lost => "lost".to_owned(),
        Lane::Xid => "Xid".to_owned(),
    }
}

fn percent(part: u64, whole: u64) -> String {
    let tenths = (u128::from(part) * 1000).checked_div(u128::from(whole)).unwrap_or(0);
    match tenths {
        0 if part > 0 => "<0.1%".to_owned(),
        0..100 => format!("{}.{}%", tenths / 10, tenths % 10),
        _ => format!("{}%", tenths / 10),
    }
}

/// A count in five characters.
fn short(number: u64) -> String {
    match number {
        0..10_000 => count(number),
        10_000..1_000_000 => format!("{}k", number / 1000),
        1_000_000..1_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}G", number / 1_000_000_000),
    }
}

fn top(row: &Row, whole: u64) -> String {
    let mut names: Vec<(&String, &u64)> = row.names.iter().collect();
    names.sort_by_key(|(name, ns)| (std::cmp::Reverse(**ns), *name));
    let words = names
        .into_iter()
        .take(3)
        .map(|(name, ns)| format!("{} {}", escaped(name), percent(*ns, whole)));
    words.collect::<Vec<_>>().join(", ")
}
