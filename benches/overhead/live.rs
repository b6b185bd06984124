//! Two threads call at a given rate for ten seconds while we trace: totals must be exact, loss must be counted.

use crate::Folder;
use crate::hammer::{Burst, Hammer};
use crate::idle::cpu_seconds;
use crate::report::Table;
use crate::tracer::{self, Tracer};
use anyhow::Result;

const SECONDS: u64 = 10;
const THREADS: u32 = 2;
const RATES: [(u64, &[&str]); 4] = [
    (100_000, &["-o", "/dev/null", "--format", "jsonl"]),
    (300_000, &["-o", "/dev/null", "--format", "jsonl"]),
    (1_000_000, &["-o", "/dev/null", "--format", "jsonl"]),
    (1_000_000, &["-q", "--filter", "*"]),
];

/// Runs each rate once.
///
/// # Errors
/// A total is not exact.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let rows = RATES
        .iter()
        .enumerate()
        .map(|(index, (rate, options))| row(folder, &format!("live{index}"), *rate, options))
        .collect::<Result<_>>()?;
    Ok(vec![Table {
        title: format!("{THREADS} threads calling cudaMemcpyAsync for {SECONDS} s"),
        columns: vec!["offered calls/s", "way", "done calls/s", "calls made", "counted", "events lost", "program's CPU ns a call", "CPU of gpuscope", "its CPU ns a call"],
        rows,
        note: "Offered: what the threads try to keep up with; done: what they could with the hook in place, on CPUs that they \
               share with gpuscope. The program's CPU includes waiting actively for the next call's time. CPU of gpuscope: user \
               and system time over the run, as part of one core."
            .to_owned(),
    }])
}

fn row(folder: &Folder, name: &str, rate: u64, options: &[&str]) -> Result<Vec<String>> {
    let mut hammer = Hammer::start(folder, name)?;
    let pid = hammer.pid().to_string();
    let words: Vec<&str> = ["-p", pid.as_str()].iter().chain(options).copied().collect();
    let tracer = Tracer::gpuscope(folder, name, &words)?;
    let before = cpu_seconds(tracer.pid())?;
    let made = hammer.strike(Burst {
        function: "cudaMemcpyAsync",
        calls: rate * SECONDS,
        threads: THREADS,
        rate,
    })?;
    let busy = (cpu_seconds(tracer.pid())? - before) / made.seconds;
    let seen = tracer::seen(&tracer.stop()?)?;
    anyhow::ensure!(
        seen.calls == made.calls,
        "{} calls were made, {} were counted",
        made.calls,
        seen.calls
    );
    Ok(vec![
        rate.to_string(),
        if options.first() == Some(&"-q") {
            "counting"
        } else {
            "JSON lines"
        }
        .to_owned(),
        format!("{:.0}", made.calls as f64 / made.seconds),
        made.calls.to_string(),
        seen.calls.to_string(),
        format!("{} ({:.2} %)", seen.lost, seen.lost as f64 * 100.0 / made.calls as f64),
        format!("{:.0}", made.ns_per_call),
        format!("{:.0} %", busy * 100.0),
        format!("{:.0}", busy * made.seconds * 1e9 / made.calls as f64),
    ])
}
