//! Columns of tables: what each says, how wide it is, by what its rows are sorted, and which are left out first where there is
//! no room. Which of them are shown is `shown`'s business.

mod shown;

pub(crate) use shown::{ALWAYS, fitting, line, named, places, wanted};

use super::cells::{bound, bytes, count, fine_percent, percent, signed_bytes};
use super::model::{Certainty, Count, Process, rate};
use crate::text::quantity::{duration, escaped};
use std::cmp::Ordering;

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
    /// What it says is rare: there is no place for it otherwise.
    pub rare: bool,
    pub left: bool,
    pub text: fn(&T) -> Option<String>,
    pub key: fn(&T) -> Key,
}

pub(crate) const fn number<T>(
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
        rare: false,
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
pub(crate) static COLUMNS: [Column<Process>; 27] = [
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
        5,
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
        (
            "unattr",
            "device memory that the driver counts and no allocation explains",
        ),
        6,
        16,
        |one| one.unattributed_bytes.map(bytes),
        |one| key(one.unattributed_bytes),
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
    words(
        ("why", "the main reason of that: host-bound, memory, forgotten"),
        10,
        7,
        why,
        |one| text_key(&why(one).unwrap_or_default()),
    ),
    Column {
        rare: true,
        ..number(
            ("stuck", "for how long a call has not returned, from a second on"),
            6,
            3,
            |one| stuck(one).map(|seconds| duration((seconds * 1e9) as u64)),
            |one| key(stuck(one)),
        )
    },
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
        ("cost", "share of time that probes take from it, by its calls"),
        5,
        13,
        |one| one.probe_share.map(fine_percent),
        |one| key(one.probe_share),
    ),
    words(
        ("kernel", "launched most often now, with its share of launches"),
        24,
        15,
        busiest,
        |one| text_key(&busiest(one).unwrap_or_default()),
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
        ("command", "with its arguments, without the folder of the program"),
        COMMAND,
        0,
        |one| Some(command(one)),
        |one| text_key(without_folder(&one.command)),
    ),
];

/// Idle for less of the time, a reason says nothing.
const LEAST_IDLE: f64 = 0.01;
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
    format!("{}{}", mark(process), escaped(without_folder(&process.command)))
}

/// Before its name: why there may be nothing in its row.
pub(crate) fn mark(process: &Process) -> &'static str {
    match (process.ended, process.traced) {
        (true, _) => "(ended) ",
        _ if process.lent => "(stands still) ",
        (false, false) => "(not traced) ",
        (false, true) if process.quiet => "(no calls) ",
        _ => "",
    }
}

/// There is room for what comes after it, which says more; the pane has all of it.
fn without_folder(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or_default();
    let name = program.rfind('/').map_or(0, |slash| slash + 1);
    if name < program.len() {
        &command[name..]
    } else {
        command
    }
}

pub(crate) fn idle(process: &Process) -> Option<String> {
    let share = rate(process.idle_at_least_seconds)?;
    let sign = match process.idle_certainty {
        Certainty::Bound => "≥",
        Certainty::Inferred => "≳",
    };
    Some(bound(sign, share))
}

/// The reason of most idle time now.
fn why(process: &Process) -> Option<String> {
    let by_pace = process
        .idle_reasons
        .iter()
        .filter_map(|(reason, count)| Some((reason, count.per_second?)));
    let most = by_pace.max_by(|(_, left), (_, right)| left.total_cmp(right));
    most.filter(|(_, pace)| *pace >= LEAST_IDLE)
        .map(|(reason, _)| escaped(reason))
}

fn stuck(process: &Process) -> Option<f64> {
    process.longest_call.as_ref().map(|call| call.seconds)
}

fn busiest(process: &Process) -> Option<String> {
    let paces = process.kernels.iter().filter_map(|kernel| kernel.launches.per_second);
    let all = rate(process.launches).unwrap_or_else(|| paces.sum());
    let first = process.kernels.first()?;
    let own = first.launches.per_second.filter(|own| *own > 0.0)?;
    Some(format!("{} {}", percent((own / all).min(1.0)), escaped(&first.name)))
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
