//! How fast rows become a file, and how large it is: those of a training loop, as tests/support/training.rs makes them.

#[path = "../../tests/support/training.rs"]
mod training;

use crate::Folder;
use crate::report::Table;
use crate::rounds::spread;
use anyhow::Result;
use gpuscope::clock::{clock_now, thread_cpu};
use gpuscope::record::{Meta, Record, Taker};
use gpuscope::trace::store::{Keeping, Plan, Store};
use gpuscope::trace::{End, Reader, Recorder};
use std::path::Path;
use training::{Row, Training};

const ROUNDS: usize = 9;
const STEPS: usize = 400;
/// How often the steps are written into one file.
const TIMES: i64 = 5;
const SECOND: i64 = 1_000_000_000;

/// Writes files and reads them.
///
/// # Errors
/// A file cannot be written.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let path = folder.file("training.arrows");
    let (rows, took) = Training::steps(STEPS);
    let events = rows.len() as i64 * TIMES;
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        written.push(events as f64 / write(&path, &rows, took)? / 1e6);
        read.push(events as f64 / self::read(&path, events)? / 1e6);
    }
    let bytes = std::fs::metadata(&path)?.len();
    let row = |what: &str, rates: &[f64], target: &str| vec![what.to_owned(), spread(rates, 2), target.to_owned()];
    Ok(vec![Table {
        title: "Recording a training loop on one core".to_owned(),
        columns: vec!["what", "million events a second, median (min–max)", "target"],
        rows: vec![
            row("rows into a file", &written, "≥ 0.5"),
            row("a file into rows", &read, ""),
        ],
        note: format!(
            "{events} rows of {} steps of a transformer's training as PyTorch makes them (tests/support/training.rs says how \
             they are made: no GPU is needed), a batch for each second of them, {ROUNDS} times: {:.1} bytes a row (target: \
             16). CPU time of the one thread that does it all; the disk has a thread that waits for it.",
            STEPS as i64 * TIMES,
            bytes as f64 / events as f64
        ),
    }])
}

/// CPU seconds.
fn write(path: &Path, rows: &[Row], took: i64) -> Result<f64> {
    let plan = Plan {
        path: path.to_owned(),
        keeping: Keeping::Whole,
        budget: None,
    };
    let (store, started) = (Store::create(&plan)?, thread_cpu());
    let mut output = store.output();
    let mut recorder = Recorder::new(&Meta::here(clock_now(), Vec::new(), "bench".to_owned()))?;
    let (mut bytes, mut flushed) = (Vec::new(), 0);
    for time in 0..TIMES {
        for row in rows {
            let event = row.event(time * took);
            recorder.push(&event, &mut bytes);
            if event.at - flushed > SECOND {
                recorder.flush(&mut bytes);
                flushed = event.at;
            }
            if !bytes.is_empty() {
                output.write(&bytes);
                bytes.clear();
            }
        }
    }
    recorder.end(&mut bytes);
    output.write(&bytes);
    let seconds = (thread_cpu() - started).as_secs_f64();
    output.check()?;
    Ok(seconds)
}

#[derive(Default)]
struct Sum(u64);

impl Taker for Sum {
    fn take(&mut self, event: &Record<'_>) {
        self.0 = self.0.wrapping_add(event.ns.unwrap_or(0) + event.name.len() as u64);
    }
}

/// CPU seconds.
fn read(path: &Path, events: i64) -> Result<f64> {
    let started = thread_cpu();
    let mut sum = Sum::default();
    let End { rows, .. } = Reader::open(path)?.read(&mut sum);
    let seconds = (thread_cpu() - started).as_secs_f64();
    anyhow::ensure!(
        rows as i64 == events && std::hint::black_box(sum.0) > 0,
        "{rows} of {events} rows"
    );
    Ok(seconds)
}
