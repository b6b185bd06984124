//! How much of what devices executed was seen, in the summary: as text and as JSON.

use super::micros;
use crate::model::activity::{
    BROKEN_OFF, Coverage, Report, Sampled, Seen, locked_out_words, missing_words, untold_words,
};
use crate::text::quantity::{count, escaped, plural};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Programs that are named.
const FEW: usize = 8;

/// Of one process.
pub(super) fn to_json(coverage: &Coverage) -> Value {
    json!({
        "pid": coverage.pid,
        "comm": coverage.comm,
        "seen": coverage.seen == Seen::Yes,
        "why": why_not(coverage),
        "cupti": Some(&coverage.library).filter(|library| !library.is_empty()),
        "version": Some(&coverage.version).filter(|version| !version.is_empty()),
        "lost": coverage.lost,
        "dropped": coverage.dropped,
        "invalid": coverage.invalid,
        "malformed": coverage.malformed,
        "overheads": coverage.tells_overheads,
        "untimed_overheads": coverage.untimed_overheads,
        "early": coverage.early,
        "late": coverage.late,
        "windows": coverage.windows.as_ref().map(|windows| windows_json(windows, coverage.given_ns)),
        "other_cupti": Some(&coverage.other).filter(|other| !other.is_empty()),
        "gives_way": coverage.gives_way,
        "no_copies_ns": coverage.no_copies_ns,
        "given_ns": coverage.given_ns,
        "broken_off": coverage.broken_off,
        "goes_on": coverage.goes_on,
        "clock": if coverage.fitted_clock { "fitted" } else { "asked" },
    })
}

fn windows_json(windows: &Sampled, given_ns: Option<u64>) -> Value {
    json!({
        "length_us": micros(windows.length_ns),
        "period_us": micros(windows.period_ns),
        "ending": given_ns.map(|_| "asked"),
        "number": windows.number,
        "unopened": windows.unopened,
        "of_us": micros(windows.of_ns),
    })
}

/// How much was seen, and what to do where that is not all.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = gaps(report).iter().map(|gap| format!("  {gap}")).collect();
    if report.devices.is_empty() && !lines.is_empty() {
        lines.insert(0, "\nGPU, as executed (CUPTI)".to_owned());
    }
    lines
}

/// What was not seen, and what to do; empty: nothing is missing.
#[must_use]
pub fn gaps(report: &Report) -> Vec<String> {
    let refused = report.refused.iter().map(|why| format!("not seen: {}", escaped(why)));
    let own = report.coverage.iter().filter_map(coverage_line);
    let given = report.coverage.iter().flat_map(untold_lines);
    let early = report.coverage.iter().filter_map(early_line);
    let others = report.coverage.iter().filter_map(other_line);
    refused.chain(own).chain(given).chain(others).chain(early).collect()
}

/// Which CUPTI was asked, and what that keeps from others.
pub(super) fn holders(report: &Report) -> Option<String> {
    let all = report.coverage.iter();
    let holds = |one: &&Coverage| one.seen == Seen::Yes && one.given_ns.is_none() && !one.library.is_empty();
    let holding: Vec<&Coverage> = all.filter(holds).collect();
    let named = holding
        .iter()
        .map(|one| format!("{} ({})", one.version, escaped(&one.library)));
    let named: Vec<String> = named.collect::<BTreeSet<String>>().into_iter().collect();
    let of_others = match holding.iter().all(|one| one.gives_way) {
        true => {
            "a profiler in the program (torch.profiler) gets it as soon as it asks, and gpuscope has no more of it then"
        }
        false => "while it is held, a profiler in the program (torch.profiler) sees no GPU; hint: --gpu off",
    };
    (!named.is_empty()).then(|| format!("  CUPTI {}; {of_others}", named.join(", ")))
}

/// Programs that CUPTI stays in.
pub(super) fn stays(report: &Report) -> Option<String> {
    let running = report.coverage.iter().filter(|one| one.goes_on);
    let named: Vec<String> = running
        .map(|one| format!("{} {}", escaped(&one.comm), one.pid))
        .take(FEW)
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "  CUPTI stays in {} until that ends, and takes some of its time even while nobody asks",
            named.join(", ")
        )
    })
}

