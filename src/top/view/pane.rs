//! The third pane: what the selected process does, holds, waits for and fails at.

mod calls;
mod findings;
mod held;

use super::{Lines, Scene, put, spark};
use crate::text::quantity::{self, duration, escaped};
use crate::top::cells::{bytes, count, cut, percent};
use crate::top::columns;
use crate::top::model::history::Point;
use crate::top::model::{Closeup, Count, Failure, Function, InProgress, Kernel, Process, Wait, WaitPlace, rate};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// From here on sections stand in two columns.
const TWO_COLUMNS: u16 = 110;
/// Of the words beside four sparklines.
const WORDS: usize = 62;

/// Nine columns.
const MOST_WHOLE: f64 = 1e7;

/// Some lines under a heading.
struct Section {
    title: String,
    lines: Vec<(bool, String)>,
}

pub(super) fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let process = scene.state.selected.and_then(|pid| scene.frame.process(pid));
    let Some(process) = process else {
        return put(buffer, area, 0, Style::new(), "no process is chosen");
    };
    put(
        buffer,
        area,
        0,
        scene.state.theme.heading(),
        &title(process, area.width),
    );
    put(
        buffer,
        area,
        1,
        Style::new(),
        &course(scene, process, area.width.into()),
    );
    let body = Rect {
        y: area.y + 2,
        height: area.height.saturating_sub(2),
        ..area
    };
    if let Some(lines) = calls::lines(scene, process, area.width.into(), body.height.into()) {
        for (y, (style, text)) in (0..body.height).zip(lines) {
            put(buffer, body, y, style, &text);
        }
        return;
    }
    let half = if area.width < TWO_COLUMNS {
        area.width
    } else {
        area.width / 2 - 1
    };
    let sections = sections(scene, process, half.into());
    if area.width < TWO_COLUMNS {
        return column(scene, body, buffer, sections);
    }
    let half = Rect { width: half, ..body };
    let other = Rect {
        x: area.x + area.width / 2,
        width: area.width - area.width / 2,
        ..body
    };
    let (left, right) = halves(sections);
    column(scene, half, buffer, left);
    column(scene, other, buffer, right);
}

fn title(process: &Process, width: u16) -> String {
    let user = process.user.as_deref().map(escaped).unwrap_or_default();
    let words = format!("── {} {user} {} ", process.pid, escaped(&process.command));
    let words = cut(&words, usize::from(width));
    let rest = usize::from(width).saturating_sub(unicode_width::UnicodeWidthStr::width(words.as_str()));
    words + &"─".repeat(rest)
}

/// The last two minutes in four pictures.
fn course(scene: &Scene, process: &Process, width: usize) -> String {
    let room = width.saturating_sub(WORDS) / 4;
    let points: Vec<&Point> = scene.history.process(process.pid).collect();
    let drawn = |known: bool, of: fn(&Point) -> f64, highest: Option<f64>| {
        let points: Vec<&&Point> = points.iter().filter(|_| known).collect();
        let points: Vec<(f64, f64)> = points.iter().map(|point| (point.at, of(point))).collect();
        spark::line(&points, room, highest)
    };
    let last = |number: Option<f64>, words: fn(f64) -> String| number.map_or("-".to_owned(), words);
    let (launches, waiting) = (rate(process.launches), rate(process.waiting_seconds));
    let (held, idle) = (process.held_bytes, rate(process.idle_at_least_seconds));
    let launched = drawn(launches.is_some(), |point| point.launches, None);
    let holds = drawn(held.is_some(), |point| point.held_bytes, None);
    let waits = drawn(waiting.is_some(), |point| point.waiting, None);
    let idles = drawn(idle.is_some(), |point| point.idle, Some(1.0));
    [
        format!("launches {launched} {}/s", last(launches, count)),
        format!("held {holds} {}", last(held, bytes)),
        format!("wait {waits} {}", last(waiting, percent)),
        format!("idle {idles} {}", columns::idle(process).unwrap_or("-".to_owned())),
    ]
    .join("  ")
}

fn sections(scene: &Scene, process: &Process, width: usize) -> Vec<Section> {
    let closeup = scene
        .frame
        .closeup
        .as_ref()
        .filter(|closeup| closeup.pid == process.pid);
    let mut all: Vec<Section> = closeup.map(in_progress).into_iter().collect();
    let older = scene.state.single;
    all.extend(
        older
            .zip(closeup)
            .and_then(|(older, closeup)| held::one_by_one(closeup, older)),
    );
    all.push(failures(process));
    all.extend(findings::sections(scene, process, width));
    all.push(waits(process));
    all.extend(closeup.map(functions));
    all.push(kernels(process));
    all.extend(closeup.map(held::by_site));
    all.push(copies(process));
    if !process.traced {
        all.insert(0, untraced(scene.frame.attaching));
    }
    all.retain(|section| !section.lines.is_empty());
    all
}

fn untraced(yet: bool) -> Section {
    let words = match yet {
        true => "its calls are not seen yet: probes are being attached",
        false => "its calls are not seen: needs root, or a process of yours that gpuscope preload has started",
    };
    Section {
        title: "not traced".to_owned(),
        lines: vec![(true, words.to_owned())],
    }
}

fn in_progress(closeup: &Closeup) -> Section {
    let one = |call: &InProgress| {
        let functions: Vec<String> = call.functions.iter().map(|name| escaped(name)).collect();
        let time = duration((call.seconds * 1e9) as u64);
        let thread = format!("{} {}", call.tid, escaped(&call.thread));
        (
            call.seconds >= 1.0,
            format!("{time:>9}  {}  in {thread}", functions.join(" > ")),
        )
    };
    let unseen = closeup.in_progress_unseen.iter().map(|why| (true, why.clone()));
    Section {
        title: "in progress: calls that have not returned".to_owned(),
        lines: closeup.in_progress.iter().map(one).chain(unseen).collect(),
    }
}

