//! How fast events become lines: real events of a simulated training loop, recorded once and formatted on one core.

use crate::Folder;
use crate::idle::{attached_to, everything};
use crate::report::Table;
use crate::rounds::spread;
use anyhow::{Context, Result};
use gpuscope::clock::{Clock, clock_now, thread_cpu};
use gpuscope::decode::Call;
use gpuscope::engine::{Engine, Events};
use gpuscope::findings::Examiner;
use gpuscope::model::order::Numbers;
use gpuscope::record::{Encoder, Facts, Kind, Maker, Meta, Record, Taker, Traced};
use gpuscope::rows::RunRows;
use gpuscope::sink::{json::Json, text};
use gpuscope::trace::Recorder;
use gpuscope::wire::Inbox;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 15;
const STEPS: &str = "1500";
const FLUSH: usize = 1 << 18;
/// No other descriptor is waited for.
const NOBODY: i32 = -1;

/// Records a buffer and formats it again and again.
///
/// # Errors
/// Nothing could be recorded.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let (rows, recorded) = record(folder)?;
    let (clock, zone) = (clock_now(), text::local_zone());
    let mut json = Json::default();
    let mut plain = text::Text::new(clock, zone, false);
    let (mut as_json, mut as_text, mut as_rows, mut judged) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut row_bytes) = (0, 0);
    for _ in 0..ROUNDS {
        let (rate, written) = formatted(&rows, &recorded, clock, &mut json);
        as_json.push(rate);
        bytes = written;
        as_text.push(formatted(&rows, &recorded, clock, &mut plain).0);
        let mut recorder = Recorder::new(&Meta::here(clock, Vec::new(), "bench".to_owned()))?;
        let (rate, written) = formatted(&rows, &recorded, clock, &mut recorder);
        as_rows.push(rate);
        judged.push(formatted(&rows, &recorded, clock, &mut Judge(Examiner::new())).0);
        row_bytes = written;
    }
    let events = recorded.slots.len();
    let row = |what: &str, rates: &[f64], target: &str| vec![what.to_owned(), spread(rates, 2), target.to_owned()];
    Ok(vec![Table {
        title: "Formatting recorded events on one core".to_owned(),
        columns: vec!["format", "million events a second, median (min–max)", "target"],
        rows: vec![
            row("JSON lines", &as_json, "≥ 1.5"),
            row("text", &as_text, ""),
            row("recording", &as_rows, "≥ 0.5"),
            row("findings", &judged, ""),
        ],
        note: format!(
            "{events} events of `gpusim train` ({} bytes each on the wire, {} as a JSON line, {:.1} as a row), decoded, \
             numbered and formatted {ROUNDS} times into memory.",
            recorded.bytes.len() / events,
            bytes / events,
            row_bytes as f64 / events as f64
        ),
    }])
}

/// Looks for what is wrong, and writes nothing.
struct Judge(Examiner);

impl Encoder for Judge {
    fn take(&mut self, record: &Record<'_>, _out: &mut Vec<u8>) {
        if record.kind == Kind::Call {
            self.0.take(record);
        }
    }

    fn keeps(&self) -> bool {
        false
    }
}

fn record(folder: &Folder) -> Result<(RunRows, Inbox)> {
    let (mut rows, session) = everything(1 << 26)?;
    let events = Events::open(&session)?;
    let mut child = Command::new(folder.file("sim/gpusim"))
        .args(["train", STEPS])
        .envs([("GPUSIM_DELAY_MS", "1500"), ("GPUSIM_KERNEL_US", "0")])
        .stdout(Stdio::null())
        .spawn()
        .context("failed to start gpusim")?;
    std::thread::sleep(Duration::from_millis(500));
    (&session as &dyn Engine).add_target(child.id())?;
    let _attached = attached_to(child.id(), &session, &mut rows)?;
    while child.try_wait()?.is_none() {
        events.wait(Duration::from_millis(10), [NOBODY; 6]);
    }
    events.drain();
    let recorded = events.inbox().take();
    anyhow::ensure!(
        recorded.slots.len() > 10_000,
        "only {} events were recorded",
        recorded.slots.len()
    );
    Ok((rows, recorded))
}

/// Million events a second, and bytes written.
fn formatted(rows: &RunRows, recorded: &Inbox, clock: Clock, encoder: &mut dyn Encoder) -> (f64, usize) {
    let (mut numbers, mut maker, keeps) = (Numbers::default(), Maker::new(clock), encoder.keeps());
    let mut out = Vec::with_capacity(2 * FLUSH);
    let mut written = 0;
    let started = thread_cpu();
    for slot in &recorded.slots {
        let Some(call) = Call::decode(recorded.event(*slot), &rows.catalog, &rows.plans) else {
            continue;
        };
        let header = &call.header;
        let number = numbers.number(header.tid, header.depth, header.entered, header.caller);
        let layer = rows
            .catalog
            .library_with(call.row.library)
            .map_or("?", |library| library.name.as_str());
        let traced = Traced {
            call: &call,
            number,
            comm: "gpusim",
            layer,
            kernel: None,
            asked: None,
            stack: None,
            facts: Facts::default(),
        };
        encoder.take(&maker.call(&traced, keeps), &mut out);
        if out.len() >= FLUSH {
            written += std::hint::black_box(&out).len();
            out.clear();
        }
    }
    encoder.tick(&mut out);
    let seconds = (thread_cpu() - started).as_secs_f64();
    (recorded.slots.len() as f64 / seconds / 1e6, written + out.len())
}
