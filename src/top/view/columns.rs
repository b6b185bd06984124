//! Columns of tables: what each says, how wide it is, and which are left out first where there is no room.

use super::cells::{bound, bytes, count, padded, percent, signed_bytes};
use crate::text::quantity::escaped;
use crate::top::model::{Certainty, Count, Process, rate};
use std::cmp::Ordering;
use unicode_width::UnicodeWidthStr;

/// What rows are sorted by. What is not known comes last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Key {
    /// Most first.
    Number(f64),
    /// Lowest first.
    Whole(u32),
    Text(String),
    Unknown,
}

impl Key {
    pub(crate) fn cmp(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Number(left), Key::Number(right)) => right.total_cmp(left),
            (Key::Whole(left), Key::Whole(right)) => left.cmp(right),
            (Key::Text(left), Key::Text(right)) => left.cmp(right),
            (Key::Unknown, Key::Unknown) => Ordering::Equal,
            (Key::Unknown, _) => Ordering::Greater,
            (_, Key::Unknown) => Ordering::Less,
            _ => Ordering::Equal,
        }
    }
}

/// One column.
pub(crate) struct Column<T> {
    pub title: &'static str,
    pub width: usize,
    /// Lowest is kept longest.
    pub rank: u8,
    pub left: bool,
    pub text: fn(&T) -> Option<String>,
    pub key: fn(&T) -> Key,
}

pub(super) const fn number<T>(
    title: &'static str,
    width: usize,
    rank: u8,
    text: fn(&T) -> Option<String>,
    key: fn(&T) -> Key,
) -> Column<T> {
    Column {
        title,
        width,
        rank,
        left: false,
        text,
        key,
    }
}

const fn words(
    title: &'static str,
    width: usize,
    rank: u8,
    text: fn(&Process) -> Option<String>,
    key: fn(&Process) -> Key,
) -> Column<Process> {
    Column {
        left: true,
        ..number(title, width, rank, text, key)
    }
}

/// From left to right; the last takes what room there is.
pub(crate) static COLUMNS: [Column<Process>; 19] = [
    number("pid", 7, 0, |one| Some(pid(one)), |one| Key::Whole(one.pid)),
    words(
        "user",
        8,
        4,
        |one| one.user.as_deref().map(escaped),
        |one| text_key(one.user.as_deref().unwrap_or("")),
    ),
    words("gpu", 3, 5, gpus, |one| text_key(&gpus(one).unwrap_or_default())),
    number("held", 6, 1, |one| one.held_bytes.map(bytes), |one| key(one.held_bytes)),
    number(
        "grow/s",
        7,
        8,
        |one| one.growth_bytes_per_second.map(signed_bytes),
        |one| key(one.growth_bytes_per_second),
    ),
    number(
        "driver",
        6,
        6,
        |one| one.driver_bytes.map(bytes),
        |one| key(one.driver_bytes),
    ),
    number("sm", 4, 9, |one| one.sm_share.map(percent), |one| key(one.sm_share)),
    number(
        "launch/s",
        8,
        2,
        |one| rate(one.launches).map(count),
        |one| by(one.launches),
    ),
    number(
        "HtoD/s",
        6,
        10,
        |one| rate(one.to_device_bytes).map(bytes),
        |one| by(one.to_device_bytes),
    ),
    number(
        "DtoH/s",
        6,
        11,
        |one| rate(one.from_device_bytes).map(bytes),
        |one| by(one.from_device_bytes),
    ),
    number(
        "copy/s",
        6,
        14,
        |one| rate(one.other_copied_bytes).map(bytes),
        |one| by(one.other_copied_bytes),
    ),
    number(
        "wait",
        5,
        3,
        |one| rate(one.waiting_seconds).map(percent),
        |one| by(one.waiting_seconds),
    ),
    number("idle", 5, 4, idle, |one| by(one.idle_at_least_seconds)),
    number("err/s", 5, 4, |one| rate(one.errors).map(count), |one| by(one.errors)),
    number(
        "errors",
        6,
        13,
        |one| one.errors.map(|errors| count(errors.total)),
        |one| key(one.errors.map(|errors| errors.total)),
    ),
    number("calls/s", 7, 12, |one| rate(one.calls).map(count), |one| by(one.calls)),
    number(
        "rank",
        4,
        16,
        |one| one.rank.as_deref().map(escaped),
        |one| key(one.rank.as_deref().and_then(|rank| rank.parse().ok())),
    ),
    words(
        "where",
        24,
        15,
        |one| Some(escaped(&one.place)).filter(|place| !place.is_empty()),
        |one| text_key(&one.place),
    ),
    words(
        "command",
        COMMAND,
        0,
        |one| Some(command(one)),
        |one| text_key(&one.command),
    ),
];

