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
    /// On the page where columns are chosen.
    pub about: &'static str,
    pub width: usize,
    /// Lowest is kept longest.
    pub rank: u8,
    pub left: bool,
    pub text: fn(&T) -> Option<String>,
    pub key: fn(&T) -> Key,
}

pub(super) const fn number<T>(
    (title, about): (&'static str, &'static str),
    width: usize,
    rank: u8,
    text: fn(&T) -> Option<String>,
    key: fn(&T) -> Key,
) -> Column<T> {
    Column {
        title,
        about,
        width,
        rank,
        left: false,
        text,
        key,
    }
}

const fn words(
    (title, about): (&'static str, &'static str),
    width: usize,
    rank: u8,
    text: fn(&Process) -> Option<String>,
    key: fn(&Process) -> Key,
) -> Column<Process> {
    Column {
        left: true,
        ..number((title, about), width, rank, text, key)
    }
}

/// From left to right; the last takes what room there is.
pub(crate) static COLUMNS: [Column<Process>; 22] = [
    number(
        ("pid", "number of the process"),
        7,
        0,
        |one| Some(pid(one)),
        |one| Key::Whole(one.pid),
    ),
    words(
        ("user", "whose it is"),
        8,
        4,
        |one| one.user.as_deref().map(escaped),
        |one| text_key(one.user.as_deref().unwrap_or("")),
    ),
    words(
        ("gpu", "devices that it holds memory of, with the instance in MIG mode"),
        3,
        5,
        gpus,
        |one| text_key(&gpus(one).unwrap_or_default()),
    ),
    number(
        ("held", "device memory that it was seen to allocate and holds"),
        6,
        1,
        |one| one.held_bytes.map(bytes),
        |one| key(one.held_bytes),
    ),
    number(
        ("grow/s", "how fast that grew in the last ten seconds"),
        7,
        8,
        |one| one.growth_bytes_per_second.map(signed_bytes),
        |one| key(one.growth_bytes_per_second),
    ),
    number(
        ("driver", "device memory as the driver counts it"),
        6,
        6,
        |one| one.driver_bytes.map(bytes),
        |one| key(one.driver_bytes),
    ),
    number(
        ("sm", "share of time with a kernel of it, as the driver samples it"),
        4,
        9,
        |one| one.sm_share.map(percent),
        |one| key(one.sm_share),
    ),
    number(
        ("mem", "share of time in which it used device memory (driver)"),
        4,
        17,
        |one| one.memory_share.map(percent),
        |one| key(one.memory_share),
    ),
    number(
        ("enc", "the same of the encoder"),
        4,
        18,
        |one| one.encoder_share.map(percent),
        |one| key(one.encoder_share),
    ),
    number(
        ("dec", "the same of the decoder"),
        4,
        18,
        |one| one.decoder_share.map(percent),
        |one| key(one.decoder_share),
    ),
    number(
        ("launch/s", "kernels launched"),
        8,
        2,
        |one| rate(one.launches).map(count),
        |one| by(one.launches),
    ),
    number(
        ("HtoD/s", "bytes copied to devices"),
        6,
        10,
        |one| rate(one.to_device_bytes).map(bytes),
        |one| by(one.to_device_bytes),
    ),
    number(
        ("DtoH/s", "bytes copied from devices"),
        6,
        11,
        |one| rate(one.from_device_bytes).map(bytes),
        |one| by(one.from_device_bytes),
    ),
    number(
        ("copy/s", "bytes copied between others"),
        6,
        14,
        |one| rate(one.other_copied_bytes).map(bytes),
        |one| by(one.other_copied_bytes),
    ),
    number(
        ("wait", "time of its threads in waits for the GPU"),
        5,
        3,
        |one| rate(one.waiting_seconds).map(percent),
        |one| by(one.waiting_seconds),
    ),
    number(
        ("idle", "share of time in which the GPU had nothing to do for it"),
        5,
        4,
        idle,
        |one| by(one.idle_at_least_seconds),
    ),
    number(
        ("err/s", "calls that fail"),
        5,
        4,
        |one| rate(one.errors).map(count),
        |one| by(one.errors),
    ),
    number(
        ("errors", "calls that have failed"),
        6,
        13,
        |one| one.errors.map(|errors| count(errors.total)),
        |one| key(one.errors.map(|errors| errors.total)),
    ),
    number(
        ("calls/s", "all calls but getters"),
        7,
        12,
        |one| rate(one.calls).map(count),
        |one| by(one.calls),
    ),
    number(
        ("rank", "of a job with several processes"),
        4,
        16,
        |one| one.rank.as_deref().map(escaped),
        |one| key(one.rank.as_deref().and_then(|rank| rank.parse().ok())),
    ),
    words(
        ("where", "pod, container, unit or job"),
        24,
        15,
        |one| Some(escaped(&one.place)).filter(|place| !place.is_empty()),
        |one| text_key(&one.place),
    ),
    words(
        ("command", "with its arguments"),
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
    // a GPU in MIG mode is named with its instance
    let whole = process
        .gpus
        .iter()
        .filter(|gpu| !process.parts.iter().any(|part| part.starts_with(&format!("{gpu}/"))));
    let all: Vec<String> = whole.chain(&process.parts).map(|gpu| escaped(gpu)).collect();
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

/// The columns that `chosen` names, in its order, as far as they fit; `None`: those that say something.
pub(crate) fn wanted(
    chosen: Option<&[usize]>,
    width: usize,
    is_known: impl Fn(&Column<Process>) -> bool,
) -> Vec<usize> {
    let Some(chosen) = chosen else {
        return fitting(&COLUMNS, width, is_known);
    };
    let is_chosen = |column: &Column<Process>| chosen.iter().any(|place| COLUMNS[*place].title == column.title);
    let room = |place: &usize| COLUMNS.get(*place).map_or(0, |column| column.width + 1);
    let needed: usize = chosen.iter().map(room).sum::<usize>().saturating_sub(1);
    let kept = match needed <= width {
        true => chosen.to_vec(),
        false => fitting(&COLUMNS, width, is_chosen),
    };
    chosen.iter().copied().filter(|place| kept.contains(place)).collect()
}

/// What `--columns` names.
///
/// # Errors
/// There is no such column, or none at all.
pub(crate) fn named(list: &str) -> Result<Vec<usize>, String> {
    let place = |word: &str| {
        COLUMNS
            .iter()
            .position(|column| column.title.eq_ignore_ascii_case(word))
    };
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    let mut chosen: Vec<usize> = Vec::new();
    for word in words {
        match place(word) {
            Some(place) if !chosen.contains(&place) => chosen.push(place),
            Some(_) => {}
            None => return Err(format!("there is no column {word:?}; {}", all_titles())),
        }
    }
    match chosen.is_empty() {
        true => Err(format!("names no column; {}", all_titles())),
        false => Ok(chosen),
    }
}

fn all_titles() -> String {
    let titles: Vec<&str> = COLUMNS.iter().map(|column| column.title).collect();
    format!("there are {}", titles.join(","))
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
        let cell = if is_last && column.left {
            room
        } else {
            column.width.min(room)
        };
        out.push_str(&padded(&text(column), cell, column.left));
    }
    out
}