fn functions(closeup: &Closeup) -> Section {
    let one = |function: &Function| {
        let time = function
            .seconds
            .map_or("-".to_owned(), |seconds| duration((seconds * 1e9) as u64));
        let errors = if function.errors > 0 {
            format!("  {} failed", whole(function.errors as f64))
        } else {
            String::new()
        };
        let words = format!(
            "{} {time:>9}  {}{errors}",
            counted(function.calls),
            escaped(&function.name)
        );
        (function.errors > 0, words)
    };
    Section {
        title: "    calls       /s      time  functions".to_owned(),
        lines: closeup.functions.iter().map(one).collect(),
    }
}

fn kernels(process: &Process) -> Section {
    let one = |kernel: &Kernel| {
        (
            false,
            format!("{}  {}", counted(kernel.launches), escaped(&kernel.name)),
        )
    };
    Section {
        title: " launches       /s  kernels".to_owned(),
        lines: process.kernels.iter().map(one).collect(),
    }
}

/// Each with the lines of the program that it was at.
fn waits(process: &Process) -> Section {
    let spent = |seconds: Count| {
        let now = rate(Some(seconds)).map_or("-".to_owned(), percent);
        format!("{:>9} {now:>5}", duration((seconds.total * 1e9) as u64))
    };
    let one = |wait: &Wait| {
        let hidden = if wait.hidden { " (hidden)" } else { "" };
        let (counted, spent) = (counted(wait.count), spent(wait.seconds));
        (false, format!("{counted} {spent}  {}{hidden}", escaped(&wait.what)))
    };
    let place = |place: &WaitPlace| {
        let spent = spent(place.seconds);
        (false, format!("{:>18} {spent}    at {}", "", escaped(&place.place)))
    };
    let lines = process
        .waits
        .iter()
        .flat_map(|wait| [one(wait)].into_iter().chain(wait.places.iter().map(place)));
    Section {
        title: "    calls       /s      time   now  waits".to_owned(),
        lines: lines.collect(),
    }
}

/// The newest first.
fn failures(process: &Process) -> Section {
    let one = |failure: &&Failure| {
        let is_new = failure.last_seconds.is_some_and(|seconds| seconds <= 0.0);
        let last = match failure.last_seconds {
            Some(_) if is_new => "now".to_owned(),
            Some(seconds) => format!("{} ago", whole_time(seconds)),
            None => "-".to_owned(),
        };
        let words = format!(
            "{} {last:>9}  {} = {}",
            counted(failure.count),
            escaped(&failure.function),
            escaped(&failure.error)
        );
        (is_new, words)
    };
    let mut failures: Vec<&Failure> = process.failures.iter().collect();
    let age = |failure: &Failure| failure.last_seconds.unwrap_or(f64::INFINITY);
    failures.sort_by(|left, right| age(left).total_cmp(&age(right)));
    Section {
        title: "    calls       /s      last  failed".to_owned(),
        lines: failures.iter().map(one).collect(),
    }
}

/// To the second.
fn whole_time(seconds: f64) -> String {
    match seconds as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

fn copies(process: &Process) -> Section {
    let one = |(name, moved): (&String, &Count)| {
        let speed = moved.per_second.map_or("-".to_owned(), bytes);
        (false, format!("{:>9} {speed:>8}  {}", bytes(moved.total), copied(name)))
    };
    Section {
        title: "    bytes       /s  copied".to_owned(),
        lines: process.copies.iter().map(one).collect(),
    }
}

/// Of a direction and the kind of host memory.
fn copied(name: &str) -> String {
    match name.split_once(' ') {
        Some((direction, "unknown")) => format!("{} host memory of a kind not known", escaped(direction)),
        _ => escaped(name),
    }
}

/// How many in all, and each second.
fn counted(of: Count) -> String {
    let speed = of.per_second.map_or("-".to_owned(), count);
    format!("{:>9} {speed:>8}", whole(of.total))
}

/// To the last one, where there is room for that.
fn whole(number: f64) -> String {
    match number < MOST_WHOLE {
        true => quantity::count(number as u64),
        false => count(number),
    }
}

/// About as many lines in each.
fn halves(sections: Vec<Section>) -> (Vec<Section>, Vec<Section>) {
    let (mut left, mut right): (Vec<Section>, Vec<Section>) = (Vec::new(), Vec::new());
    let lines = |sections: &[Section]| sections.iter().map(|section| section.lines.len() + 1).sum::<usize>();
    for section in sections {
        match lines(&left) <= lines(&right) {
            true => left.push(section),
            false => right.push(section),
        }
    }
    (left, right)
}

fn column(scene: &Scene, area: Rect, buffer: &mut Buffer, sections: Vec<Section>) {
    let mut lines: Lines = Vec::new();
    for section in sections {
        lines.push((Style::new().add_modifier(Modifier::BOLD), section.title));
        let style = |wrong: bool| if wrong { scene.state.theme.wrong() } else { Style::new() };
        lines.extend(section.lines.into_iter().map(|(wrong, text)| (style(wrong), text)));
    }
    let first = scene.state.pane_scroll.min(lines.len().saturating_sub(1));
    for (y, (style, text)) in (0..area.height).zip(lines.into_iter().skip(first)) {
        put(buffer, area, y, style, &text);
    }
}
