//! Two threads call at a given rate for ten seconds while we trace: totals must be exact, loss must be counted.

use crate::Folder;
use crate::hammer::{Burst, Hammer, Made};
use crate::idle::cpu_seconds;
use crate::report::Table;
use crate::rounds::rounds;
use crate::tracer::{self, Seen, Tracer};
use anyhow::Result;

/// Or what OVERHEAD_ROUNDS says.
const SECONDS: usize = 10;
const THREADS: u32 = 2;
/// What a program does in that time with a probe in each call, about.
const MOST_FROM_KERNEL: u64 = 10_000_000;
const FUNCTION: &str = "cudaMemcpyAsync";
const JSONL: &[&str] = &["--filter", FUNCTION, "-o", "/dev/null", "--format", "jsonl"];
const QUIET: &[&str] = &["-q", "--filter", "*"];

/// Calls a second, whether from inside, and how.
const OFFERS: [(u64, bool, &[&str]); 8] = [
    (100_000, false, JSONL),
    (300_000, false, JSONL),
    (1_000_000, false, JSONL),
    (1_000_000, false, QUIET),
    (5_000_000, false, QUIET),
    (1_000_000, true, JSONL),
    (5_000_000, true, JSONL),
    (5_000_000, true, QUIET),
];

/// What came of an offer.
struct Outcome {
    made: Made,
    seen: Seen,
    /// CPU seconds of gpuscope.
    busy: f64,
}

/// Runs each offer once.
///
/// # Errors
/// A total is not exact.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let rows = OFFERS
        .iter()
        .enumerate()
        .map(|(index, (rate, is_inside, options))| {
            let name = format!("live{index}");
            let outcome = match is_inside {
                true => from_inside(folder, &name, *rate, options)?,
                false => from_kernel(folder, &name, *rate, options)?,
            };
            Ok(row(*rate, *is_inside, options == &QUIET, &outcome))
        })
        .collect::<Result<_>>()?;
    Ok(vec![Table {
        title: format!("{THREADS} threads calling {FUNCTION} for {} s", rounds(SECONDS)),
        columns: vec!["offered calls/s", "way", "done calls/s", "calls made", "counted", "events lost", "program's CPU ns a call", "CPU of gpuscope", "its CPU ns a call that is not lost", "target"],
        rows,
        note: "Offered: what the threads try to keep up with; done: what they could with the hook in place, on CPUs that they \
               share with gpuscope. The program's CPU includes waiting actively for the next call's time. CPU of gpuscope: user \
               and system time over the run, as part of one core. A total that is not exact fails the run."
            .to_owned(),
    }])
}

fn strike(hammer: &mut Hammer, rate: u64, most: u64) -> Result<Made> {
    hammer.strike(Burst {
        function: FUNCTION,
        calls: (rate * rounds(SECONDS) as u64).min(most),
        threads: THREADS,
        rate,
    })
}

fn from_kernel(folder: &Folder, name: &str, rate: u64, options: &[&str]) -> Result<Outcome> {
    let mut hammer = Hammer::start(folder, name)?;
    let pid = hammer.pid().to_string();
    let words = [&["-p", pid.as_str()][..], options].concat();
    let tracer = Tracer::gpuscope(folder, name, &words)?;
    let before = cpu_seconds(tracer.pid())?;
    let made = strike(&mut hammer, rate, MOST_FROM_KERNEL)?;
    let busy = cpu_seconds(tracer.pid())? - before;
    let seen = exact(tracer::seen(&tracer.stop()?)?, hammer.made)?;
    Ok(Outcome { made, seen, busy })
}

fn from_inside(folder: &Folder, name: &str, rate: u64, options: &[&str]) -> Result<Outcome> {
    let (mut hammer, words) = Hammer::inside(folder, name, options)?;
    let before = cpu_seconds(hammer.pid())?;
    let made = strike(&mut hammer, rate, u64::MAX)?;
    let busy = cpu_seconds(hammer.pid())? - before;
    hammer.end()?;
    let seen = exact(tracer::seen(&std::fs::read_to_string(words)?)?, hammer.made)?;
    Ok(Outcome { made, seen, busy })
}

fn exact(seen: Seen, made: u64) -> Result<Seen> {
    anyhow::ensure!(
        seen.calls == made,
        "{made} calls were made, {} were counted",
        seen.calls
    );
    Ok(seen)
}

fn row(rate: u64, is_inside: bool, is_quiet: bool, outcome: &Outcome) -> Vec<String> {
    let Outcome { made, seen, busy } = outcome;
    let calls = made.calls as f64;
    let engine = if is_inside { "inside" } else { "kernel" };
    let lines = if is_quiet { "counting" } else { "JSON lines" };
    vec![
        rate.to_string(),
        format!("{engine}, {lines}"),
        format!("{:.0}", calls / made.seconds),
        made.calls.to_string(),
        seen.calls.to_string(),
        format!("{} ({:.2} %)", seen.lost, seen.lost as f64 * 100.0 / calls),
        format!("{:.0}", made.ns_per_call),
        format!("{:.0} %", busy / made.seconds * 100.0),
        format!(
            "{:.0}",
            busy * 1e9 / (made.calls - seen.lost.min(made.calls)).max(1) as f64
        ),
        if is_inside {
            "≤ 1000".to_owned()
        } else {
            String::new()
        },
    ]
}