/// Narrower, and others are left out.
const COMMAND: usize = 24;

fn pid(process: &Process) -> String {
    match process.pid {
        0 => "*".to_owned(),
        pid => pid.to_string(),
    }
}

fn gpus(process: &Process) -> Option<String> {
    let all: Vec<String> = process.gpus.iter().map(|gpu| escaped(gpu)).collect();
    let text = all.join(",");
    let shown = if text.len() > 3 {
        format!("{}x", all.len())
    } else {
        text
    };
    (!all.is_empty()).then_some(shown)
}

fn command(process: &Process) -> String {
    let mark = match (process.ended, process.traced) {
        (true, _) => "(ended) ",
        (false, false) => "(not traced) ",
        (false, true) if process.quiet => "(no calls) ",
        _ => "",
    };
    format!("{mark}{}", escaped(&process.command))
}

pub(super) fn idle(process: &Process) -> Option<String> {
    let share = rate(process.idle_at_least_seconds)?;
    let sign = match process.idle_certainty {
        Certainty::Bound => "≥",
        Certainty::Inferred => "~",
    };
    Some(bound(sign, share))
}

fn by(count: Option<Count>) -> Key {
    key(rate(count))
}

fn key(number: Option<f64>) -> Key {
    number.map_or(Key::Unknown, Key::Number)
}

fn text_key(text: &str) -> Key {
    match text {
        "" => Key::Unknown,
        text => Key::Text(text.to_owned()),
    }
}

/// Columns of a lower rank stand where they are, also while nothing is known for them.
pub(super) const ALWAYS: u8 = 4;

/// The columns that fit into `width`, by their places: those that `is_known` says something of.
pub(crate) fn fitting<T>(columns: &[Column<T>], width: usize, is_known: impl Fn(&Column<T>) -> bool) -> Vec<usize> {
    let mut by_rank: Vec<(usize, &Column<T>)> = columns.iter().enumerate().collect();
    by_rank.sort_by_key(|(_, column)| column.rank);
    // what is never left out has its room before all others
    let always = by_rank.iter().filter(|(_, column)| column.rank == 0);
    let mut taken: usize = always
        .map(|(_, column)| column.width + 1)
        .sum::<usize>()
        .saturating_sub(1);
    let mut chosen = Vec::new();
    for (place, column) in by_rank {
        let fits = column.rank == 0 || taken + column.width < width;
        if fits && is_known(column) {
            taken += if column.rank == 0 { 0 } else { column.width + 1 };
            chosen.push(place);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// One line of cells; the last column takes what room is left.
pub(crate) fn line<T>(
    columns: &[Column<T>],
    chosen: &[usize],
    width: usize,
    text: impl Fn(&Column<T>) -> String,
) -> String {
    let mut out = String::new();
    for (number, column) in chosen.iter().filter_map(|place| columns.get(*place)).enumerate() {
        if number > 0 {
            out.push(' ');
        }
        let is_last = number + 1 == chosen.len();
        let room = width.saturating_sub(out.width());
        let cell = if is_last { room } else { column.width.min(room) };
        out.push_str(&padded(&text(column), cell, column.left));
    }
    out
}
