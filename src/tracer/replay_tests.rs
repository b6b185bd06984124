//! Everything above an engine, without root: a tape of a training loop (`scripts/tape.sh`) is played, and what comes out is
//! compared with what the run itself has said.

use super::start::Beside;
use super::{Scope, Tracer};
use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::engine::Tape;
use crate::engine::replay::Replay;
use crate::filter::Filter;
use crate::model::summary::Summary;
use crate::output::Output;
use crate::record::Meta;
use crate::rows::{RunRows, Wish};
use crate::sink::json::Json;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

const TAPE: &[u8] = include_bytes!("../../tests/tapes/train.tape.gz");
const LINES: &[u8] = include_bytes!("../../tests/tapes/train.lines.jsonl.gz");

/// What can only be seen while the program is there, and of threads that were held.
const OF_LIFE: [&str; 2] = ["standstill_us", "stack"];

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn tape() -> Tape {
    Tape::read(&unpacked(TAPE)).unwrap()
}

/// The lines that the run has written.
fn lines() -> Vec<Value> {
    objects(&unpacked(LINES))
}

fn objects(lines: &[u8]) -> Vec<Value> {
    let lines = std::str::from_utf8(lines).unwrap().lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rows() -> RunRows {
    let wish = Wish {
        events: true,
        chatty: false,
        returns: true,
        results: false,
        memory: true,
        stacks: false,
        kernels: true,
        work: true,
        launch_stacks: false,
        sync_stacks: false,
    };
    let layers = ["runtime".to_owned(), "driver".to_owned()];
    let filter = Filter::parse(&[], &layers).unwrap();
    RunRows::new(Catalog::builtin().unwrap(), filter, wish, 0)
}

fn replay(tape: Tape, rows: &RunRows) -> anyhow::Result<Replay> {
    let catalog = &rows.catalog;
    let named = |id| catalog.library_with(id).map(|library| library.name.as_str());
    let number = |library: &str, symbol: &str| {
        let mut numbered = catalog.rows.iter().zip(0..);
        let found = numbered.find(|(row, _)| row.symbol == symbol && named(row.library) == Some(library));
        found.map(|(_, number)| number)
    };
    Replay::new(tape, &number)
}

/// Plays `tape`; the lines, and the summary.
fn played(tape: Tape) -> (Vec<Value>, Summary) {
    let rows = rows();
    let meta = lines().remove(0);
    let clock = Clock {
        start_monotonic_ns: meta["start_monotonic_ns"].as_u64().unwrap(),
        start_unix_ns: meta["start_unix_ns"].as_u64().unwrap(),
    };
    let looks = tape.came.len();
    let engine = Box::new(replay(tape, &rows).unwrap());
    let written = Shared::default();
    let output = Output::to(Box::new(written.clone()), Path::new("memory"));
    let scope = Scope::Processes(Vec::new());
    let mut tracer = Tracer::over(engine, rows, Beside::default(), scope, output).unwrap();
    let meta = Meta::here(clock, Vec::new(), tracer.tier().to_owned());
    tracer.write_to(Box::new(Json::default()), &meta);
    tracer.begin_counting();
    for _ in 0..looks {
        tracer.step().unwrap();
    }
    let (summary, written_all) = tracer.finish().unwrap();
    written_all.unwrap();
    let bytes = written.0.lock().unwrap().clone();
    (objects(&bytes), summary)
}

fn calls(lines: &[Value]) -> Vec<Value> {
    let mut calls: Vec<Value> = lines
        .iter()
        .filter(|line| line["type"] == "userspace")
        .cloned()
        .collect();
    for call in &mut calls {
        let fields = call.as_object_mut().unwrap();
        fields.retain(|name, _| !OF_LIFE.contains(&name.as_str()));
    }
    calls
}

#[test]
fn every_call_is_told_as_it_was_while_the_program_ran() {
    let (told, then) = (calls(&played(tape()).0), calls(&lines()));
    assert!(then.len() > 50, "{}", then.len());
    for (told, then) in told.iter().zip(&then) {
        assert_eq!(told, then);
    }
    assert_eq!(told.len(), then.len());
}

#[test]
fn the_totals_are_those_of_the_run() {
    let now = crate::sink::summary::to_json(&played(tape()).1);
    let lines = lines();
    let then = lines.last().unwrap();
    assert_eq!(then["type"], "summary");
    for part in [
        "failures",
        "copies",
        "lost_events",
        "malformed_events",
        "processes",
        "kernels",
        "under_way",
    ] {
        assert_eq!(now[part], then[part], "{part}");
    }
    let functions = |summary: &Value| -> Vec<Value> {
        let mut functions = summary["functions"].as_array().unwrap().clone();
        for function in &mut functions {
            function.as_object_mut().unwrap().remove("standstill_us");
        }
        functions
    };
    assert_eq!(functions(&now), functions(then));
    let memory = |summary: &Value, part: &str| {
        let mut part = summary["memory"][0][part].clone();
        // counted from when a run began, which is now
        for family in part
            .as_array_mut()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            family.remove("peak_ts");
        }
        part
    };
    assert!(
        memory(then, "families")[0]["peak_bytes"].as_u64() > Some(0),
        "{}",
        then["memory"]
    );
    for part in [
        "families",
        "freed_by",
        "ended_by",
        "sites",
        "lost",
        "anomalies",
        "exact",
    ] {
        assert_eq!(memory(&now, part), memory(then, part), "memory: {part}");
    }
}

#[test]
fn a_function_that_nobody_knows_any_more_is_named() {
    let mut tape = tape();
    for (_, name) in &mut tape.rows {
        if name == "cuLaunchKernel" {
            "cuForgotten".clone_into(name);
        }
    }
    let refused = replay(tape, &rows()).err().map(|error| format!("{error:#}"));
    let words = refused.unwrap_or_default();
    assert!(words.contains("cuForgotten") && words.contains("hint:"), "{words}");
}