fn coverage_line(coverage: &Coverage) -> Option<String> {
    let who = format!("{} {}", escaped(&coverage.comm), coverage.pid);
    if let Some(why) = why_not(coverage) {
        return Some(format!("not seen of {who}: {}", escaped(&why)));
    }
    let (lost, dropped) = (coverage.lost, coverage.dropped);
    let mut words = missing_words(lost, dropped, coverage.invalid, coverage.malformed);
    if coverage.untimed_overheads > 0 {
        let number = plural(coverage.untimed_overheads, "record");
        words.push(format!(
            "{number} of CUPTI's own overhead without times that make sense"
        ));
    }
    let unopened = coverage.windows.map_or(0, |windows| windows.unopened);
    if unopened > 0 {
        words.push(format!("{} that CUPTI refused to open", plural(unopened, "window")));
    }
    if coverage.late {
        words.push("some of the idle time is none: records came seconds later than others".to_owned());
    }
    if coverage.broken_off {
        words.push(BROKEN_OFF.to_owned());
    }
    (!words.is_empty()).then(|| format!("missing of {who}: {}", words.join("; ")))
}

/// Of a program that went on without our CUPTI, or with less of it.
fn untold_lines(coverage: &Coverage) -> impl Iterator<Item = String> {
    let who = format!("{} {}", escaped(&coverage.comm), coverage.pid);
    let words = untold_words(coverage.no_copies_ns, coverage.given_ns);
    words.map(move |words| format!("{who} {words}"))
}

/// Of a program that has another CUPTI, too.
fn other_line(coverage: &Coverage) -> Option<String> {
    let who = format!("{} {}", escaped(&coverage.comm), coverage.pid);
    let other = escaped(&coverage.other);
    (!other.is_empty()).then(|| {
        let words = locked_out_words(&other);
        format!("{who} {words}; hint: --gpu off, or have it use the one above")
    })
}

/// What contradicts itself.
fn early_line(coverage: &Coverage) -> Option<String> {
    let who = format!("{} {}", escaped(&coverage.comm), coverage.pid);
    let number = count(coverage.early);
    (coverage.early > 0).then(|| {
        format!(
            "{number} of {who} began before the call whose turn it was: CUPTI's clock is off, or calls were not seen"
        )
    })
}

/// Why nothing was seen of a process, and the cure.
fn why_not(coverage: &Coverage) -> Option<String> {
    let library = &coverage.library;
    Some(match &coverage.seen {
        Seen::Yes => return None,
        Seen::Absent => {
            "no CUPTI was found; hint: pip install nvidia-cuda-cupti, or GPUSCOPE_CUPTI=PATH/libcupti.so.13".to_owned()
        }
        Seen::Unanswered => {
            "CUPTI has not answered: in a program that ran before it waits until all that runs on the device has \
                             ended, and the program's calls wait with it; hint: --gpu off"
                .to_owned()
        }
        Seen::Held => format!("another tool holds CUPTI ({library}); hint: run without the profiler, or --gpu off"),
        Seen::TooNew => format!(
            "CUPTI {} ({library}) is too new for the driver; hint: GPUSCOPE_CUPTI=PATH of an older libcupti.so",
            coverage.version
        ),
        Seen::TooOld => {
            format!("{library} lacks what is needed; hint: GPUSCOPE_CUPTI=PATH of libcupti.so of CUDA 11.8 or later")
        }
        Seen::Refused { step, error } => {
            format!("CUPTI ({library}) refused {step}: error {error}; hint: --gpu off says nothing of it")
        }
    })
}

/// Records that are missing of all programs: of each so many, at least where that is `true`; `None`: none is.
#[must_use]
pub(crate) fn missing_in_all(of_each: impl Iterator<Item = (u64, bool)>) -> Option<String> {
    let (missing, is_least) = of_each.fold((0, false), |(sum, is_least): (u64, bool), (missing, least)| {
        (sum.saturating_add(missing), is_least || least)
    });
    let least = if is_least { "at least " } else { "" };
    (missing > 0).then(|| format!("{least}{} of what the GPU executed", plural(missing, "record")))
}
